"""Guards: the categories whose proposals go by a decision, until people say otherwise."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from accord.core.kernel.authority import Kind
from accord.core.kernel.log import Ask
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.forks import lineage
from accord.core.room.places import scope_of
from accord.core.room.state import Category, Room, Tool
from accord.core.room.waiting import PREFIX, SNAPSHOT, bound, told

Kinds = frozenset[Category]


def of(said: Mapping[str, Any] | None) -> Kinds:
    """What a ruling guards."""
    return frozenset(map(Category, said.get("guards", ()))) if said else frozenset()


def settled(ask: Ask, before: Kinds, wanted: tuple[Category, ...] | UnsetType) -> Kinds:
    """What a decision guards from now on: as before, unless a person says something else."""
    if wanted is UNSET or frozenset(wanted) == before:
        return before
    if ask.actor.kind is Kind.AGENT:
        raise Refused(Why.FORBIDDEN, "What a decision guards is for people to say")
    return frozenset(wanted)


def check(room: Room, tool: Tool, kinds: Kinds) -> None:
    """Whoever guards a category wants its proposals bound to that decision, in forks as well."""
    found = {key: each for key, held in guarding(room, tool) if (each := covered(held, kinds))}
    link = bound(tool)
    key = f"{PREFIX}{link.batch}" if link else ""
    mine = covered(of(told(room, tool.fork, key + SNAPSHOT)), kinds)
    missing = frozenset[Category]().union(*found.values()) - mine
    if missing:
        detail = f"Here such proposals go by {', '.join(sorted(found))}: name batch, item and step"
        raise Refused(Why.WRONG_STATE, f"{detail} of it in arguments.decision")


def guarding(room: Room, tool: Tool) -> Iterator[tuple[str, Kinds]]:
    """The decisions of the place, and of those it branched off, with what they guard."""
    for place in lineage(room, tool.fork):
        for key in room.shelf.get(scope_of(place), {}):
            if key.startswith(PREFIX) and key.endswith(SNAPSHOT):
                yield key.removesuffix(SNAPSHOT), of(told(room, place, key))


def covered(held: Kinds, kinds: Kinds) -> Kinds:
    """Which of the kinds are guarded; a guard of all is one of each."""
    if Category.ALL in held:
        return kinds
    return held if Category.ALL in kinds else held & kinds
