"""Rooms: what was said and done together. The slices join here into the context's names."""

from collections.abc import Iterator

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Context, Deciders, Evolvers, Fact, Instant, Recall
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import (
    decisions,
    forks,
    gates,
    grants,
    heartbeats,
    interrupts,
    lifecycle,
    members,
    merges,
    notices,
    pact,
    participants,
    presence,
    prompts,
    roles,
    secrets,
    shelf,
    streams,
    thinking,
    timeouts,
    tools,
    votes,
)
from accord.core.room.audience import audience
from accord.core.room.places import open_for
from accord.core.room.state import House, Member, Presence, Room

# Looking a member of an enum up is slow, and these are asked for with every message.
SERVER, ENTER = Kind.SYSTEM, May.ENTER
FORGOTTEN = "The server restarted and holds its value no more; share it again"


class Tick(Body, frozen=True, gc=False):
    """Time has passed."""

    type = "tick"
    needs = May.SERVE
    while_paused = True

    slept: bool = False  # the server was not there while it passed


def tick(room: Room, ask: Ask, body: Tick) -> Iterator[Fact]:
    """Whatever is due by now."""
    if room.ended:
        return
    # A gate ends once: whoever overstayed goes at the next tick, when theirs are settled.
    late = (*timeouts.overdue(room, ask, slept=body.slept), *tools.overdue(room, ask))
    due = late or tuple(presence.overstayed(room, ask))
    yield from due
    yield from interrupts.overdue(room, ask)
    room = secrets.but_for(due, room)
    # A restart forgets values, and says so.
    yield from secrets.all_void(room, FORGOTTEN) if body.slept else secrets.expired(room, ask)


def deadlines(room: Room, house: House) -> Iterator[Instant]:
    """Every instant at which something would be due if nothing else happened."""
    if room.ended:
        return
    if room.paused_at is None:
        yield from (g.expires_at for g in room.gates.values() if g.expires_at is not None)
    yield from (t.expires_at for t in room.tools.values() if t.expires_at is not None)
    yield from (raised.due for raised in room.interrupts.values())
    yield from (s.expires_at for s in room.secrets.values() if s.expires_at is not None)
    for member in room.members.values():
        if member.presence is Presence.DISCONNECTED:
            yield presence.grace_end(room, member, house)


def admit(room: Room, ask: Ask) -> None:
    """Refuse whoever is not here, has no right, speaks for another, or comes at the wrong time."""
    body, actor = ask.message.body, ask.actor
    if actor.kind is SERVER:
        return
    if body.needs is ENTER:
        admit_outsider(room, ask)
        return
    member = room.members.get(actor.seat)
    if member is None or actor.workspace != room.workspace:
        raise absent(room, ask)
    if room.ended and not body.after_end:
        raise over(room)
    if body.needs not in member.may:
        raise Refused(Why.FORBIDDEN, forbidden(body, actor.seat))
    if actor.ceiling is not None:
        check_credential(room, ask, member)
    if type(body) in CLAIMING:
        check_claims(ask)
    if room.paused_at is not None and not body.while_paused:
        raise Refused(Why.WRONG_STATE, "The session is paused until everybody is back")
    if ask.message.fork is not None:
        check_fork(room, ask)


def admit_outsider(room: Room, ask: Ask) -> None:
    """Joining needs no membership, but a session that ended lets nobody in."""
    check_claims(ask)
    if ask.message.fork is not None:
        check_fork(room, ask)
    if isinstance(ask.message.body, members.SessionJoin):
        if not room.exists or ask.actor.workspace != room.workspace:
            raise absent(room, ask)
        if room.ended:
            raise over(room) if insider(room, ask.actor) else absent(room, ask)


def insider(room: Room, actor: Actor) -> bool:
    """Whether this principal, not just somebody of that name elsewhere, is or was a member."""
    known = actor.seat in room.members or actor.seat in room.former
    return known and actor.workspace == room.workspace


def check_credential(room: Room, ask: Ask, member: Member) -> None:
    """A seat is used by what may hold it today, whatever it was given in the past.

    What the room itself gave, to its creator or by a role change, is the room's to take.
    """
    actor, body = ask.actor, ask.message.body
    if member.kind is Kind.HUMAN and actor.kind is Kind.AGENT:
        raise Refused(
            Why.CLAIM_MISMATCH, f"{actor.seat} is a person here; your token is an agent's"
        )
    given = member.settled or actor.seat == room.created_by
    if body.needs not in (actor.ceiling or ()) and not given:
        raise Refused(Why.FORBIDDEN, forbidden(body, actor.seat))


def check_claims(ask: Ask) -> None:
    """UNI-1: what a payload says of its sender must be true."""
    for claimed in ask.message.body.claims():
        if claimed != ask.actor.seat:
            detail = f"You are {ask.actor.seat}; the payload speaks for {claimed}"
            raise Refused(Why.CLAIM_MISMATCH, detail)


def absent(room: Room, ask: Ask) -> Refused:
    """Who left is told so; to everybody else the session does not exist (OPEN-49)."""
    if insider(room, ask.actor):
        return Refused(Why.NO_MEMBER, "You left this session; join it again first")
    return Refused(Why.NO_ROOM, f"There is no session {ask.message.room}")


def over(room: Room) -> Refused:
    """The session has ended."""
    return Refused(Why.ENDED, f"The session is over ({room.ended}); its history stays readable")


def check_fork(room: Room, ask: Ask) -> None:
    """What is said in a fork is said by its members, while it is open."""
    body, fork = ask.message.body, ask.message.fork or ""
    if not body.scoped:
        raise Refused(Why.MALFORMED, f"{body.type} is about the whole session; leave fork out")
    open_for(room, ask, fork)


def welcome(room: Room, seat: str) -> Iterator[Recall]:
    """What somebody who comes in must know: who is here, and what lies here for them."""
    yield from participants.roll_call(room)
    yield from shelf.lying(room, seat)
    yield from secrets.whispered(room, seat)


def forbidden(body: Body, seat: str) -> str:
    """Which right is missing."""
    if body.needs is May.SERVE:
        return f"Only the server sends {body.type}"
    return f"{seat} may not send {body.type}: it needs the right to {body.needs}"


def knows(room: Room, id: str, seat: str) -> bool:
    """Whether the state itself vouches for the id to this seat, so that no look-up is needed."""
    if stream := room.streams.get(id):
        return stream.agent == seat or (stream.fork is None and stream.visible_to == "all")
    found = room.tools.get(id) or room.gates.get(id)
    return found is not None and (found.fork is None or seat in room.readers(found.fork))


SLICES = (
    lifecycle,
    members,
    participants,
    roles,
    presence,
    prompts,
    streams,
    thinking,
    tools,
    gates,
    votes,
    interrupts,
    decisions,
    secrets,
    forks,
    merges,
    pact,
)
DECIDE: Deciders = {
    Tick: tick,
    **notices.DECIDE,
    **heartbeats.DECIDE,
    **{body: decider for part in SLICES for body, decider in part.DECIDE.items()},
}
# Those whose payload says who speaks.
CLAIMING = frozenset(body for body in DECIDE if body.claims is not Body.claims)
EVOLVE: Evolvers = {
    **grants.EVOLVE,
    **shelf.EVOLVE,
    **timeouts.EVOLVE,
    **{event: evolver for part in SLICES for event, evolver in part.EVOLVE.items()},
}
CONTEXT: Context[Room] = Context(
    name="room",
    start=lambda stream: Room(id=stream.removeprefix("room/")),
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    deadlines=deadlines,
    tick=Tick(),
    wake=Tick(slept=True),
    knows=knows,
    state=Room,
    audience=audience,
    welcome=welcome,
    beats=heartbeats.beats,
    absent=presence.disconnected,
    back=presence.reconnected,
    insider=insider,
    present=presence.connected,
    gist=lifecycle.owner,
)
