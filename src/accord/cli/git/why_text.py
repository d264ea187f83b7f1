"""The text of `accord why`: commit, decision, approvals, alternatives, conversation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from accord.cli.git.coverage_text import approval_values, claim_value, coverage_sentence
from accord.show import style
from accord.show.labelled_values import LabelledValue, render_labelled, wrap_words
from accord.show.text import (
    clip,
    join_words,
    local_time,
    one_line,
    plural,
    replace_surrogates,
    text_width,
    wrap,
)
from accord.show.transcript import render_listing

if TYPE_CHECKING:
    from accord.core.provenance.decision_commit import (
        DecisionCommit,
        ForkMerge,
        ResolvedConflict,
        Utterance,
    )
    from accord.git.why import CommitExplanation
    from accord.pact.acceptance import Acceptance

    AcceptancesByCommit = Mapping[str, Sequence[Acceptance]]

SHORT_SHA_LENGTH = 10
INDENT = "  "
MAX_MESSAGE_LINES = 12
MAX_MESSAGES = 8
MAX_TASKS = 5
MAX_EVIDENCE_LENGTH = 400
MAX_NAME_COLUMNS = 40
SIGNED_SOURCE = "the pact's log here, signed with the reviewer's key from its roster"
UNSIGNED_SOURCE = "the pact's log here; no signature proves who wrote it"
# What a message of this type does.
VERB_BY_TYPE = {
    "prompt.submit": "asks",
    "prompt.amend": "asks for more",
    "response.start": "answers",
    "response.end": "answers",
    "tool.propose": "proposes",
    "tool.approve": "approves",
    "gate.approve": "approves",
    "tool.reject": "rejects",
    "gate.reject": "rejects",
    "merge.propose": "proposes to merge",
}
OTHER_VERB = "says"


def render_reasons(
    reasons: list["CommitExplanation"], accepted: "AcceptancesByCommit", *, whole: bool
) -> Iterator[str]:
    """All explanations; several commits are shown in brief."""
    if not reasons:
        yield "This is not committed yet, so there is no record of a reason"
    brief = len(reasons) > 1
    for number, reason in enumerate(reasons):
        yield from [""] if number else []
        tasks = accepted.get(reason.commit.sha, ())
        yield from render_reason(reason, tasks, whole=whole, brief=brief)


def render_reason(
    reason: "CommitExplanation", tasks: "Sequence[Acceptance]", *, whole: bool, brief: bool
) -> Iterator[str]:
    """The explanation of one commit."""
    from accord.core.provenance.decision_commit import decisions_of

    commit = reason.commit
    yield from _render_location(reason)
    first, *rest = wrap_words(
        one_line(replace_surrogates(commit.subject)), text_width() - SHORT_SHA_LENGTH - 1
    )
    yield f"{style.yellow(commit.sha[:SHORT_SHA_LENGTH])} {style.bold(first)}"
    yield from (f"{' ' * SHORT_SHA_LENGTH} {style.bold(line)}" for line in rest)
    author = one_line(replace_surrogates(commit.author))
    yield f"{INDENT}{style.dim(f'{author}, {format_minute(commit.at)}')}"
    decisions = decisions_of(reason.record)
    if not decisions:
        yield from _render_no_decision(reason)
        yield from _render_tasks(tasks, reason, brief=brief)
        return
    for sentence in filter(None, (coverage_sentence(reason), _claim(reason))):
        yield from wrap(sentence, INDENT)
    if reason.by not in {"note", "commit"} or len(decisions) > 1:
        yield from wrap(_origin(reason, len(decisions)), INDENT)
    for decision in decisions:
        yield from [] if brief else [""]
        yield from _render_decision(decision, reason)
    yield from _render_tasks(tasks, reason, brief=brief)
    if not brief:
        yield from _render_conversation(reason, whole=whole)


def _claim(reason: "CommitExplanation") -> str:
    claimed = claim_value(reason)
    return f"{claimed[:1].upper()}{claimed[1:]}"


def _render_location(reason: "CommitExplanation") -> Iterator[str]:
    """The line in question, or the number of lines."""
    if len(reason.lines) == 1:
        only = reason.lines[0]
        yield f"{one_line(replace_surrogates(only.path))}:{only.number}"
        yield from render_listing(replace_surrogates(only.text), indent=INDENT)
    elif reason.lines:
        path = one_line(replace_surrogates(reason.lines[0].path))
        yield f"{path}, {plural(len(reason.lines), 'line')}"


def _origin(reason: "CommitExplanation", number: int) -> str:
    """How the decisions were found."""
    from accord.git.why import LINK_LABELS

    return f"follows from {plural(number, 'decision')}, found by {LINK_LABELS[reason.by]}"


def _render_no_decision(reason: "CommitExplanation") -> Iterator[str]:
    """That there is no record, and what the commit message itself claims."""
    message = reason.message
    yield f"{INDENT}There is no recorded decision for this commit"
    if message.session_id:
        yield f"{INDENT}Its message names the session {one_line(message.session_id)}"
    claims = [
        (name, f"{join_names(map(str, who))}, according to the message")
        for name, who in (
            ("decided by", message.decided_by),
            ("reviewed by", message.reviewed_by),
        )
        if who
    ]
    yield from render_labelled([*claims, ("claim", claim_value(reason))], INDENT)


def _review_values(decision: str, reason: "CommitExplanation") -> Iterator[LabelledValue]:
    """Who reviewed the commit, or an earlier version of it."""
    source = ", according to the record in git" if decision in reason.vouched else ""
    seen: dict[str, list[str]] = {}
    for review in reason.reviews:
        if review.decision == decision:
            seen.setdefault(review.commit, []).append(review.by)
    for commit, by in seen.items():
        other = (
            ""
            if commit == reason.commit.sha
            else f", as it was in {one_line(commit)[:SHORT_SHA_LENGTH]}"
        )
        yield "reviewed by", f"{join_names(by)}{other}{source}"


# A task of a pact


def _render_tasks(
    tasks: "Sequence[Acceptance]", reason: "CommitExplanation", *, brief: bool
) -> Iterator[str]:
    """The tasks that the commit was accepted for, from the pact's log."""
    for task in tasks[:MAX_TASKS]:
        yield from [] if brief else [""]
        yield f"{INDENT}{style.cyan(one_line(task.task))} · {one_line(task.feature)}"
        yield from render_labelled(_task_values(task, reason), INDENT * 2)
    if len(tasks) > MAX_TASKS:
        yield f"{INDENT}… and {plural(len(tasks) - MAX_TASKS, 'more task')}"


def _task_values(given: "Acceptance", reason: "CommitExplanation") -> Iterator[LabelledValue]:
    other = given.commit != reason.commit.sha
    yield "done by", one_line(given.owner)
    name = style.green if given.signed else str
    with_ = f", with all of {one_line(given.commit)[:SHORT_SHA_LENGTH]}" if other else ""
    yield "accepted by", f"{name(one_line(given.by))}, {format_minute(given.at)}{with_}"
    yield "evidence", one_line(given.evidence)[:MAX_EVIDENCE_LENGTH]
    yield "source", SIGNED_SOURCE if given.signed else UNSIGNED_SOURCE


# A decision


def _render_decision(made: "DecisionCommit", reason: "CommitExplanation") -> Iterator[str]:
    """The decision's id and all its values."""
    kind = f" · {one_line(made.decision_type)}" if made.decision_type else ""
    yield f"{INDENT}{style.cyan(one_line(made.id))}{kind}"
    yield from render_labelled(_decision_values(made, reason), INDENT * 2)


def _decision_values(
    made: "DecisionCommit", reason: "CommitExplanation"
) -> Iterator[LabelledValue]:
    """Labels and values; empty values are not shown."""
    from accord.core.provenance.commit_message import trailer_values

    at = f", {format_minute(made.decided_at)}" if made.decided_at else ""
    deciders = join_names(named(participant, made) for participant in made.decided_by)
    yield ("decided by", f"{deciders}{at}") if made.decided_by else ("decided at", at[2:])
    vouched = made.id in reason.vouched
    name = style.green if vouched else str
    yield from dict.fromkeys(
        approval_values(made, reason, lambda who: one_line(named(who, made)), name)
    )
    yield from _review_values(made.id, reason)
    for other in made.alternatives_considered:
        because = f": {one_line(other.reason)}" if other.reason else ""
        yield "instead of", f"{one_line(other.description or other.id)}{because}"
    for merge in made.merges:
        yield "merges", _merge(merge)
    for ruled in made.verdicts:
        sure = f", confidence {ruled.confidence}" if ruled.confidence else ""
        yield "verdict", one_line(f"{ruled.batch}/{ruled.item}: {ruled.verdict or 'unknown'}{sure}")
    yield "tools", join_words(map(one_line, made.tools))
    score = made.confidence_score
    yield "confidence", "" if score is None else f"{trailer_values.band_of(score)} ({score:.2f})"
    yield (
        "session",
        ", ".join(filter(None, (one_line(made.session_name), one_line(made.pvp_session)))),
    )
    yield "fork", one_line(made.fork)
    on = f" on {one_line(made.branch)}" if made.branch else ""
    first = made.first_sha or made.git_sha
    moved = first and first != reason.commit.sha
    yield "first as", f"{one_line(first[:SHORT_SHA_LENGTH])}{on}" if moved else ""
    yield "source", _source(made, reason)


def _source(made: "DecisionCommit", reason: "CommitExplanation") -> str:
    """Where the decision comes from: anyone can write a note, only the server its log."""
    if (sha := reason.vouched.get(made.id)) is not None:
        other = f", for {one_line(sha[:SHORT_SHA_LENGTH])}" if sha != reason.commit.sha else ""
        return f"the log of your server{other}"
    if made.position or not reason.message.has_context:
        return "a record in git, not confirmed by a server"
    return "the commit's own trailers, not confirmed by a server"


def _settled(conflict: "ResolvedConflict") -> str:
    """How a conflict was resolved; a value that the executor wrote was shown at no gate."""
    mark = " (not approved)" if conflict.not_approved else ""
    return f"{one_line(conflict.key)}: {one_line(conflict.resolution)}{mark}"


def _merge(merge: "ForkMerge") -> str:
    where = f" ({one_line(merge.branch)})" if merge.branch else ""
    summary = f": {one_line(merge.summary)}" if merge.summary else ""
    pending = "" if merge.done else "; only proposed at that time"
    settled = "".join(f"; {_settled(conflict)}" for conflict in merge.settled)
    return f"fork {one_line(merge.fork)}{where}{summary}{settled}{pending}"


# The conversation


def _render_conversation(reason: "CommitExplanation", *, whole: bool) -> Iterator[str]:
    """The conversation, shortened unless `whole`, with a line for each day."""
    from accord.core.provenance.decision_commit import decisions_of, thread_of

    messages = list(thread_of(reason.record).messages)
    if not messages:
        return
    vouched = all(made.id in reason.vouched for made in decisions_of(reason.record))
    yield ""
    yield f"{INDENT}{style.bold('Conversation')}{'' if vouched else ', from the record in git'}"
    shown = messages if whole else messages[:MAX_MESSAGES]
    day = ""
    for message in shown:
        today = f"{local_time(message.timestamp):%Y-%m-%d}"
        if today != day:
            yield f"{INDENT * 2}{style.dim(today)}"
        day = today
        yield from _render_utterance(message, whole=whole)
    if len(shown) < len(messages):
        hidden = plural(len(messages) - len(shown), "more message")
        yield f"{INDENT * 2}… {hidden}; --whole shows all"


def _render_utterance(message: "Utterance", *, whole: bool) -> Iterator[str]:
    at = style.dim(f"{local_time(message.timestamp):%H:%M}")
    verb = VERB_BY_TYPE.get(message.type, OTHER_VERB)
    yield f"{INDENT * 2}{at}  {one_line(message.sender)} {verb}"
    if message.content.strip():
        yield from wrap(message.content, " " * 11, None if whole else MAX_MESSAGE_LINES)


def named(participant: str, made: "DecisionCommit") -> str:
    """`human:alice (Alice Ash)`: the id, and the name that its owner chose."""
    name = clip(one_line(made.names.get(participant, "")), MAX_NAME_COLUMNS)
    return f"{participant} ({name})" if name else participant


def join_names(names: Iterable[str]) -> str:
    """`human:alice and ai:claude`."""
    return join_words(map(one_line, names))


def format_minute(at: str) -> str:
    """`2026-01-30 20:01`, in local time."""
    return f"{local_time(at):%Y-%m-%d %H:%M}"
