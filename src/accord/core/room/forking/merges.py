"""Merges: a fork's context and messages come back to its target. Nothing is deleted (OPEN-48)."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.ids import MAIN_FORK
from accord.core.kernel.messages import Body, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room import admission
from accord.core.room.approval import gates, grants, votes
from accord.core.room.conversation import thinking
from accord.core.room.field_types import Id, ShortText
from accord.core.room.forking import conflicts, forks, merge_approval, pact_merge_rule
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import Fork, Merge, MergeStrategy
from accord.core.room.shared_context import context_quota, tombstones
from accord.core.room.shared_context.context_items import ContextKey
from accord.core.room.state import Room, without_keys
from accord.core.room.visibility import (
    check_fork_open,
    outcome_key,
    outcome_of,
    remember_outcomes,
    scope_of,
)

MAX_VERSION = 1 << 53


class MergePropose(Body, frozen=True, omit_defaults=True, gc=False):
    """Propose to merge a fork."""

    type = "merge.propose"
    needs = Permission.FORK

    source_fork: Id
    target_fork: Annotated[str, Meta(max_length=128)]
    strategy: MergeStrategy
    summary: ShortText
    metadata: dict[str, Any] | None = None


class MergeExecute(Body, frozen=True, omit_defaults=True, gc=False):
    """Execute a proposed merge, with a resolution of every conflict."""

    type = "merge.execute"
    needs = Permission.FORK

    merge_proposal: Id
    resolved_conflicts: Annotated[tuple[MergeResolution, ...], Meta(max_length=1024)] | None = None
    not_approved: Annotated[tuple[ContextKey, ...], Meta(max_length=1024)] | None = None

    def is_retry_of(self, said: Body) -> bool:
        """Ignores resolutions of restricted items, which the server removed."""
        if not isinstance(said, MergeExecute) or said.merge_proposal != self.merge_proposal:
            return False
        resolutions = self.resolved_conflicts or ()
        return all(resolution in resolutions for resolution in said.resolved_conflicts or ())


class MergeProposed(Event, frozen=True, kw_only=True, gc=False):
    """A merge was proposed."""

    name = "merge.proposed"
    room_wide = True

    said: MergePropose
    target: str | None
    gated: bool


class MergeExecuted(Event, frozen=True, kw_only=True, gc=False):
    """A fork was merged into its target, whose readers can now read it, and is read-only."""

    name = "merge.executed"
    room_wide = True

    said: MergeExecute
    settled: tuple[MergeResolution, ...] = ()


# Proposing


def propose_merge(room: Room, command: Command, body: MergePropose) -> Iterator[EventOrEffect]:
    """Propose to merge a fork one is in; agents' merges and `replace` need approval."""
    admission.check_not_halted(room, command.actor.principal)
    source, target = merge_endpoints(room, command, body)
    gates.check_metadata(command, body.metadata)
    merge_approval.check_head(body.metadata)
    pending = [merge for merge in room.merges.values() if merge.source == source.id]
    if any(not merge.changed for merge in pending):
        raise Refused(Reason.WRONG_STATE, f"A merge of {source.id} is already proposed")
    pact_merge_rule.check_merge_allowed(room, source, fork_id(target), executing=False)
    gated = (
        body.strategy is MergeStrategy.REPLACE
        or room.members[command.actor.principal].kind is Kind.AGENT
    )
    for void in pending:
        if gate := gates.gate_on_action(room, void.id):
            yield from votes.reject_by_server(room, gate, merge_approval.void_reason(void))
    yield MergeProposed(
        said=body,
        target=target.id if target else None,
        gated=gated,
        to=merge_audience(source, target),
        fork=fork_id(target),
    )
    if gated:
        yield open_merge_gate(room, command, body, target)


def merge_endpoints(room: Room, command: Command, body: MergePropose) -> tuple[Fork, Fork | None]:
    """Source and target of a merge; the proposer must be in both, and both must be open."""
    source = forks.fork_named(room, body.source_fork)
    target = forks.fork_named(room, body.target_fork)
    if source is None:
        raise Refused(Reason.MALFORMED, "The trunk cannot be merged; name a fork as source_fork")
    if target is source:
        raise Refused(Reason.MALFORMED, "A fork cannot be merged into itself")
    for fork in (source, target):
        if fork is not None:
            check_fork_open(room, command, fork.id)
    return source, target


def merge_audience(source: Fork, target: Fork | None) -> MemberIds | None:
    """The readers of both forks; None for everybody."""
    return None if target is None else source.readers | target.readers


def open_merge_gate(
    room: Room, command: Command, body: MergePropose, target: Fork | None
) -> gates.GateOpened:
    who = room.person(command.actor.principal)
    where = target.id if target else MAIN_FORK
    head = merge_approval.head_of(body.metadata)
    at_commit = f" at commit {head[:12]}" if head else ""
    request = gates.GateRequest(
        action_type="merge",
        action_ref=command.message.id,
        quorum=room.session_config.default_gate_quorum,
        timeout_seconds=gates.session_seconds(room, command),
        message=f"{who} wants to merge {body.source_fork}{at_commit} into "
        f"{where} ({body.strategy}): {body.summary}"[:4096],
    )
    resolution = gates.resolution_of_time(room, gates.timeout_resolution(command, never_auto=True))
    return gates.open_gate(
        room, command, request, command.actor.principal, resolution, fork_id(target)
    )


def fork_id(target: Fork | None) -> str | None:
    return target.id if target else None


# Executing


def execute_merge(room: Room, command: Command, body: MergeExecute) -> Iterator[EventOrEffect]:
    """Execute an approved merge whose conflicts are all resolved."""
    merge = find_pending_merge(room, command, body.merge_proposal)
    source, target = room.forks[merge.source], room.forks.get(merge.target or "")
    check_may_execute(room, command, merge)
    merge_approval.check_unchanged(room, merge)
    pact_merge_rule.check_merge_allowed(room, source, merge.target, executing=True)
    conflicts.check_resolutions(room, command, merge, body.resolved_conflicts or ())
    check_merge_fits(room, command, merge, body)
    yield from close_source(room, source)
    yield MergeExecuted(
        said=public_body(room, merge, merge_approval.mark_unapproved(merge, body)),
        settled=body.resolved_conflicts or (),
        ref=merge.id,
        to=merge_audience(source, target),
        fork=merge.target,
    )


def check_may_execute(room: Room, command: Command, merge: Merge) -> None:
    """Refuse unless both forks are open, the sender is in both, and the gate has passed."""
    admission.check_not_halted(room, command.actor.principal)
    for fork in (merge.source, merge.target):
        if fork is not None:
            check_fork_open(room, command, fork)
    if merge.gated or gates.gate_on_action(room, merge.id):
        raise Refused(Reason.WRONG_STATE, f"The merge {merge.id} is not approved yet")
    by_agent = room.members[command.actor.principal].kind is Kind.AGENT
    if by_agent and merge.strategy is MergeStrategy.MANUAL:
        raise Refused(Reason.FORBIDDEN, "Only a human can execute a manual merge")


def public_body(room: Room, merge: Merge, body: MergeExecute) -> MergeExecute:
    """The body without the resolutions of restricted items (OPEN-48)."""
    resolutions = body.resolved_conflicts or ()
    public = tuple(each for each in resolutions if is_public(room, merge, each.conflict_id))
    if public == resolutions:
        return body
    marked = tuple(key for key in body.not_approved or () if is_public(room, merge, key))
    return replace(body, resolved_conflicts=public, not_approved=marked or None)


def is_public(room: Room, merge: Merge, key: str) -> bool:
    """Whether everybody may see the items of this name."""
    items = conflicts.items_on_both_sides(room, merge, key)
    return all(item.visible_to is None for item in items)


def find_pending_merge(room: Room, command: Command, id: str) -> Merge:
    """The merge with this id, if it was not executed or rejected yet."""
    if merge := room.merges.get(id):
        return merge
    outcome = outcome_of(room, id, command.actor.principal)
    if outcome is None:
        raise Refused(Reason.NOT_FOUND, f"There is no merge {id}")
    if outcome.startswith(("rejected", "timed out")):
        raise Refused(Reason.GATE_FAILED, f"The merge {id} was {outcome}; propose it again")
    raise Refused(Reason.WRONG_STATE, f"The merge {id} is closed: {outcome}")


def close_source(room: Room, source: Fork) -> Iterator[EventOrEffect]:
    """Reject the gates and end the streams of a fork that becomes read-only."""
    for open_gate in room.gates.values():
        if open_gate.fork == source.id:
            yield from votes.reject_by_server(room, open_gate, f"The fork {source.id} was merged")
    for stream in room.streams.values():
        if stream.fork == source.id:
            yield thinking.interruption_event(room, stream)


def check_merge_fits(room: Room, command: Command, merge: Merge, body: MergeExecute) -> None:
    """Check that the merged context fits into the quota."""
    after = conflicts.merge_context(room, merge, body.resolved_conflicts or (), MAX_VERSION)
    merged = replace(room.forks[merge.source], merged=True)
    after = replace(after, forks={**after.forks, merged.id: merged})
    context_quota.check_quota(room, after, command.policy.limits, "The merged context does not fit")


# Folding


def on_proposed(room: Room, event: MergeProposed, record: Record) -> Room:
    if event.said.source_fork not in room.forks:
        return room
    merge = Merge(
        id=record.id,
        source=event.said.source_fork,
        target=event.target,
        strategy=event.said.strategy,
        gated=event.gated,
        needs_approval=event.gated,
        head=merge_approval.head_of(event.said.metadata),
    )
    room = merge_approval.without_void_merges(room, merge.source)
    return replace(room, merges={**room.merges, merge.id: merge})


def on_executed(room: Room, event: MergeExecuted, record: Record) -> Room:
    """Combine the context, close the source, and let the target's members read it."""
    merge = room.merges.get(event.said.merge_proposal)
    if merge is None:
        return room
    source = room.forks[merge.source]
    room = conflicts.merge_context(room, merge, event.settled, record.version)
    readers = source.readers | room.members_in(merge.target)
    closed = replace(
        source, merged=True, readers=readers, into=merge.target, strategy=merge.strategy
    )
    room = replace(room, forks={**room.forks, source.id: closed})
    room = tombstones.record_removals(room, scope_of(merge.target), {}, record.version)
    return end_merges(end_fork_tools(room, source.id), merge)


def end_fork_tools(room: Room, fork: str) -> Room:
    """Close the proposals of a merged fork, which is read-only."""
    running = [tool.id for tool in room.tools.values() if tool.fork == fork]
    return grants.close_proposals(room, "ended with its fork", *running)


def end_merges(room: Room, executed: Merge) -> Room:
    """Close this merge, and those into its source, which have lost their target."""
    orphaned = {m.id: m for m in room.merges.values() if m.target == executed.source}
    outcomes = {outcome_key(m.target, m.id): "without a target" for m in orphaned.values()}
    outcomes[outcome_key(executed.target, executed.id)] = "executed"
    return replace(
        room,
        merges=without_keys(room.merges, executed.id, *orphaned),
        past=remember_outcomes(room.past, outcomes),
    )


DECIDE: Deciders = {MergePropose: propose_merge, MergeExecute: execute_merge}
EVOLVE: Evolvers = {MergeProposed: on_proposed, MergeExecuted: on_executed}
