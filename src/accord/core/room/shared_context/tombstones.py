"""Tombstones: which items were removed, as long as a merge may need to know."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from accord.core.room.shared_context import context_quota
from accord.core.room.state import Room

ScopeValue = TypeVar("ScopeValue")


def record_removals(room: Room, scope: str, gone: Mapping[str, str], version: int) -> Room:
    """Record removals, and forget those that no open fork's merge will need."""
    oldest_base = min((room.forks[fork].base for fork in open_fork_ancestry(room)), default=version)
    old = {key: at for key, at in room.removed.get(scope, {}).items() if at > oldest_base}
    removed = {**old, **(dict.fromkeys(gone, version) if version > oldest_base else {})}
    known = {**room.buried.get(scope, {}), **gone}
    buried = {key: known[key] for key in removed}
    return replace(
        room,
        removed={**without_merged_scopes(room, room.removed), scope: removed},
        buried={**without_merged_scopes(room, room.buried), scope: buried},
    )


def open_fork_ancestry(room: Room) -> set[str]:
    """The open forks and their ancestors: a merge compares from where the first of them began."""
    ids: set[str] = set()
    for fork in room.forks.values():
        id = None if fork.merged else fork.id
        while id is not None and id not in ids:
            ids.add(id)
            id = room.forks[id].parent
    return ids


def without_merged_scopes(
    room: Room, by_scope: Mapping[str, ScopeValue]
) -> Mapping[str, ScopeValue]:
    """Without the scopes of merged forks, which are not merged again."""
    return {
        scope: value
        for scope, value in by_scope.items()
        if not context_quota.is_merged_scope(room, scope)
    }
