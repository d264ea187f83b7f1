"""Merges: what was learnt in a fork comes back. Nothing is ever deleted (OPEN-48)."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.ids import MAIN
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import (
    conflicts,
    forks,
    gates,
    grants,
    graves,
    interrupts,
    lanes,
    quota,
    thinking,
    votes,
)
from accord.core.room.conflicts import Resolution
from accord.core.room.fields import Id, Short
from accord.core.room.past import outcome, past_key, remember
from accord.core.room.places import open_for, scope_of
from accord.core.room.state import Fork, Merge, Room, Strategy, without

LATEST = 1 << 53


class MergePropose(Body, frozen=True, omit_defaults=True, gc=False):
    """Say that a fork is ready to come back."""

    type = "merge.propose"
    needs = May.FORK

    source_fork: Id
    target_fork: Annotated[str, Meta(max_length=128)]
    strategy: Strategy
    summary: Short


class MergeExecute(Body, frozen=True, omit_defaults=True, gc=False):
    """Do it, with an answer to every conflict."""

    type = "merge.execute"
    needs = May.FORK

    merge_proposal: Id
    resolved_conflicts: Annotated[tuple[Resolution, ...], Meta(max_length=1024)] | None = None

    def repeats(self, said: Body) -> bool:
        """What is not for all was taken out, so it does not tell two asks apart."""
        if not isinstance(said, MergeExecute) or said.merge_proposal != self.merge_proposal:
            return False
        mine = self.resolved_conflicts or ()
        return all(each in mine for each in said.resolved_conflicts or ())


class MergeProposed(Event, frozen=True, kw_only=True, gc=False):
    """A merge waits to be done."""

    name = "merge.proposed"
    announced = True

    said: MergePropose
    target: str | None
    gated: bool


class MergeExecuted(Event, frozen=True, kw_only=True, gc=False):
    """It is done: context is taken over, the source is read-only, its messages are readable."""

    name = "merge.executed"
    announced = True

    said: MergeExecute
    settled: tuple[Resolution, ...] = ()


# Proposing


def propose(room: Room, ask: Ask, body: MergePropose) -> Iterator[Fact]:
    """From a fork one is in, to another or to the trunk; agents and `replace` need approval."""
    interrupts.check_free(room, ask.actor.seat)
    source, target = ends(room, ask, body)
    if any(merge.source == source.id for merge in room.merges.values()):
        raise Refused(Why.WRONG_STATE, f"A merge of {source.id} is proposed already")
    lanes.check_merge(room, source, where_of(target), done=False)
    gated = body.strategy is Strategy.REPLACE or room.members[ask.actor.seat].kind is Kind.AGENT
    yield MergeProposed(
        said=body,
        target=target.id if target else None,
        gated=gated,
        to=told(source, target),
        fork=where_of(target),
    )
    if gated:
        yield gate(room, ask, body, target)


def ends(room: Room, ask: Ask, body: MergePropose) -> tuple[Fork, Fork | None]:
    """Source and target, both open and both the proposer's."""
    source = forks.named(room, body.source_fork)
    target = forks.named(room, body.target_fork)
    if source is None:
        raise Refused(Why.MALFORMED, "The trunk can be merged into nothing")
    if target is source:
        raise Refused(Why.MALFORMED, "A fork cannot be merged into itself")
    for fork in (source, target):
        if fork is not None:
            open_for(room, ask, fork.id)
    return source, target


def told(source: Fork, target: Fork | None) -> Seats | None:
    """A merge concerns both sides."""
    return None if target is None else source.readers | target.readers


def gate(room: Room, ask: Ask, body: MergePropose, target: Fork | None) -> gates.GateOpened:
    """The question whether to merge."""
    where = target.id if target else MAIN
    said = gates.GateRequest(
        action_type="merge",
        action_ref=ask.message.id,
        quorum=room.rules.default_gate_quorum,
        timeout_seconds=ask.house.gate_seconds,
        message=f"{ask.actor.seat} wants to merge {body.source_fork} into {where} "
        f"({body.strategy}): {body.summary}"[:4096],
    )
    resolution = gates.timeout_of(ask, never_auto=True)
    return gates.opened(room, ask, said, ask.actor.seat, resolution, where_of(target))


def where_of(target: Fork | None) -> str | None:
    """The fork's id, or None for the trunk."""
    return target.id if target else None


# Doing


def execute(room: Room, ask: Ask, body: MergeExecute) -> Iterator[Fact]:
    """Once it may, with a resolution for each conflict."""
    merge = pending(room, ask, body.merge_proposal)
    source, target = room.forks[merge.source], room.forks.get(merge.target or "")
    check_may(room, ask, merge)
    lanes.check_merge(room, source, merge.target, done=True)
    conflicts.check_resolutions(room, ask, merge, body.resolved_conflicts or ())
    check_space(room, ask, merge, body)
    yield from closing(room, source)
    yield MergeExecuted(
        said=public(room, merge, body),
        settled=body.resolved_conflicts or (),
        ref=merge.id,
        to=told(source, target),
        fork=merge.target,
    )


def check_may(room: Room, ask: Ask, merge: Merge) -> None:
    """Both sides open and the sender's, approved where approval was asked for."""
    interrupts.check_free(room, ask.actor.seat)
    for fork in (merge.source, merge.target):
        if fork is not None:
            open_for(room, ask, fork)
    if merge.gated or gates.on_action(room, merge.id):
        raise Refused(Why.WRONG_STATE, f"The merge {merge.id} is not approved yet")
    by_agent = room.members[ask.actor.seat].kind is Kind.AGENT
    if by_agent and merge.strategy is Strategy.MANUAL:
        raise Refused(Why.FORBIDDEN, "A manual merge is for a person to do")


def public(room: Room, merge: Merge, body: MergeExecute) -> MergeExecute:
    """What is told to all: how restricted items were settled is not (OPEN-48)."""
    answers = body.resolved_conflicts or ()
    plain = tuple(
        each
        for each in answers
        if all(item.visible_to is None for item in conflicts.both(room, merge, each.conflict_id))
    )
    return body if plain == answers else replace(body, resolved_conflicts=plain)


def pending(room: Room, ask: Ask, id: str) -> Merge:
    """The merge of that id, if it is still to be done."""
    if merge := room.merges.get(id):
        return merge
    ended = outcome(room, id, ask.actor.seat)
    if ended is None:
        raise Refused(Why.UNKNOWN, f"There is no merge {id}")
    if ended.startswith(("rejected", "timed out")):
        raise Refused(Why.GATE_FAILED, f"The merge {id} was {ended}")
    raise Refused(Why.WRONG_STATE, f"The merge {id} is over: {ended}")


def closing(room: Room, source: Fork) -> Iterator[Fact]:
    """Nothing stays open in a fork that can only be read from now on."""
    for open_gate in room.gates.values():
        if open_gate.fork == source.id:
            yield from votes.ended_by_server(room, open_gate, f"The fork {source.id} was merged")
    for stream in room.streams.values():
        if stream.fork == source.id:
            yield thinking.interruption(room, stream)


def check_space(room: Room, ask: Ask, merge: Merge, body: MergeExecute) -> None:
    """What comes of a merge is context like any other."""
    after = conflicts.taken_over(room, merge, body.resolved_conflicts or (), LATEST)
    over = replace(room.forks[merge.source], merged=True)
    after = replace(after, forks={**after.forks, over.id: over})
    quota.check(room, after, ask.house.limits, "No room for the merge")


# Folding


def on_proposed(room: Room, event: MergeProposed, record: Record) -> Room:
    """One more merge to be done."""
    if event.said.source_fork not in room.forks:
        return room
    merge = Merge(
        id=record.id,
        source=event.said.source_fork,
        target=event.target,
        strategy=event.said.strategy,
        gated=event.gated,
    )
    return replace(room, merges={**room.merges, merge.id: merge})


def on_executed(room: Room, event: MergeExecuted, record: Record) -> Room:
    """The context of both, the source closed and readable for all of the target."""
    merge = room.merges.get(event.said.merge_proposal)
    if merge is None:
        return room
    source = room.forks[merge.source]
    room = conflicts.taken_over(room, merge, event.settled, record.version)
    readers = source.readers | room.seats(merge.target)
    closed = replace(
        source, merged=True, readers=readers, into=merge.target, strategy=merge.strategy
    )
    room = replace(room, forks={**room.forks, source.id: closed})
    room = graves.bury(room, scope_of(merge.target), {}, record.version)
    return without_merges(without_tools(room, source.id), merge)


def without_tools(room: Room, fork: str) -> Room:
    """Nothing runs on where nothing can be said."""
    running = [tool.id for tool in room.tools.values() if tool.fork == fork]
    return grants.over(room, "ended with its fork", *running)


def without_merges(room: Room, done: Merge) -> Room:
    """This one is done, and those into its source have lost their target."""
    lost = {m.id: m for m in room.merges.values() if m.target == done.source}
    ended = {past_key(m.target, m.id): "without a target" for m in lost.values()}
    past = remember(room.past, {**ended, past_key(done.target, done.id): "executed"})
    return replace(room, merges=without(room.merges, done.id, *lost), past=past)


DECIDE: Deciders = {MergePropose: propose, MergeExecute: execute}
EVOLVE: Evolvers = {MergeProposed: on_proposed, MergeExecuted: on_executed}
