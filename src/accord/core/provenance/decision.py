"""A DecisionCommit: which conversation, tools and approvals led to a commit (PVP 18.2)."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Participant = str  # `human:alice`, `ai:claude`, `agent:reviewer` (OPEN-64)
Confidence = Annotated[float, Meta(ge=0.0, le=1.0)]


class UnreadableError(ValueError):
    """What is said to be a decision is none."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something of a decision; a field that nobody filled is not written."""


class ToolExecution(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that ran. `output_hash` vouches for all it printed and gave (PVP 5.2)."""

    id: str
    name: str
    agent: Participant = ""
    category: str = ""
    risk: str = ""
    path: str = ""
    description: str = ""
    outcome: str = ""  # `success`, `failure`, or `unfinished`
    approved_by: tuple[Participant, ...] = ()
    duration_ms: int | None = None
    output_hash: str = ""


class Approval(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A person's yes at a gate. `action` is what it was about: a tool, a merge, a prompt."""

    gate: str
    by: Participant
    action: str = ""
    at: str = ""
    comment: str = ""
    self_approved: bool = False


class Alternative(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What was considered and not done: a fork that was not merged, a proposal that was refused."""

    kind: str  # `fork`, `proposal` or `merge`
    id: str
    description: str = ""
    reason: str = ""
    by: tuple[Participant, ...] = ()  # who said no
    branch: str = ""
    commits: tuple[str, ...] = ()


class Settled(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A conflict of a merge, by its key, and which side it was settled for."""

    key: str
    resolution: str  # `use_source`, `use_target` or `custom`


class Merged(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A fork that came back: what a merge commit is about. Not `done`: proposed so far."""

    id: str  # of the proposal
    fork: str
    branch: str = ""
    strategy: str = ""
    summary: str = ""
    by: tuple[Participant, ...] = ()
    done: bool = False
    settled: tuple[Settled, ...] = ()


class Verdict(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What the decision kernel said of a step that was run; `snapshot` is that ruling's hash."""

    batch: str
    item: str
    step: str = ""
    verdict: str = ""
    confidence: str = ""  # the kernel's word; the agent's own number is another thing
    snapshot: str = ""


class Position(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """A place on the log's hash chain: up to here the decision was made."""

    stream: str
    version: int
    hash: str = ""


class Metrics(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What the answers cost; only what the agents themselves reported, added up."""

    thinking_tokens: int | None = None
    output_tokens: int | None = None
    latency_ms: int | None = None


class DecisionCommit(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """All of PVP 18.2, and what git and readers need besides; a draft has no `git_sha` yet.

    `confidence_score` is the agent's own number or None, never one of ours (OPEN-60).
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

    verdicts: tuple[Verdict, ...] = ()
    merges: tuple[Merged, ...] = ()
    session_name: str = ""
    fork: str = ""
    decided_by: tuple[Participant, ...] = ()
    decided_at: str = ""
    branch: str = ""
    parents: tuple[str, ...] = ()
    patch_id: str = ""
    first_sha: str = ""  # the commit that was linked first, where `git_sha` came to name it later
    since: int = 0  # the `seq` up to which an earlier commit of the session was linked
    until: int = 0  # the last `seq` that this one covers
    position: Position | None = None
    metrics: Metrics | None = None

    @property
    def approved_by(self) -> tuple[Participant, ...]:
        """Everybody whose yes is on record, once."""
        return tuple(sorted({approval.by for approval in self.approvals}))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that ran, once, in the order of their first use."""
        return tuple(dict.fromkeys(tool.name for tool in self.tool_executions))


def to_json(part: _Part) -> dict[str, Any]:
    """As it stands in a note."""
    found: dict[str, Any] = msgspec.to_builtins(part)
    return found


def from_json(value: Any) -> DecisionCommit:
    """Read back from a note, or `UnreadableError`; fields of a later version pass by."""
    try:
        return msgspec.convert(value, DecisionCommit)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise UnreadableError(str(error)) from error


def context(decision: DecisionCommit) -> dict[str, Any]:
    """What `prepare-commit-msg` is told: the trailers' values, nothing of the conversation."""
    told = {
        "session": decision.pvp_session,
        "decision": decision.id,
        "messages": list(decision.pvp_messages),
        "fork": decision.fork or None,
        "decision_type": decision.decision_type or None,
        "confidence": decision.confidence_score,
        "decision_by": list(decision.decided_by),
        "reviewed_by": [],  # nobody has seen what is not committed yet
        "approved_by": list(decision.approved_by),
        "tools": list(decision.tools),
    }
    return {key: value for key, value in told.items() if value is not None}
