"""A reason as a person reads it: the commit, the decision, who agreed, what lost, what was said."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from accord.show import paint
from accord.show.facts import Fact, folded, labelled
from accord.show.prose import railed
from accord.show.text import count, line, listed, moment, width, wrapped

if TYPE_CHECKING:
    from accord.core.provenance.decision import Approval, DecisionCommit, Merged
    from accord.core.provenance.thread import Utterance
    from accord.git.why import Reason
    from accord.pact.accepted import Acceptance

    Accepted = Mapping[str, Sequence[Acceptance]]

SHORT = 10
INDENT = "  "
MOST_SAID = 12
MOST_MESSAGES = 8
MOST_TASKS = 5
MOST_EVIDENCE = 400
SEALED = "the pact's log here, signed with the key that its roster has for the reviewer"
UNSEALED = "the pact's log here; no signature proves who wrote it"
# What somebody did by saying something of this type.
DOES = {
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
SAYS = "says"


def answer(reasons: list["Reason"], accepted: "Accepted", *, whole: bool) -> Iterator[str]:
    """All of them; of several commits, each in short."""
    if not reasons:
        yield "This is not committed yet, so git knows of no reason"
    brief = len(reasons) > 1
    for number, reason in enumerate(reasons):
        yield from [""] if number else []
        tasks = accepted.get(reason.commit.sha, ())
        yield from shown(reason, tasks, whole=whole, brief=brief)


def shown(
    reason: "Reason", tasks: "Sequence[Acceptance]", *, whole: bool, brief: bool
) -> Iterator[str]:
    """One commit."""
    from accord.core.provenance.record import decisions_of

    commit = reason.commit
    yield from _place(reason)
    first, *rest = folded(line(plain(commit.subject)), width() - SHORT - 1)
    yield f"{paint.yellow(commit.sha[:SHORT])} {paint.bold(first)}"
    yield from (f"{' ' * SHORT} {paint.bold(each)}" for each in rest)
    yield f"{INDENT}{paint.dim(f'{line(plain(commit.author))}, {minute(commit.at)}')}"
    made = decisions_of(reason.record)
    if not made:
        yield from _unknown(reason)
        yield from _tasks(tasks, reason, brief=brief)
        return
    if reason.by not in {"note", "commit"} or len(made) > 1:
        yield from wrapped(_origin(reason, len(made)), INDENT)
    for each in made:
        yield from [] if brief else [""]
        yield from _decision(each, reason)
    yield from _tasks(tasks, reason, brief=brief)
    if not brief:
        yield from _conversation(reason, whole=whole)


def _place(reason: "Reason") -> Iterator[str]:
    """The line that was asked about, or how many."""
    if len(reason.lines) == 1:
        only = reason.lines[0]
        yield f"{line(plain(only.path))}:{only.number}"
        yield from railed(plain(only.text), indent=INDENT)
    elif reason.lines:
        yield f"{line(plain(reason.lines[0].path))}, {count(len(reason.lines), 'line')}"


def _origin(reason: "Reason", number: int) -> str:
    """By which sign the decisions were found."""
    from accord.git.why import SIGNS

    return f"comes of {count(number, 'decision')}, found by {SIGNS[reason.by]}"


def _unknown(reason: "Reason") -> Iterator[str]:
    """No record: what the message itself says, if anything."""
    message = reason.message
    yield f"{INDENT}No decision is on record for this commit"
    if message.session_id:
        yield f"{INDENT}Its message names the session {line(message.session_id)}"
    told = [
        (name, f"{people(map(str, who))}, as the message says")
        for name, who in (
            ("decided by", message.decided_by),
            ("approved by", message.approved_by),
            ("reviewed by", message.reviewed_by),
        )
        if who
    ]
    yield from labelled(told, INDENT)


def _reviews(decision: str, reason: "Reason") -> Iterator[Fact]:
    """Who saw this commit; a review of one whose place it took says which that was."""
    says = ", as the record in git says" if decision in reason.vouched else ""
    seen: dict[str, list[str]] = {}
    for each in reason.reviews:
        if each.decision == decision:
            seen.setdefault(each.commit, []).append(each.by)
    for commit, by in seen.items():
        other = "" if commit == reason.commit.sha else f", as it was in {line(commit)[:SHORT]}"
        yield "reviewed by", f"{people(by)}{other}{says}"


# A task of a pact


def _tasks(tasks: "Sequence[Acceptance]", reason: "Reason", *, brief: bool) -> Iterator[str]:
    """What the commit was accepted with, as the log of the pact says."""
    for each in tasks[:MOST_TASKS]:
        yield from [] if brief else [""]
        yield f"{INDENT}{paint.cyan(line(each.task))} · {line(each.feature)}"
        yield from labelled(_task(each, reason), INDENT * 2)
    if len(tasks) > MOST_TASKS:
        yield f"{INDENT}… and {count(len(tasks) - MOST_TASKS, 'more task')}"


def _task(given: "Acceptance", reason: "Reason") -> Iterator[Fact]:
    other = given.commit != reason.commit.sha
    yield "done by", line(given.owner)
    name = paint.green if given.signed else str
    with_ = f", with all of {line(given.commit)[:SHORT]}" if other else ""
    yield "accepted by", f"{name(line(given.by))}, {minute(given.at)}{with_}"
    yield "evidence", line(given.evidence)[:MOST_EVIDENCE]
    yield "source", SEALED if given.signed else UNSEALED


# A decision


def _decision(made: "DecisionCommit", reason: "Reason") -> Iterator[str]:
    """Who, who agreed, to what, instead of what; then with what and from where."""
    kind = f" · {line(made.decision_type)}" if made.decision_type else ""
    yield f"{INDENT}{paint.cyan(line(made.id))}{kind}"
    yield from labelled(_facts(made, reason), INDENT * 2)


def _facts(made: "DecisionCommit", reason: "Reason") -> Iterator[Fact]:
    """Names and values; an empty value is not shown."""
    from accord.core.provenance import confidence

    at = f", {minute(made.decided_at)}" if made.decided_at else ""
    yield "decided by", f"{people(made.decided_by)}{at}" if made.decided_by else at[2:]
    vouched = made.id in reason.vouched
    name = paint.green if vouched else str
    for said in dict.fromkeys(_approval(each, made, name) for each in made.approvals):
        yield "approved by", said
    yield from _reviews(made.id, reason)
    for other in made.alternatives_considered:
        because = f": {line(other.reason)}" if other.reason else ""
        yield "instead of", f"{line(other.description or other.id)}{because}"
    for merge in made.merges:
        yield "merges", _merge(merge)
    for ruled in made.verdicts:
        sure = f", confidence {ruled.confidence}" if ruled.confidence else ""
        yield "verdict", line(f"{ruled.batch}/{ruled.item}: {ruled.verdict or 'unknown'}{sure}")
    yield "tools", listed(line(each) for each in made.tools)
    score = made.confidence_score
    yield "confidence", "" if score is None else f"{confidence.band(score)} ({score:.2f})"
    yield "session", ", ".join(filter(None, (line(made.session_name), line(made.pvp_session))))
    yield "fork", line(made.fork)
    on = f" on {line(made.branch)}" if made.branch else ""
    first = made.first_sha or made.git_sha
    moved = first and first != reason.commit.sha
    yield "first as", f"{line(first[:SHORT])}{on}" if moved else ""
    yield "source", _source(made, reason)


def _source(made: "DecisionCommit", reason: "Reason") -> str:
    """Whose word it is: anybody can write a note, and nobody the server's log."""
    if (sha := reason.vouched.get(made.id)) is not None:
        other = f", for {line(sha[:SHORT])}" if sha != reason.commit.sha else ""
        return f"the log of your server{other}"
    if made.position:
        return "a record in git; no server here vouches for it"
    return "the commit's own trailers; no server vouches for it"


def _approval(given: "Approval", made: "DecisionCommit", name: Callable[[str], str]) -> str:
    what = _action(given.action, made)
    about = f" for {line(what)}" if what else ""
    own = ", their own proposal" if given.self_approved else ""
    said = f": {line(given.comment)}" if given.comment else ""
    return f"{name(line(given.by))}{about}{own}{said}"


def _action(id: str, made: "DecisionCommit") -> str:
    """What an approval was about, in its own words where the record has them."""
    for tool in made.tool_executions:
        if tool.id == id:
            return tool.description or tool.name
    for merge in made.merges:
        if merge.id == id:
            return f"the merge of {merge.fork}"
    return id


def _merge(merge: "Merged") -> str:
    where = f" ({line(merge.branch)})" if merge.branch else ""
    said = f": {line(merge.summary)}" if merge.summary else ""
    yet = "" if merge.done else "; only proposed then"
    settled = "".join(f"; {line(s.key)}: {line(s.resolution)}" for s in merge.settled)
    return f"fork {line(merge.fork)}{where}{said}{settled}{yet}"


# The conversation


def _conversation(reason: "Reason", *, whole: bool) -> Iterator[str]:
    """What was said, the beginning of each unless all is wanted; a day is named once."""
    from accord.core.provenance.record import decisions_of, thread_of

    said = list(thread_of(reason.record).messages)
    if not said:
        return
    vouched = all(each.id in reason.vouched for each in decisions_of(reason.record))
    yield ""
    yield f"{INDENT}{paint.bold('What was said')}{'' if vouched else ', as git has it'}"
    kept = said if whole else said[:MOST_MESSAGES]
    day = ""
    for each in kept:
        today = f"{moment(each.timestamp):%Y-%m-%d}"
        if today != day:
            yield f"{INDENT * 2}{paint.dim(today)}"
        day = today
        yield from _utterance(each, whole=whole)
    if len(kept) < len(said):
        left = count(len(said) - len(kept), "more message")
        yield f"{INDENT * 2}… {left}; --whole shows all"


def _utterance(said: "Utterance", *, whole: bool) -> Iterator[str]:
    at = paint.dim(f"{moment(said.timestamp):%H:%M}")
    yield f"{INDENT * 2}{at}  {line(said.sender)} {DOES.get(said.type, SAYS)}"
    if said.content.strip():
        yield from wrapped(said.content, " " * 11, None if whole else MOST_SAID)


def people(names: Iterable[str]) -> str:
    """`human:alice and ai:claude`."""
    return listed(line(each) for each in names)


def minute(at: str) -> str:
    """A moment, to the minute."""
    return f"{moment(at):%Y-%m-%d %H:%M}"


def plain(text: str) -> str:
    """Words of git that may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
