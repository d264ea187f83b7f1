"""Merges: what was learnt in a fork comes back. Nothing is ever deleted (OPEN-48)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.ids import MAIN
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Event,
    Evolvers,
    Fact,
    Record,
    Seats,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import forks, gates, thinking
from accord.core.room.shelf import Key
from accord.core.room.state import (
    Fork,
    Id,
    Item,
    Merge,
    Room,
    Short,
    Strategy,
    remember,
    scope_of,
    without,
)


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How one conflict is settled."""

    conflict_id: Key
    resolution: Literal["use_source", "use_target", "custom"]
    custom_value: Any = None


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


# Proposing


def propose(room: Room, ask: Ask, body: MergePropose) -> Iterator[Fact]:
    """From a fork one is in, to another or to the trunk; agents and `replace` need approval."""
    source, target = ends(room, ask, body)
    if any(merge.source == source.id for merge in room.merges.values()):
        raise Refused(Why.WRONG_STATE, f"A merge of {source.id} is proposed already")
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
            forks.open_for(room, ask, fork.id)
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
    merge = pending(room, body.merge_proposal)
    source, target = room.forks[merge.source], room.forks.get(merge.target or "")
    for fork in (source, target):
        if fork is not None:
            forks.open_for(room, ask, fork.id)
    if merge.gated:
        raise Refused(Why.WRONG_STATE, f"The merge {merge.id} is not approved yet")
    check_resolutions(room, merge, body)
    yield from closing(room, source)
    yield MergeExecuted(said=body, ref=merge.id, to=told(source, target), fork=merge.target)


def pending(room: Room, id: str) -> Merge:
    """The merge of that id, if it is still to be done."""
    if merge := room.merges.get(id):
        return merge
    outcome = room.past.get(id)
    if outcome is None:
        raise Refused(Why.UNKNOWN, f"There is no merge {id}")
    if outcome.startswith(("rejected", "timed out")):
        raise Refused(Why.GATE_FAILED, f"The merge {id} was {outcome}")
    raise Refused(Why.WRONG_STATE, f"The merge {id} is over: {outcome}")


def closing(room: Room, source: Fork) -> Iterator[Fact]:
    """Nothing stays open in a fork that can only be read from now on."""
    for open_gate in room.gates.values():
        if open_gate.fork == source.id:
            yield from gates.ended_by_server(room, open_gate, f"The fork {source.id} was merged")
    for stream in room.streams.values():
        if stream.fork == source.id:
            yield thinking.interruption(room, stream)


def check_resolutions(room: Room, merge: Merge, body: MergeExecute) -> None:
    """Each conflict has one answer, and there are no answers to anything else."""
    answered = [each.conflict_id for each in body.resolved_conflicts or ()]
    found = conflicts(room, merge)
    unknown = sorted(set(answered) - found)
    if unknown or len(answered) != len(set(answered)):
        raise Refused(
            Why.MALFORMED, f"No such conflict, or twice: {', '.join(unknown or answered)}"
        )
    if missing := sorted(found - set(answered)):
        detail = f"Unresolved: {', '.join(missing)}"
        raise Refused(Why.WRONG_STATE, detail, {"conflicts": missing})


def changed(room: Room, fork: str | None, base: int) -> dict[str, Item | None]:
    """What happened on a shelf since `base`: an item, or None where it was removed."""
    scope = scope_of(fork)
    items = {k: i for k, i in room.shelf.get(scope, {}).items() if i.changed > base}
    gone = {k: None for k, v in room.removed.get(scope, {}).items() if v > base}
    return {**gone, **items}


def conflicts(room: Room, merge: Merge) -> frozenset[str]:
    """Keys changed on both sides since the fork (OPEN-48); `replace` asks nobody."""
    if merge.strategy is Strategy.REPLACE:
        return frozenset()
    source = room.forks[merge.source]
    ours, theirs = changed(room, source.id, source.base), changed(room, merge.target, source.base)
    return frozenset(ours) & frozenset(theirs)


# Folding


def on_proposed(room: Room, event: MergeProposed, record: Record) -> Room:
    """One more merge to be done."""
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
    shelf = merged(room, merge, event.said.resolved_conflicts or (), record.version)
    readers = source.readers | room.seats(merge.target)
    closed = replace(
        source, merged=True, readers=readers, into=merge.target, strategy=merge.strategy
    )
    return replace(
        room,
        forks={**room.forks, source.id: closed},
        shelf={**room.shelf, scope_of(merge.target): shelf},
        merges=without(room.merges, merge.id),
        past=remember(room.past, {merge.id: "executed"}),
    )


def merged(
    room: Room, merge: Merge, resolutions: tuple[Resolution, ...], version: int
) -> dict[str, Item]:
    """The target's shelf after the merge; what is restricted stays restricted."""
    source = room.forks[merge.source]
    theirs = dict(room.shelf.get(scope_of(merge.target), {}))
    if merge.strategy is Strategy.REPLACE:
        return dict(room.shelf.get(scope_of(source.id), {}))
    settled = {each.conflict_id: each for each in resolutions}
    for key, item in changed(room, source.id, source.base).items():
        chosen = choose(key, item, theirs, settled)
        if chosen is None:
            theirs.pop(key, None)
        else:
            theirs[key] = replace(chosen, changed=version)
    return theirs


def choose(
    key: str, item: Item | None, theirs: Mapping[str, Item], settled: Mapping[str, Resolution]
) -> Item | None:
    """What becomes of one key."""
    answer = settled.get(key)
    if answer is None or answer.resolution == "use_source":
        return item
    held = theirs.get(key)
    if answer.resolution == "use_target":
        return held
    base = item or held
    return base and replace(base, content=answer.custom_value, content_ref=None)


DECIDE: Deciders = {MergePropose: propose, MergeExecute: execute}
EVOLVE: Evolvers = {MergeProposed: on_proposed, MergeExecuted: on_executed}
