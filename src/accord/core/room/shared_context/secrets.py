"""Secrets: the log records who shared one with whom, never its value."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.effects import DropSecret, HoldSecret, ReplayedMessage
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, Instant, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission, Role
from accord.core.room.field_types import Id, ShortText
from accord.core.room.shared_context.context_items import ContextKey
from accord.core.room.state import Room, SharedSecret, without_keys

UNIX_EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)


class SecretShare(Body, frozen=True, omit_defaults=True, gc=False):
    """Share a secret with some participants; it is stored with an empty `value_ref`."""

    type = "secret.share"
    needs = Permission.PARTICIPATE

    key: ContextKey
    scope: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=256)]
    value_ref: Annotated[str, Meta(max_length=65_536)]
    expires_at: ShortText | None = None
    secret_type: Literal["api_key", "database_url", "token", "credential", "other"] | None = None

    def is_retry_of(self, said: Body) -> bool:
        """Ignores the value, which was not stored."""
        return isinstance(said, SecretShare) and without_value(self) == said

    def __repr__(self) -> str:
        return f"SecretShare(key={self.key!r}, scope={self.scope!r}, value_ref=…)"


class SecretRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Revoke a secret."""

    type = "secret.revoke"
    needs = Permission.PARTICIPATE

    key: ContextKey
    reason: ShortText


class SecretShared(Event, frozen=True, kw_only=True, gc=False):
    """A secret was shared; the members in `to` receive its value once, live."""

    name = "secret.shared"
    carries_secret = True
    revokes_secret = True

    said: SecretShare
    expires_at: Instant | None = None


class SecretRevoked(Event, frozen=True, kw_only=True, gc=False):
    """A secret was revoked."""

    name = "secret.revoked"
    revokes_secret = True

    said: SecretRevoke


def without_value(body: SecretShare) -> SecretShare:
    return replace(body, value_ref="")


def share_secret(room: Room, command: Command, body: SecretShare) -> Iterator[EventOrEffect]:
    """Share a secret with members of the session, until a time in the future (OPEN-42)."""
    if not body.value_ref:
        raise Refused(Reason.MALFORMED, "value_ref is empty; give the secret's value")
    if strangers := sorted(id for id in body.scope if id not in room.members):
        raise Refused(Reason.NO_MEMBER, f"Not in this session: {', '.join(strangers)}")
    expires_at = parse_instant(body.expires_at)
    if expires_at is not None and expires_at <= command.at:
        raise Refused(Reason.MALFORMED, "expires_at is in the past")
    to = frozenset(body.scope) | {command.actor.principal}
    replaced = find_replaceable(room, command, body.key)
    if replaced is not None and (excluded := replaced.scope - to):
        reason = f"{replaced.sharer} shared it again, with others"
        yield SecretRevoked(said=SecretRevoke(body.key, reason), to=excluded)
    yield SecretShared(said=without_value(body), expires_at=expires_at, to=to)
    yield HoldSecret(body.key, body.value_ref)


def find_replaceable(room: Room, command: Command, key: str) -> SharedSecret | None:
    """The sender's own secret with this key; None if the key is free."""
    secret = room.secrets.get(key)
    if secret is not None and secret.sharer != command.actor.principal:
        raise Refused(Reason.WRONG_STATE, f"{key} is taken; choose another key")
    if secret is None and len(room.secrets) >= (max_secrets := command.policy.limits.secrets):
        detail = f"{max_secrets} secrets are shared, the most a session may have; revoke one first"
        raise limit_exceeded("secrets", max_secrets, detail)
    return secret


def parse_instant(text: str | None) -> Instant | None:
    """Milliseconds since 1970; a time without an offset is UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(Reason.MALFORMED, "expires_at is not an ISO 8601 timestamp") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - UNIX_EPOCH) // MILLISECOND


def revoke_secret(room: Room, command: Command, body: SecretRevoke) -> Iterator[EventOrEffect]:
    """Revoke a secret: its sharer, an admin or the server may."""
    secret = room.secrets.get(body.key)
    member_id = command.actor.principal
    system = command.actor.kind is Kind.SYSTEM
    admin = not system and Role.ADMIN in room.members[member_id].roles
    if secret is None or not (
        system or admin or member_id in secret.scope or member_id == secret.sharer
    ):
        raise Refused(Reason.NOT_FOUND, f"There is no secret {body.key} here")
    if not (system or admin or member_id == secret.sharer):
        raise Refused(Reason.FORBIDDEN, f"Only {secret.sharer} or an admin can revoke {body.key}")
    yield from revocation(secret, body, member_id if not system else None)


def revocation(
    secret: SharedSecret, body: SecretRevoke, revoked_by: str | None = None
) -> Iterator[EventOrEffect]:
    """Notify those who had it, and forget the value."""
    readers: MemberIds = secret.scope | {secret.sharer}
    yield SecretRevoked(said=body, to=readers | {revoked_by} if revoked_by else readers)
    yield DropSecret(secret.key)


def revoke_expired(room: Room, command: Command) -> Iterator[EventOrEffect]:
    for secret in room.secrets.values():
        if secret.expires_at is not None and secret.expires_at <= command.at:
            yield from revocation(secret, SecretRevoke(secret.key, "It has expired"))


def without_revoked(events: Iterable[EventOrEffect], room: Room) -> Room:
    """The room without the secrets that these events revoke."""
    revoked = [event.said.key for event in events if isinstance(event, SecretRevoked)]
    return replace(room, secrets=without_keys(room.secrets, *revoked)) if revoked else room


def revoke_all(room: Room, reason: str) -> Iterator[EventOrEffect]:
    """Revoke every secret: the session ends, or the values were lost."""
    for secret in room.secrets.values():
        yield from revocation(secret, SecretRevoke(secret.key, reason))


def revoke_orphaned(
    room: Room, member_id: str, gone: MemberIds = frozenset()
) -> Iterator[EventOrEffect]:
    """Revoke secrets that no remaining member may read once this one has left, too."""
    for secret in room.secrets.values():
        if secret.scope - gone == {member_id}:
            yield from revocation(secret, SecretRevoke(secret.key, f"{member_id} left"))


def on_shared(room: Room, event: SecretShared, record: Record) -> Room:
    body = event.said
    secret = SharedSecret(
        key=body.key,
        scope=frozenset(body.scope),
        sharer=record.actor,
        announced=record.id,
        said=msgspec.json.decode(msgspec.json.encode(body)),  # as a snapshot restores it
        expires_at=event.expires_at,
    )
    return replace(room, secrets={**room.secrets, body.key: secret})


def on_revoked(room: Room, event: SecretRevoked, record: Record) -> Room:
    return replace(room, secrets=without_keys(room.secrets, event.said.key))


def secrets_for_joiner(room: Room, member_id: str) -> Iterator[ReplayedMessage]:
    """The secrets that a member who joins may read, if their values are still held.

    The server sends them, since the sharer sends each only once; they refer to that message.
    """
    for secret in room.secrets.values():
        is_sharer = member_id == secret.sharer and not secret.sharer_left
        if is_sharer or member_id in secret.scope:
            body = msgspec.convert(secret.said, SecretShare)
            yield ReplayedMessage(secret.announced, SYSTEM, body, secret.key)


def without_member(room: Room, member_id: str) -> Room:
    """Leaving loses access, also after a rejoin."""
    secrets = {
        key: replace(
            secret,
            scope=secret.scope - {member_id},
            sharer_left=secret.sharer_left or member_id == secret.sharer,
        )
        for key, secret in room.secrets.items()
    }
    return replace(room, secrets=secrets) if secrets else room


DECIDE: Deciders = {SecretShare: share_secret, SecretRevoke: revoke_secret}
EVOLVE: Evolvers = {SecretShared: on_shared, SecretRevoked: on_revoked}
