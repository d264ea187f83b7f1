"""Graves: that something was removed is remembered as long as a merge may ask for it."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from accord.core.room import quota
from accord.core.room.state import Room

Graves = TypeVar("Graves")


def bury(room: Room, scope: str, gone: Mapping[str, str], version: int) -> Room:
    """Remember what was removed, as long as the merge of an open fork may ask for it."""
    asked = min((room.forks[fork].base for fork in apart(room)), default=version)
    old = {key: at for key, at in room.removed.get(scope, {}).items() if at > asked}
    removed = {**old, **(dict.fromkeys(gone, version) if version > asked else {})}
    known = {**room.buried.get(scope, {}), **gone}
    buried = {key: known[key] for key in removed}
    return replace(
        room,
        removed={**living(room, room.removed), scope: removed},
        buried={**living(room, room.buried), scope: buried},
    )


def apart(room: Room) -> set[str]:
    """The open forks, and those they left: a merge looks back to where the first one left."""
    found: set[str] = set()
    for fork in room.forks.values():
        line = None if fork.merged else fork.id
        while line is not None and line not in found:
            found.add(line)
            line = room.forks[line].parent
    return found


def living(room: Room, graves: Mapping[str, Graves]) -> Mapping[str, Graves]:
    """Those of shelves that may still be merged."""
    return {scope: each for scope, each in graves.items() if not quota.is_over(room, scope)}
