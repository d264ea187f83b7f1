"""Signing keys: which one signs, and every public half there was."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.authority import May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record
from accord.core.kernel.refusal import Refused, Why

from .state import Key, People, looks_after, serves


class KeyRotate(Body, frozen=True, omit_defaults=True, gc=False):
    """From now on this key signs."""

    type = "key.rotate"
    needs = May.SERVE

    key: Key


class KeyRotated(Event, frozen=True, kw_only=True, gc=False):
    """Another key signs; the public half of every earlier one stays known."""

    name = "key.rotated"

    key: Key


def ensure_keeper(actor: Actor) -> None:
    """Keys are the whole house's: an operator of one workspace may not touch them."""
    if not (serves(actor) and looks_after(actor, DEFAULT_WORKSPACE)):
        raise Refused(Why.FORBIDDEN, "Only the operators of the default workspace change keys")


def rotate(people: People, ask: Ask, body: KeyRotate) -> Iterator[Fact]:
    """Once per key: the log tells which key signed since when."""
    ensure_keeper(ask.actor)
    before = people.keys.get(body.key.kid)
    if before is not None and before != body.key:
        raise Refused(Why.KEY_REUSED, f"Another key was called {body.key.kid} before")
    if body.key.kid != people.active:
        yield KeyRotated(key=body.key)


def on_rotated(people: People, event: KeyRotated, record: Record) -> People:
    key = event.key
    return replace(people, keys={**people.keys, key.kid: key}, active=key.kid)


DECIDE: Deciders = {
    KeyRotate: rotate,
}
EVOLVE: Evolvers = {
    KeyRotated: on_rotated,
}
