"""A DecisionCommit: the conversation, tools and approvals behind a commit (PVP 18.2), and its note.

The note has the full record: redacted, masked and within the size limit.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from accord.core.kernel.redaction import Redactor, redact, redact_json
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.notes.note import MAX_NOTE_BYTES, NOTE_VERSION, Note, shrink_to_fit

Participant = str  # `human:alice`, `ai:claude`, `agent:reviewer` (OPEN-64)
Confidence = Annotated[float, Meta(ge=0.0, le=1.0)]
MAX_THREAD_BYTES = 256 << 10  # of a thread from a trailer, decompressed
MAX_TRAILER_LENGTH = 16 << 10
# The beginning of a longer message is enough to see what it was about.
MAX_MASKED_LENGTH = 4096


class UnreadableDecisionError(ValueError):
    """A value is not a decision, or not one that this version can read."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Part of a decision; fields with default values are not written."""


class ToolExecution(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that ran; `output_hash` covers all of its output and its result (PVP 5.2).

    `arguments` are those of the call, redacted, with long texts cut. `paths` are the files of the
    repository that the call itself changes; `reported` those that only the agent names.
    """

    id: str
    name: str
    agent: Participant = ""
    category: str = ""
    risk: str = ""
    path: str = ""
    description: str = ""
    # `success`, `failure`, `unfinished`, `not_reported`, `taken_back` or `ran_after_taken_back`
    outcome: str = ""
    approved_by: tuple[Participant, ...] = ()
    standing: tuple[Participant, ...] = ()  # who let it run by a standing grant only
    duration_ms: int | None = None
    output_hash: str = ""
    arguments: Mapping[str, Any] = {}
    call_digest: str = ""  # of the whole call, redacted, if `arguments` has only beginnings
    paths: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    execution: str = ""  # the message that let it run
    elsewhere: bool = False  # it changes files, and none of this commit
    uncommitted: tuple[str, ...] = ()  # what of it waits for a later commit; `.` is all of it
    since: int | None = None  # where its own range begins, if a commit before left it behind


class FileChange(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A changed path of the commit, by blob and mode; empty before it existed and after it went."""

    path: str
    before: str = ""
    after: str = ""
    old_mode: str = ""
    mode: str = ""


class PathCoverage(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The paths that one approval covers or, as context, has to do with.

    `together`: only with what others approved.
    """

    approver: Participant
    proposal: str
    paths: tuple[str, ...] = ()
    together: bool = False


class Approval(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """An approval at a gate; `action` is the id of the tool, merge or prompt it was about."""

    gate: str
    by: Participant
    action: str = ""
    at: str = ""
    comment: str = ""
    self_approved: bool = False


class Alternative(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Something considered and not done: an unmerged fork, a rejected proposal."""

    kind: str  # `fork`, `proposal` or `merge`
    id: str
    description: str = ""
    reason: str = ""
    by: tuple[Participant, ...] = ()  # who rejected it
    branch: str = ""
    commits: tuple[str, ...] = ()


class ResolvedConflict(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A merge conflict, by its key, and the side that was chosen."""

    key: str
    resolution: str  # `use_source`, `use_target` or `custom`
    not_approved: bool = False  # a value that the gate of the merge did not show


class ForkMerge(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A merged fork, the subject of a merge commit; if not `done`, only proposed so far."""

    id: str  # of the proposal
    fork: str
    branch: str = ""
    strategy: str = ""
    summary: str = ""
    by: tuple[Participant, ...] = ()
    done: bool = False
    head: str = ""  # the commit that the gate showed
    settled: tuple[ResolvedConflict, ...] = ()


class StepVerdict(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The decision kernel's verdict on a step that ran; `snapshot` is the hash of its ruling."""

    batch: str
    item: str
    step: str = ""
    verdict: str = ""
    confidence: str = ""  # the kernel's grade, unrelated to the agent's own number
    snapshot: str = ""


class LogPosition(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The position on the log's hash chain up to which the decision was made."""

    stream: str
    version: int
    hash: str = ""


class Metrics(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Sums of what the agents themselves reported for their responses."""

    thinking_tokens: int | None = None
    output_tokens: int | None = None
    latency_ms: int | None = None


class DecisionCommit(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """All fields of PVP 18.2, and more that git and readers need; a draft has no `git_sha` yet.

    `confidence_score` is the agent's own number or None; Accord never computes one (OPEN-60).
    `approvals` are only those that cover the whole commit; `votes` are all that gates received.
    `covers` is `whole`, `part` or `none`, and empty in records that do not know.
    """

    id: str
    pvp_session: str
    git_sha: str = ""
    pvp_messages: tuple[str, ...] = ()
    decision_type: str = ""
    confidence_score: Confidence | None = None
    alternatives_considered: tuple[Alternative, ...] = ()
    tool_executions: tuple[ToolExecution, ...] = ()
    approvals: tuple[Approval, ...] = ()
    files_changed: tuple[str, ...] = ()

    verdicts: tuple[StepVerdict, ...] = ()
    merges: tuple[ForkMerge, ...] = ()
    session_name: str = ""
    fork: str = ""
    decided_by: tuple[Participant, ...] = ()
    decided_at: str = ""
    names: dict[Participant, str] = {}  # what participants call themselves, besides their ids
    branch: str = ""
    parents: tuple[str, ...] = ()
    patch_id: str = ""
    first_sha: str = ""  # the commit that was linked first, if `git_sha` is a rewrite of it
    since: int = 0  # the `seq` up to which an earlier commit of the session was linked
    until: int = 0  # the last `seq` that this decision covers
    # How many commits were linked before, if they left runs behind; part of the id.
    earlier_links: int = 0
    position: LogPosition | None = None
    metrics: Metrics | None = None
    tree: str = ""
    changes: tuple[FileChange, ...] = ()
    covers: str = ""
    coverage: tuple[PathCoverage, ...] = ()
    context: tuple[PathCoverage, ...] = ()  # approved runs that cover nothing here
    votes: tuple[Approval, ...] = ()
    assisted_by: tuple[str, ...] = ()  # `agent:model` of the runs

    @property
    def approved_by(self) -> tuple[Participant, ...]:
        """Everyone whose approvals cover the whole commit, without duplicates."""
        return tuple(sorted({approval.by for approval in self.approvals}))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that ran, without duplicates, in order of first use."""
        return tuple(dict.fromkeys(tool.name for tool in self.tool_executions))


class Utterance(NamedTuple):
    """One message of a conversation; `type` is a PVP primitive."""

    id: str
    type: str
    sender: str
    content: str
    timestamp: str


class ConversationThread(NamedTuple):
    """A conversation in chronological order."""

    id: str
    messages: tuple[Utterance, ...] = ()


def to_json(part: _Part) -> dict[str, Any]:
    """The JSON form used in notes."""
    value: dict[str, Any] = msgspec.to_builtins(part)
    return value


def from_json(value: Any) -> DecisionCommit:
    """Parse the JSON of a note; raises UnreadableDecisionError, ignores unknown fields."""
    try:
        return with_checked_approvals(msgspec.convert(value, DecisionCommit))
    except (msgspec.ValidationError, UnicodeError) as error:
        raise UnreadableDecisionError(str(error)) from error


def with_checked_approvals(decision: DecisionCommit) -> DecisionCommit:
    """The decision without approvals that were recorded before coverage was checked."""
    if decision.covers or not decision.approvals:
        return decision
    votes = (*decision.approvals, *decision.votes)
    return msgspec.structs.replace(decision, approvals=(), votes=votes)


def trailer_context(decision: DecisionCommit) -> dict[str, Any]:
    """The trailer values for `prepare-commit-msg`; contains nothing of the conversation."""
    context = {
        "session": decision.pvp_session,
        "decision": decision.id,
        "messages": list(decision.pvp_messages),
        "ends": list(chain_ends(decision)),
        "fork": decision.fork or None,
        "decision_type": decision.decision_type or None,
        "confidence": decision.confidence_score,
        "decision_by": list(decision.decided_by),
        "reviewed_by": [],  # reviews come after the commit
        "approved_by": list(decision.approved_by),
        "assisted_by": list(decision.assisted_by),
        "tools": list(decision.tools),
    }
    return {key: value for key, value in context.items() if value is not None}


def chain_ends(decision: DecisionCommit) -> tuple[str, ...]:
    """The prompt and the last tool execution; of a chain without tools its first and last id."""
    chain = decision.pvp_messages
    executions = [tool.execution for tool in decision.tool_executions if tool.execution]
    ends = (*chain[:1], *(executions[-1:] or chain[-1:]))
    return tuple(dict.fromkeys(ends))


def thread_to_json(thread: ConversationThread) -> dict[str, Any]:
    """The `conversation` of a note (OPEN-59)."""
    return {"thread_id": thread.id, "messages": [message._asdict() for message in thread.messages]}


def thread_from_json(value: Any) -> ConversationThread:
    """The readable part of a note's `conversation`; malformed messages are left out."""
    fields = value if isinstance(value, dict) else {}
    messages = fields.get("messages")
    utterances = tuple(_utterances(messages if isinstance(messages, list) else []))
    return ConversationThread(str(fields.get("thread_id", "")), utterances)


def _utterances(messages: list[Any]) -> Iterator[Utterance]:
    for message in messages:
        if isinstance(message, dict) and isinstance(message.get("id"), str):
            yield Utterance(*(str(message.get(name, "")) for name in Utterance._fields))


def thread_to_trailer(thread: ConversationThread) -> str:
    """Base64 of compressed JSON on one line; refused if too long for a commit message."""
    plain = json.dumps(thread_to_json(thread), separators=(",", ":"), sort_keys=True).encode()
    text = b64encode(zlib.compress(plain, 9)).decode()
    if len(text) > MAX_TRAILER_LENGTH:
        raise Refused(Reason.TOO_LARGE, "The conversation is too long for a trailer; use the note")
    return text


def thread_from_trailer(text: str) -> ConversationThread:
    """The thread in a trailer; refused if malformed or too large when decompressed."""
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(b64decode(text.encode(), validate=True), MAX_THREAD_BYTES)
        whole = unpacker.eof
        value = json.loads(plain) if whole else None
    except (ValueError, zlib.error, RecursionError) as error:
        raise Refused(Reason.MALFORMED, "PVP-Thread does not contain a conversation") from error
    if value is None:
        raise Refused(Reason.TOO_LARGE, "PVP-Thread is truncated or too large")
    return thread_from_json(value)


def external_reference(uri: str) -> dict[str, Any]:
    """The `conversation` of a note whose text is stored elsewhere."""
    return {"uri": uri}


def external_uri(value: Any) -> str | None:
    """Where the conversation of a note is stored, if not in the note."""
    uri = value.get("uri") if isinstance(value, dict) else None
    return uri if isinstance(uri, str) and uri else None


def decision_note(
    decision: DecisionCommit,
    thread: ConversationThread | None = None,
    clean: Redactor = redact,
    max_bytes: int = MAX_NOTE_BYTES,
) -> Note:
    """The note to store; every text in it is redacted (UNI-29)."""
    note: Note = {
        "version": NOTE_VERSION,
        "session": {"id": decision.pvp_session, "name": decision.session_name},
        "decisions": [to_json(decision)],
        "tools": {"executions": [_tool(tool) for tool in decision.tool_executions]},
        "alternatives": [_alternative(option) for option in decision.alternatives_considered],
        "metrics": _metrics(decision),
        "conversation": thread_to_json(thread) if thread else {},
    }
    filled = {key: value for key, value in note.items() if value}
    cleaned: Note = redact_json(filled, clean)
    return shrink_to_fit(cleaned, max_bytes)


def decisions_of(note: Note) -> tuple[DecisionCommit, ...]:
    """The decisions in a note; those that this version cannot read are left out."""
    entries = note.get("decisions")
    return tuple(
        decision
        for entry in (entries if isinstance(entries, list) else ())
        if (decision := _read(entry))
    )


def _read(value: Any) -> DecisionCommit | None:
    try:
        return from_json(value)
    except UnreadableDecisionError:
        return None


def thread_of(note: Note) -> ConversationThread:
    """The conversation in a note."""
    return thread_from_json(note.get("conversation"))


def _tool(tool: ToolExecution) -> dict[str, Any]:
    fields = {
        "id": tool.id,
        "name": tool.name,
        "path": tool.path or None,
        "approved_by": list(tool.approved_by),
        "standing": list(tool.standing) or None,
        "duration_ms": tool.duration_ms,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _alternative(option: Alternative) -> dict[str, Any]:
    return {
        "id": option.id,
        "branch": option.branch,
        "reason_abandoned": option.reason,
        "commits": list(option.commits),
    }


def _metrics(decision: DecisionCommit) -> dict[str, Any]:
    return {} if decision.metrics is None else to_json(decision.metrics)


# Masking. The value of a secret is known only while the secret is shared. Later exports of the
# conversation could no longer find and mask it, so the masked messages are stored with the link.


def masked_messages(thread: ConversationThread, clean: Redactor) -> dict[str, str]:
    """Cleaned messages that contain a secret which `redact` alone would not recognise."""
    cleaned = {message.id: clean(message.content) for message in thread.messages}
    return {
        message.id: cleaned[message.id][:MAX_MASKED_LENGTH]
        for message in thread.messages
        if cleaned[message.id] != redact(message.content)
    }


def reapply_masks(thread: ConversationThread, masked: Mapping[str, str]) -> ConversationThread:
    """The conversation with the stored masked messages in place of the originals."""
    messages = (
        message._replace(content=masked.get(message.id, message.content))
        for message in thread.messages
    )
    return thread._replace(messages=tuple(messages))
