"""From the records of a room to the decision behind a commit (PVP 18.2, GIT-MAP).

Only records that the whole room received count or, for work in a fork, the whole fork: thinking,
context, secrets and the conversations of other forks are never used.

What another clone has already committed is no part of the next decision. Each clone of a repository
counts its own commits. A run that a commit of another clone contains is left out, with its prompt,
unless that prompt led to other runs as well.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.kernel.records import Event, Record
from accord.core.provenance.commit_message.trailer_values import branch_of
from accord.core.provenance.coverage.recorded_run import parse_recorded_run
from accord.core.provenance.decision_commit import (
    Alternative,
    ConversationThread,
    DecisionCommit,
    ForkMerge,
    ResolvedConflict,
    ToolExecution,
    Utterance,
)
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import GrantEnded, GrantTakenBack, ToolCleared
from accord.core.room.approval.tool_proposals import (
    ToolExpired,
    ToolFinished,
    ToolPrinted,
    ToolProposed,
    ToolRanLate,
)
from accord.core.room.approval.votes import GateApproved, GatePassed, GateRejected
from accord.core.room.conversation.prompts import PromptAmended, PromptSubmitted
from accord.core.room.conversation.responses import ResponseChunked, ResponseEnded, ResponseStarted
from accord.core.room.decisions.rulings import DecisionRuled
from accord.core.room.forking.forks import ForkCreated
from accord.core.room.forking.merge_approval import CommitReported
from accord.core.room.forking.merges import MergeExecuted, MergePropose, MergeProposed
from accord.core.views.commit_decision.decision_builder import (
    FAILURE,
    NOT_REPORTED,
    RAN_LATE,
    SUCCESS,
    TAKEN_BACK,
    UNFINISHED,
    CommitRange,
    DecisionBuilder,
    ToolRun,
    reported_files,
)

# The record that a record is about; other records are kept.
SUBJECTS: Mapping[type[Event], Callable[[Any], str]] = {
    PromptSubmitted: lambda record: record.id,
    PromptAmended: lambda record: record.event.said.original_prompt,
    ResponseStarted: lambda record: record.event.said.prompt_ref,
    ResponseChunked: lambda record: record.ref or "",
    ResponseEnded: lambda record: record.ref or "",
    ToolProposed: lambda record: record.id,
    ToolCleared: lambda record: record.event.said.tool_proposal,
    GateOpened: lambda record: record.event.said.action_ref,
    GateApproved: lambda record: record.event.gate,
    GatePassed: lambda record: record.event.gate,
    GateRejected: lambda record: record.event.gate,
}
OPENING_EVENTS = (ResponseStarted, GateOpened)  # later records are about these
METRIC_FIELDS = ("thinking_tokens", "output_tokens", "latency_ms")


class DecisionDraft(NamedTuple):
    """A decision that is not linked to a commit yet, and the conversation that led to it.

    `runs` are its calls as they were approved; they contain what a record must not.
    """

    decision: DecisionCommit
    thread: ConversationThread
    runs: tuple[ToolRun, ...] = ()


def without_committed_elsewhere(
    repo: str, records: Sequence[Record], earlier: Mapping[str, Record]
) -> list[Record]:
    """The records without what commits of other repositories contain."""
    runs = {
        run
        for record in records
        if isinstance(event := record.event, CommitReported) and event.repo != repo
        for run in event.runs
    }
    if not runs:
        return list(records)
    left_out = runs | _answered_prompts(runs, records, earlier)
    left_out |= {
        id
        for id, record in earlier.items()
        if isinstance(event := record.event, GateOpened) and event.said.action_ref in runs
    }
    return list(_kept(records, left_out))


def _answered_prompts(
    runs: set[str], records: Sequence[Record], earlier: Mapping[str, Record]
) -> set[str]:
    """The prompts that led to these runs and to no other."""
    by_id = {**earlier, **{record.id: record for record in records}}
    answered: set[str] = set()
    open_still: set[str] = set()
    for record in records:
        if isinstance(event := record.event, ToolCleared):
            proposal = by_id.get(event.said.tool_proposal)
            prompt = (proposal.ref if proposal else None) or ""
            (answered if event.said.tool_proposal in runs else open_still).add(prompt)
    return answered - open_still


def _kept(records: Sequence[Record], left_out: set[str]) -> Iterator[Record]:
    for record in records:
        subject = SUBJECTS.get(type(record.event))
        if subject is None or subject(record) not in left_out:
            yield record
        elif isinstance(record.event, OPENING_EVENTS):
            left_out.add(record.id)


def draft_decision(
    commit_range: CommitRange,
    records: Sequence[Record],
    earlier: Mapping[str, Record],
    last: Record | None = None,
) -> DecisionDraft | None:
    """The decision behind a commit made after these; None if nothing was asked, done or approved.

    `records` come from `records_in_range`, after those of carried runs; `earlier` has the older
    records that they cite. `last` is where the decision ends, by default with these records.
    """
    builder = DecisionBuilder(commit_range, earlier)
    for record in without_committed_elsewhere(commit_range.repo, records, earlier):
        builder.records_by_id[record.id] = record
        if add := EVENT_HANDLERS.get(type(record.event)):
            add(builder, record.event, record)
    if not builder.message_ids or builder.only_reports:
        return None
    last = last or next(record for record in reversed(records) if record.seq)
    decision, runs = builder.build_decision(last), tuple(builder.runs.values())
    return DecisionDraft(decision, builder.build_thread(), runs)


def on_prompt(builder: DecisionBuilder, event: PromptSubmitted, record: Record) -> None:
    """Remember the prompt; who sent it decided only what then ran."""
    builder.asked = True
    builder.add_message(record.id)
    builder.add_utterance(record, event.said.content)


def on_amendment(builder: DecisionBuilder, event: PromptAmended, record: Record) -> None:
    builder.asked = True
    builder.add_message(record.id)
    builder.amendments.setdefault(event.said.original_prompt, []).append(record.sender)
    builder.add_utterance(record, event.said.amendment)


def on_response_start(builder: DecisionBuilder, event: ResponseStarted, record: Record) -> None:
    """Start an empty utterance, because a commit may be made before the response ends."""
    builder.add_utterance(record, "")


def on_response_chunk(builder: DecisionBuilder, event: ResponseChunked, record: Record) -> None:
    """Append to a response, which may have started before the last commit."""
    name = record.ref or ""
    started = builder.utterances.get(name)
    if started is None:
        started = Utterance(name, "response.start", *builder.sender_and_time(record))
    builder.utterances[name] = started._replace(content=started.content + event.said.text)


def on_response_end(builder: DecisionBuilder, event: ResponseEnded, record: Record) -> None:
    """Complete the response, with its metrics and the agent's confidence."""
    builder.add_message(record.id)
    started = builder.utterances.pop(record.ref or "", None)
    builder.add_utterance(record, started.content if started else "")
    builder.set_confidence(event.said.metadata)
    for name in METRIC_FIELDS:
        if (count := getattr(event.said.usage, name, None)) is not None:
            builder.metrics[name] = builder.metrics.get(name, 0) + count


def on_proposal(builder: DecisionBuilder, event: ToolProposed, record: Record) -> None:
    """Tool name and description; the arguments of what ran are with its execution."""
    builder.add_utterance(record, f"{event.said.tool_name}: {event.said.description}")


def on_approval(builder: DecisionBuilder, event: GateApproved, record: Record) -> None:
    """Remember the vote; it becomes an approval when its gate passes."""
    builder.votes[event.gate, event.seat] = record
    builder.add_utterance(record, getattr(event.said, "comment", None) or "")


def on_gate_passed(builder: DecisionBuilder, event: GatePassed, record: Record) -> None:
    builder.add_gate_ruling(event.gate)
    for seat in event.approved_by:
        if seat not in (event.standing or ()):  # a standing grant votes, but approves no commit
            builder.add_approval(event.gate, seat)


def on_rejection(builder: DecisionBuilder, event: GateRejected, record: Record) -> None:
    """Record the rejected proposal as an alternative."""
    reason = getattr(event.said, "reason", "")
    builder.add_utterance(record, reason)
    builder.merges.pop(builder.action_of(event.gate), None)
    rejected = builder.records_by_id.get(builder.action_of(event.gate))
    if rejected is None:
        return
    kind = "merge" if isinstance(rejected.event, MergeProposed) else "proposal"
    description = getattr(rejected.said, "description", "") or getattr(rejected.said, "summary", "")
    by = (builder.participant_of(event.seat),)
    builder.alternatives.append(
        Alternative(kind=kind, id=rejected.id, description=description, reason=reason, by=by)
    )


def on_tool_cleared(builder: DecisionBuilder, event: ToolCleared, record: Record) -> None:
    """Add the tool, and the prompt that it serves even if that is older than the range."""
    proposal = builder.records_by_id.get(event.said.tool_proposal)
    if proposal is None or not isinstance(proposed := proposal.event, ToolProposed):
        return
    said = proposed.said
    deciders = [said.agent]
    prompt = builder.records_by_id.get(proposal.ref or "")
    if prompt is not None and isinstance(prompt.event, PromptSubmitted):
        on_prompt(builder, prompt.event, prompt)
        deciders += [prompt.sender, *builder.amendments.get(prompt.id, ())]
    approvers = tuple(map(builder.participant_of, event.said.approved_by))
    run = ToolRun(proposal.id, said.tool_name, said.arguments, approvers)
    builder.add_run(run, said.agent, deciders, (said.metadata or {}).get("model"))
    builder.add_message(proposal.id)
    builder.add_message(record.id)
    builder.add_verdict_for(proposal.id, said.arguments)
    path = said.arguments.get("path")
    builder.tools[proposal.id] = ToolExecution(
        id=proposal.id,
        name=said.tool_name,
        agent=builder.participant_of(said.agent),
        category=said.category.value,
        risk=said.risk_level.value,
        path=path if isinstance(path, str) else "",
        description=said.description,
        outcome=UNFINISHED,
        approved_by=approvers,
        standing=tuple(map(builder.participant_of, event.said.standing)),
        arguments=builder.arguments_for_record(proposal.id),
        execution=record.id,
        since=builder.carried_since.get(proposal.id),
    )


def on_ruling(builder: DecisionBuilder, event: DecisionRuled, record: Record) -> None:
    """Remember the latest ruling for each key."""
    content: Any = event.said.content  # written by the server itself, always an object
    builder.rulings[event.said.key] = content


def on_tool_output(builder: DecisionBuilder, event: ToolPrinted, record: Record) -> None:
    """Hash the output; the output itself is not part of a decision."""
    if event.said.tool_proposal in builder.tools:
        builder.hash_output(event.said.tool_proposal, [event.said.stream, event.said.text])


def on_tool_result(builder: DecisionBuilder, event: ToolFinished, record: Record) -> None:
    """Record the outcome; tools of an earlier commit belong to that commit."""
    said = event.said
    if said.tool_proposal not in builder.tools:
        builder.has_late_report = True
        return
    builder.set_confidence(said.metadata)
    if said.result is not None:
        builder.hash_output(said.tool_proposal, said.result)
    tool = builder.tools[said.tool_proposal]
    outcome = SUCCESS if said.success else FAILURE
    reported = reported_files(said.result, said.metadata)
    recorded = parse_recorded_run(said.metadata) if event.by_executor else None
    builder.finish_run(tool.id, outcome, recorded)
    builder.tools[tool.id] = replace(
        tool, outcome=outcome, duration_ms=said.duration_ms, reported=reported
    )


def on_grant_end(builder: DecisionBuilder, event: GrantEnded | ToolExpired, record: Record) -> None:
    """A call without a live grant covers nothing, not even a commit call."""
    builder.end_grant(event.tool, NOT_REPORTED)


def on_taken_back(builder: DecisionBuilder, event: GrantTakenBack, record: Record) -> None:
    builder.take_back_grant(event.said.tool_proposal, TAKEN_BACK)


def on_late_result(builder: DecisionBuilder, event: ToolRanLate, record: Record) -> None:
    """It ran without approval: the record says so, and nothing is covered."""
    builder.has_late_report = True
    builder.take_back_grant(event.said.tool_proposal, RAN_LATE)


def on_fork(builder: DecisionBuilder, event: ForkCreated, record: Record) -> None:
    """A fork that was not merged is an alternative."""
    fork = builder.room.forks.get(record.fork or "")
    if fork is None or fork.merged or event.parent != builder.commit_range.fork:
        return
    by = (builder.participant_of(record.sender),)
    description = event.said.reason
    builder.alternatives.append(
        Alternative(
            kind="fork", id=fork.id, description=description, by=by, branch=branch_of(fork.id)
        )
    )


def on_merge_proposed(builder: DecisionBuilder, event: MergeProposed, record: Record) -> None:
    said = event.said
    builder.add_message(record.id, by=record.sender)
    builder.add_utterance(record, said.summary)
    builder.reasons_against[record.id] = reasons_against(said)
    builder.merges[record.id] = ForkMerge(
        id=record.id,
        fork=said.source_fork,
        branch=branch_of(said.source_fork),
        strategy=said.strategy.value,
        summary=said.summary,
        by=(builder.participant_of(record.sender),),
        head=shown_head(said),
    )


def shown_head(said: MergePropose) -> str:
    """The commit that the gate of the merge showed; empty if it showed none."""
    metadata = getattr(said, "metadata", None)
    head = metadata.get("head") if isinstance(metadata, dict) else None
    return head if isinstance(head, str) else ""


def reasons_against(said: MergePropose) -> dict[str, str]:
    """Why other forks were not chosen, by fork, as the proposer of the merge gave it."""
    metadata = getattr(said, "metadata", None)
    reasons = metadata.get("not_chosen") if isinstance(metadata, dict) else None
    if not isinstance(reasons, dict):
        return {}
    return {fork: reason for fork, reason in reasons.items() if isinstance(reason, str)}


def on_merge_executed(builder: DecisionBuilder, event: MergeExecuted, record: Record) -> None:
    """Mark the merge as done, with how its conflicts were resolved but not with what content."""
    proposal = builder.records_by_id.get(event.said.merge_proposal)
    if proposal is None or not isinstance(proposed := proposal.event, MergeProposed):
        return
    if proposal.id not in builder.merges:
        on_merge_proposed(builder, proposed, proposal)
    builder.add_message(record.id, by=record.sender)
    started = builder.merges[proposal.id]
    resolutions = event.said.resolved_conflicts or ()
    builder.merges[proposal.id] = replace(
        started,
        done=True,
        by=tuple(sorted({*started.by, builder.participant_of(record.sender)})),
        settled=tuple(
            ResolvedConflict(
                key=answer.conflict_id,
                resolution=answer.resolution,
                not_approved=answer.conflict_id in (event.said.not_approved or ()),
            )
            for answer in resolutions
        ),
    )


EVENT_HANDLERS: Mapping[type[Event], Callable[[DecisionBuilder, Any, Record], None]] = {
    PromptSubmitted: on_prompt,
    PromptAmended: on_amendment,
    ResponseStarted: on_response_start,
    ResponseChunked: on_response_chunk,
    ResponseEnded: on_response_end,
    ToolProposed: on_proposal,
    GateApproved: on_approval,
    GatePassed: on_gate_passed,
    GateRejected: on_rejection,
    DecisionRuled: on_ruling,
    ToolCleared: on_tool_cleared,
    ToolPrinted: on_tool_output,
    ToolFinished: on_tool_result,
    ToolRanLate: on_late_result,
    ToolExpired: on_grant_end,
    GrantEnded: on_grant_end,
    GrantTakenBack: on_taken_back,
    ForkCreated: on_fork,
    MergeProposed: on_merge_proposed,
    MergeExecuted: on_merge_executed,
}
