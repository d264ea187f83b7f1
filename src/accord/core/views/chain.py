"""From what was said in a room to the decision behind a commit (PVP 18.2, GIT-MAP).

Only what the whole room heard counts, or, for work in a fork, what the whole fork did: thinking,
context, secrets and the talk of other forks are never looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.kernel.log import Event, Record
from accord.core.provenance.decision import (
    Alternative,
    DecisionCommit,
    Merged,
    Settled,
    ToolExecution,
)
from accord.core.provenance.refs import branch_of
from accord.core.provenance.thread import ConversationThread, Utterance
from accord.core.room.decisions import Ruled
from accord.core.room.forks import ForkCreated
from accord.core.room.grants import ToolCleared
from accord.core.room.merges import MergeExecuted, MergeProposed
from accord.core.room.prompts import PromptAmended, PromptSubmitted
from accord.core.room.streams import ResponseChunked, ResponseEnded, ResponseStarted
from accord.core.room.tools import ToolFinished, ToolPrinted, ToolProposed
from accord.core.room.votes import Approved, GatePassed, Rejected
from accord.core.views.findings import Findings
from accord.core.views.stretch import Stretch

COUNTED = ("thinking_tokens", "output_tokens", "latency_ms")


class Drafted(NamedTuple):
    """A decision that no commit carries yet, and what was said on the way to it."""

    decision: DecisionCommit
    thread: ConversationThread


def drafted(
    stretch: Stretch, records: Sequence[Record], earlier: Mapping[str, Record]
) -> Drafted | None:
    """What led to a commit made after these; None when nothing was asked, done or approved.

    `records` are as `heard` gives them; `earlier` has what they cite, said before.
    """
    found = Findings(stretch, earlier)
    for record in records:
        found.known[record.id] = record
        if add := ADDS.get(type(record.event)):
            add(found, record.event, record)
    if not found.chain or found.only_reports:
        return None
    last = next(record for record in reversed(records) if record.seq)
    return Drafted(found.decision(last), found.thread())


def prompted(found: Findings, event: PromptSubmitted, record: Record) -> None:
    """Somebody asked for it."""
    found.link(record.id, by=record.sender)
    found.say(record, event.said.content)


def amended(found: Findings, event: PromptAmended, record: Record) -> None:
    """Somebody asked for something else."""
    found.link(record.id, by=record.sender)
    found.say(record, event.said.amendment)


def answering(found: Findings, event: ResponseStarted, record: Record) -> None:
    """Nothing yet; a commit may be made before the answer ends."""
    found.say(record, "")


def answered(found: Findings, event: ResponseChunked, record: Record) -> None:
    """More of an answer, which may have begun before the last commit."""
    name = record.ref or ""
    begun = found.said.get(name)
    if begun is None:
        begun = Utterance(name, "response.start", *found.by_and_at(record))
    found.said[name] = begun._replace(content=begun.content + event.said.text)


def ended(found: Findings, event: ResponseEnded, record: Record) -> None:
    """The answer, whole; what it cost and how sure its agent is."""
    found.link(record.id)
    begun = found.said.pop(record.ref or "", None)
    found.say(record, begun.content if begun else "")
    found.be_sure(event.said.metadata)
    for name in COUNTED:
        if (count := getattr(event.said.usage, name, None)) is not None:
            found.cost[name] = found.cost.get(name, 0) + count


def proposed(found: Findings, event: ToolProposed, record: Record) -> None:
    """What an agent wants; what it is run with may hold anything and is not told."""
    found.say(record, f"{event.said.tool_name}: {event.said.description}")


def approved(found: Findings, event: Approved, record: Record) -> None:
    """A vote; it counts once its gate has passed."""
    found.votes[event.gate, event.seat] = record
    found.say(record, getattr(event.said, "comment", None) or "")


def passed(found: Findings, event: GatePassed, record: Record) -> None:
    """The approvals, and the votes that gave them."""
    found.ask(event.gate)
    for seat in event.approved_by:
        found.approve(event.gate, seat)


def rejected(found: Findings, event: Rejected, record: Record) -> None:
    """Something that was proposed and not done."""
    reason = getattr(event.said, "reason", "")
    found.say(record, reason)
    found.merges.pop(found.action(event.gate), None)
    about = found.known.get(found.action(event.gate))
    if about is None:
        return
    kind = "merge" if isinstance(about.event, MergeProposed) else "proposal"
    words = getattr(about.said, "description", "") or getattr(about.said, "summary", "")
    by = (found.called(event.seat),)
    found.others.append(
        Alternative(kind=kind, id=about.id, description=words, reason=reason, by=by)
    )


def cleared(found: Findings, event: ToolCleared, record: Record) -> None:
    """A tool that may run, with the prompt that it serves, however long ago that was."""
    proposal = found.known.get(event.said.tool_proposal)
    if proposal is None or not isinstance(made := proposal.event, ToolProposed):
        return
    asked = found.known.get(proposal.ref or "")
    if asked is not None and isinstance(asked.event, PromptSubmitted):
        prompted(found, asked.event, asked)
    said = made.said
    found.link(proposal.id, by=said.agent)
    found.link(record.id)
    found.weigh(proposal.id, said.arguments)
    path = said.arguments.get("path")
    found.tools[proposal.id] = ToolExecution(
        id=proposal.id,
        name=said.tool_name,
        agent=found.called(said.agent),
        category=said.category.value,
        risk=said.risk_level.value,
        path=path if isinstance(path, str) else "",
        description=said.description,
        outcome="unfinished",
        approved_by=tuple(map(found.called, event.said.approved_by)),
    )


def ruled(found: Findings, event: Ruled, record: Record) -> None:
    """What the kernel says from now on."""
    content: Any = event.said.content  # the server's own, always an object
    found.rulings[event.said.key] = content


def printed(found: Findings, event: ToolPrinted, record: Record) -> None:
    """What it printed is vouched for and not told."""
    if event.said.tool_proposal in found.tools:
        found.vouch(event.said.tool_proposal, [event.said.stream, event.said.text])


def finished(found: Findings, event: ToolFinished, record: Record) -> None:
    """How it ended; one that ran for an earlier commit is that one's."""
    said = event.said
    if said.tool_proposal not in found.tools:
        found.reported = True
        return
    found.be_sure(said.metadata)
    if said.result is not None:
        found.vouch(said.tool_proposal, said.result)
    tool = found.tools[said.tool_proposal]
    outcome = "success" if said.success else "failure"
    found.tools[tool.id] = replace(tool, outcome=outcome, duration_ms=said.duration_ms)


def forked(found: Findings, event: ForkCreated, record: Record) -> None:
    """Another way that was tried and has not come back."""
    fork = found.room.forks.get(record.fork or "")
    if fork is None or fork.merged or event.parent != found.stretch.fork:
        return
    by = (found.called(record.sender),)
    words = event.said.reason
    found.others.append(
        Alternative(kind="fork", id=fork.id, description=words, by=by, branch=branch_of(fork.id))
    )


def merging(found: Findings, event: MergeProposed, record: Record) -> None:
    """Somebody wants a fork's work here."""
    said = event.said
    found.link(record.id, by=record.sender)
    found.say(record, said.summary)
    found.merges[record.id] = Merged(
        id=record.id,
        fork=said.source_fork,
        branch=branch_of(said.source_fork),
        strategy=said.strategy.value,
        summary=said.summary,
        by=(found.called(record.sender),),
    )


def merged(found: Findings, event: MergeExecuted, record: Record) -> None:
    """It is here, and how conflicts were settled; with what is for the shelf alone."""
    proposal = found.known.get(event.said.merge_proposal)
    if proposal is None or not isinstance(wanted := proposal.event, MergeProposed):
        return
    if proposal.id not in found.merges:
        merging(found, wanted, proposal)
    found.link(record.id, by=record.sender)
    begun = found.merges[proposal.id]
    answers = event.said.resolved_conflicts or ()
    found.merges[proposal.id] = replace(
        begun,
        done=True,
        by=tuple(sorted({*begun.by, found.called(record.sender)})),
        settled=tuple(Settled(key=a.conflict_id, resolution=a.resolution) for a in answers),
    )


ADDS: Mapping[type[Event], Callable[[Findings, Any, Record], None]] = {
    PromptSubmitted: prompted,
    PromptAmended: amended,
    ResponseStarted: answering,
    ResponseChunked: answered,
    ResponseEnded: ended,
    ToolProposed: proposed,
    Approved: approved,
    GatePassed: passed,
    Rejected: rejected,
    Ruled: ruled,
    ToolCleared: cleared,
    ToolPrinted: printed,
    ToolFinished: finished,
    ForkCreated: forked,
    MergeProposed: merging,
    MergeExecuted: merged,
}
