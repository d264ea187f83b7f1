"""Forks: a part of the room goes its own way, with its own conversation and context."""

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import May, Role
from accord.core.kernel.ids import MAIN, TRUNK
from accord.core.kernel.limits import reached
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import quota, rolls
from accord.core.room.content import TASKS
from accord.core.room.fields import Id, Ids, Short
from accord.core.room.places import scope_of
from accord.core.room.shelf import put
from accord.core.room.state import Fork, Item, Room

LONGEST_SLUG = 64
COPY = "\n"  # no fork is called that


class ForkCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Branch off at a message; inside a fork, it branches off that fork."""

    type = "fork.create"
    needs = May.FORK
    scoped = True
    names_others = True

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    from_point: Id
    reason: Short
    participants: Ids
    copy_context: bool

    def cites(self) -> Iterator[str]:
        """Where it branches off."""
        yield self.from_point


class ForkSwitch(Body, frozen=True, omit_defaults=True, gc=False):
    """Go to another fork, or back to the trunk."""

    type = "fork.switch"
    needs = May.BELONG

    target_fork: Annotated[str, Meta(max_length=128)]


class ForkCreated(Event, frozen=True, kw_only=True, gc=False):
    """A fork exists; the whole room is told its id, what is said inside is for its members."""

    name = "fork.created"
    announced = True

    said: ForkCreate
    parent: str | None
    members: Seats


class ForkSwitched(Event, frozen=True, kw_only=True, gc=False):
    """Somebody is in another fork now."""

    name = "fork.switched"

    said: ForkSwitch
    seat: str
    target: str | None


def slug(name: str, taken: frozenset[str]) -> str:
    """A readable id that nobody has yet (OPEN-46)."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_SLUG].strip("-") or "fork"
    wanted, number = plain, 1
    while wanted in taken or wanted in TRUNK:
        number += 1
        wanted = f"{plain}-{number}"
    return wanted


def create(room: Room, ask: Ask, body: ForkCreate) -> Iterator[Fact]:
    """With its members in it, somebody among them who can approve, and an id."""
    if not room.rules.allow_forks:
        raise Refused(Why.WRONG_STATE, "This session allows no forks")
    if len(room.forks) >= (most := ask.house.limits.forks):
        raise reached("forks", most, f"A session has at most {most} forks")
    members = frozenset(body.participants) | {ask.actor.seat}
    inside = room.seats(ask.message.fork)
    if strangers := sorted(members - inside):
        raise Refused(Why.NO_MEMBER, f"Not here to take along: {', '.join(strangers)}")
    check_point(room, ask, body.from_point)
    check_approvers(room, members)
    check_space(room, ask, body, members)
    yield ForkCreated(
        said=body,
        parent=ask.message.fork,
        members=members,
        fork=slug(body.name, frozenset(room.forks)),
    )


def lineage(room: Room, fork: str | None) -> tuple[str | None, ...]:
    """The fork, the one it left, and so on to the trunk."""
    line = [fork]
    while (last := line[-1]) is not None:
        line.append(room.forks[last].parent)
    return tuple(line)


def check_point(room: Room, ask: Ask, point: str) -> None:
    """It branches off its own past; the id of a message elsewhere is nobody else's affair."""
    if ask.known[point].fork not in lineage(room, ask.message.fork):
        where = ask.message.fork or MAIN
        raise Refused(Why.MALFORMED, f"from_point {point} is not in the past of {where}")


def check_space(room: Room, ask: Ask, body: ForkCreate, members: Seats) -> None:
    """A copy takes room, too."""
    if not body.copy_context:
        return
    taken = copied(room, ask.message.fork, members)
    after = replace(room, shelf={**room.shelf, COPY: taken})
    quota.check(room, after, ask.house.limits, "No room for a copy")


def check_approvers(room: Room, members: Seats) -> None:
    """OPEN-47: where approvals are configured, a fork needs somebody who can give them."""
    configured = bool(room.rules.require_approval_for)
    if configured and not any(room.members[seat].votes for seat in members):
        detail = "Take along a person who may approve: tools need approval in this session"
        raise Refused(Why.WRONG_STATE, detail)


def named(room: Room, name: str) -> Fork | None:
    """The fork of that id; None for the trunk, by any of its names."""
    if name in TRUNK:
        return None
    if fork := room.forks.get(name):
        return fork
    raise Refused(Why.UNKNOWN, f"There is no fork {name}")


def switch(room: Room, ask: Ask, body: ForkSwitch) -> Iterator[Fact]:
    """Where one belongs; an admin may enter any fork."""
    seat = ask.actor.seat
    fork = named(room, body.target_fork)
    if fork is None:
        yield ForkSwitched(said=body, seat=seat, target=None)
        return
    if seat not in fork.members and Role.ADMIN not in room.members[seat].roles:
        raise Refused(Why.FORBIDDEN, f"You are not in the fork {fork.id}")
    yield ForkSwitched(said=body, seat=seat, target=fork.id)


def on_created(room: Room, event: ForkCreated, record: Record) -> Room:
    """A new scope, with what its members could see of the context if they take it along."""
    id = record.fork or ""
    fork = Fork(
        id=id,
        name=event.said.name,
        parent=event.parent,
        from_point=event.said.from_point,
        members=event.members,
        readers=event.members,
        created_by=record.actor,
        created_at=record.at,
        base=record.version,
    )
    room = replace(room, forks={**room.forks, id: fork})
    if event.said.copy_context:
        taken = copied(room, event.parent, event.members)
        room = replace(room, shelf={**room.shelf, scope_of(id): taken})
    return with_tasks(room, id)


def with_tasks(room: Room, fork: str) -> Room:
    """The tasks of the repository are the same for everybody, also in a fork."""
    held = room.shelf.get(scope_of(None), {}).get(TASKS)
    return room if room.pact is None or held is None else put(room, scope_of(fork), held)


def copied(room: Room, parent: str | None, members: Seats) -> dict[str, Item]:
    """What the members could see, each item for those of them who could (OPEN-47)."""
    taken: dict[str, Item] = {}
    for item in room.shelf.get(scope_of(parent), {}).values():
        if item.visible_to is None:
            taken[item.key] = item
        elif seeing := (item.visible_to | {item.author}) & members:
            taken[item.key] = replace(item, visible_to=seeing)
    return taken


def on_switched(room: Room, event: ForkSwitched, record: Record) -> Room:
    """The member's place; an admin who entered belongs to it from now on."""
    member = room.members.get(event.seat)
    if member is None:
        return room
    room = replace(room, members={**room.members, member.id: replace(member, fork=event.target)})
    fork = room.forks.get(event.target or "")
    if fork is None:
        return room
    inside = fork.members | {event.seat}
    fork = replace(fork, members=inside, readers=fork.readers | {event.seat})
    return rolls.enrolled(replace(room, forks={**room.forks, fork.id: fork}))


DECIDE: Deciders = {ForkCreate: create, ForkSwitch: switch}
EVOLVE: Evolvers = {ForkCreated: on_created, ForkSwitched: on_switched}
