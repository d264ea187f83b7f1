"""Secrets: that one was shared is on record; its value never is."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May, Role
from accord.core.kernel.limits import reached
from accord.core.kernel.log import (
    Ask,
    Body,
    Deciders,
    Event,
    Evolvers,
    Fact,
    Forget,
    Instant,
    Recall,
    Record,
    Seats,
    Stash,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.fields import Id, Short
from accord.core.room.shelf import Key
from accord.core.room.state import Room, SharedSecret, without

EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)


class SecretShare(Body, frozen=True, omit_defaults=True, gc=False):
    """Let some participants have a secret. What is kept of it has an empty `value_ref`."""

    type = "secret.share"
    needs = May.TAKE_PART

    key: Key
    scope: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=256)]
    value_ref: Annotated[str, Meta(max_length=65_536)]
    expires_at: Short | None = None
    secret_type: Literal["api_key", "database_url", "token", "credential", "other"] | None = None

    def repeats(self, said: Body) -> bool:
        """The value was not kept, so it cannot tell two asks apart."""
        return isinstance(said, SecretShare) and blank(self) == said

    def __repr__(self) -> str:
        return f"SecretShare(key={self.key!r}, scope={self.scope!r}, value_ref=…)"


class SecretRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Make a secret worthless here."""

    type = "secret.revoke"
    needs = May.TAKE_PART

    key: Key
    reason: Short


class SecretShared(Event, frozen=True, kw_only=True, gc=False):
    """Somebody shared a secret; whom `to` names hear its value once, live."""

    name = "secret.shared"
    whispers = True
    hushes = True

    said: SecretShare
    expires_at: Instant | None = None


class SecretRevoked(Event, frozen=True, kw_only=True, gc=False):
    """It is worthless."""

    name = "secret.revoked"
    hushes = True

    said: SecretRevoke


def blank(body: SecretShare) -> SecretShare:
    """What may be kept."""
    return replace(body, value_ref="")


def share(room: Room, ask: Ask, body: SecretShare) -> Iterator[Fact]:
    """To members only, for a time that is still to come (OPEN-42)."""
    if not body.value_ref:
        raise Refused(Why.MALFORMED, "value_ref points at nothing")
    if strangers := sorted(seat for seat in body.scope if seat not in room.members):
        raise Refused(Why.NO_MEMBER, f"Not in this session: {', '.join(strangers)}")
    expires_at = instant(body.expires_at)
    if expires_at is not None and expires_at <= ask.at:
        raise Refused(Why.MALFORMED, "expires_at has passed")
    to = frozenset(body.scope) | {ask.actor.seat}
    held = replaceable(room, ask, body.key)
    if held is not None and (shut_out := held.scope - to):
        anew = SecretRevoke(body.key, f"{held.sharer} shared it anew, with others")
        yield SecretRevoked(said=anew, to=shut_out)
    yield SecretShared(said=blank(body), expires_at=expires_at, to=to)
    yield Stash(body.key, body.value_ref)


def replaceable(room: Room, ask: Ask, key: str) -> SharedSecret | None:
    """The sender's own secret of that key, if there is one; else there must be a place."""
    held = room.secrets.get(key)
    if held is not None and held.sharer != ask.actor.seat:
        raise Refused(Why.WRONG_STATE, f"{key} is taken; choose another key")
    if held is None and len(room.secrets) >= (most := ask.house.limits.secrets):
        raise reached("secrets", most, f"{most} secrets are shared; revoke one first")
    return held


def instant(text: str | None) -> Instant | None:
    """Milliseconds since 1970; a time without an offset is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(Why.MALFORMED, "expires_at is not an ISO 8601 timestamp") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MILLISECOND


def revoke(room: Room, ask: Ask, body: SecretRevoke) -> Iterator[Fact]:
    """By whoever shared it, an admin, or the server."""
    held = room.secrets.get(body.key)
    seat = ask.actor.seat
    system = ask.actor.kind is Kind.SYSTEM
    admin = not system and Role.ADMIN in room.members[seat].roles
    concerned = held is not None and (system or admin or seat in held.scope | {held.sharer})
    if held is None or not concerned:
        raise Refused(Why.UNKNOWN, f"There is no secret {body.key} here")
    if not (system or admin or seat == held.sharer):
        raise Refused(Why.FORBIDDEN, f"Only {held.sharer} or an admin can revoke {body.key}")
    yield from void(held, body, seat if not system else None)


def void(held: SharedSecret, body: SecretRevoke, by: str | None = None) -> Iterator[Fact]:
    """Told to those who had it; the value is forgotten at once."""
    told: Seats = held.scope | {held.sharer} | (frozenset({by}) if by else frozenset())
    yield SecretRevoked(said=body, to=told)
    yield Forget(held.key)


def expired(room: Room, ask: Ask) -> Iterator[Fact]:
    """Secrets whose time is over."""
    for held in room.secrets.values():
        if held.expires_at is not None and held.expires_at <= ask.at:
            yield from void(held, SecretRevoke(held.key, "It has expired"))


def but_for(facts: Iterable[Fact], room: Room) -> Room:
    """The room without the secrets that these facts revoke."""
    revoked = [fact.said.key for fact in facts if isinstance(fact, SecretRevoked)]
    return replace(room, secrets=without(room.secrets, *revoked)) if revoked else room


def all_void(room: Room, reason: str) -> Iterator[Fact]:
    """Every secret of the room: it ends, or its values are lost."""
    for held in room.secrets.values():
        yield from void(held, SecretRevoke(held.key, reason))


def left(room: Room, seat: str, gone: Seats = frozenset()) -> Iterator[Fact]:
    """What nobody in the room could use any more, once this one is gone like those before."""
    for held in room.secrets.values():
        if held.scope - gone == {seat}:
            yield from void(held, SecretRevoke(held.key, f"{seat} left"))


def on_shared(room: Room, event: SecretShared, record: Record) -> Room:
    """Known by its key; the value is elsewhere."""
    said = event.said
    held = SharedSecret(
        key=said.key,
        scope=frozenset(said.scope),
        sharer=record.actor,
        announced=record.id,
        said=msgspec.json.decode(msgspec.json.encode(said)),  # as a snapshot gives it back
        expires_at=event.expires_at,
    )
    return replace(room, secrets={**room.secrets, said.key: held})


def on_revoked(room: Room, event: SecretRevoked, record: Record) -> Room:
    """Gone."""
    return replace(room, secrets=without(room.secrets, event.said.key))


def whispered(room: Room, seat: str) -> Iterator[Recall]:
    """What somebody who comes in may have, if its value is still held."""
    for held in room.secrets.values():
        if seat in held.scope | {held.sharer}:
            said = msgspec.convert(held.said, SecretShare)
            yield Recall(held.announced, held.sharer, said, held.key)


def without_seat(room: Room, seat: str) -> Room:
    """Leaving loses access."""
    scopes = {k: replace(s, scope=s.scope - {seat}) for k, s in room.secrets.items()}
    return replace(room, secrets=scopes) if scopes else room


DECIDE: Deciders = {SecretShare: share, SecretRevoke: revoke}
EVOLVE: Evolvers = {SecretShared: on_shared, SecretRevoked: on_revoked}
