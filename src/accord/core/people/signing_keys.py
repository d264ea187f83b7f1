"""Signing keys, active and earlier, and the secret from which message ids are derived."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission

from .state import People, SigningKey, administers, is_operator_or_system


class KeyRotate(Body, frozen=True, omit_defaults=True, gc=False):
    """Make this the active signing key."""

    type = "key.rotate"
    needs = Permission.SERVER_ONLY

    key: SigningKey


class KeyRotated(Event, frozen=True, kw_only=True, gc=False):
    """The active key changed; the public halves of earlier keys stay known."""

    name = "key.rotated"

    key: SigningKey


class IdSecretChoose(Body, frozen=True, omit_defaults=True, gc=False):
    """Choose the secret from which the ids of keyed messages are derived."""

    type = "id_secret.choose"
    needs = Permission.SERVER_ONLY

    secret: str


class IdSecretChosen(Event, frozen=True, kw_only=True, gc=False):
    """The secret was chosen, once: with another one, a retry would be a new message."""

    name = "id_secret.chosen"

    secret: str


def ensure_key_operator(actor: Actor) -> None:
    """Keys belong to the whole server, so operators of other workspaces are refused."""
    if not (is_operator_or_system(actor) and administers(actor, DEFAULT_WORKSPACE)):
        raise Refused(Reason.FORBIDDEN, "Only operators of the default workspace may change keys")


def rotate_key(people: People, command: Command, body: KeyRotate) -> Iterator[EventOrEffect]:
    """Idempotent; the log shows from when on each key was active."""
    ensure_key_operator(command.actor)
    before = people.keys.get(body.key.kid)
    if before is not None and before != body.key:
        raise Refused(Reason.KEY_REUSED, f"The key id {body.key.kid} belongs to another key")
    if body.key.kid != people.active:
        yield KeyRotated(key=body.key)


def choose_id_secret(
    people: People, command: Command, body: IdSecretChoose
) -> Iterator[EventOrEffect]:
    """The first one stays, whichever server of this log chose it."""
    ensure_key_operator(command.actor)
    if not people.id_secret:
        yield IdSecretChosen(secret=body.secret)


def on_id_secret(people: People, event: IdSecretChosen, record: Record) -> People:
    return replace(people, id_secret=event.secret)


def on_rotated(people: People, event: KeyRotated, record: Record) -> People:
    key = event.key
    return replace(people, keys={**people.keys, key.kid: key}, active=key.kid)


DECIDE: Deciders = {
    KeyRotate: rotate_key,
    IdSecretChoose: choose_id_secret,
}
EVOLVE: Evolvers = {
    KeyRotated: on_rotated,
    IdSecretChosen: on_id_secret,
}
