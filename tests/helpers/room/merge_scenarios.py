"""Rooms with a fork that can be merged."""

from typing import Any

from accord.core.kernel.role_permissions import Role
from accord.core.room.forking.fork_state import MergeStrategy
from tests.helpers.room.logged_room import LoggedRoom, context_add, context_update
from tests.helpers.room.scenario import BOB, CAROL, CLAUDE, CODEX

ALL_MEMBERS = {"alice", "bob", "carol", "claude", "codex"}
UNGATED_STRATEGIES = [MergeStrategy.APPEND, MergeStrategy.INTERLEAVE, MergeStrategy.MANUAL]


def room_of_five(**config: Any) -> LoggedRoom:
    """A room with Alice as admin, Bob and Carol who drive and approve, and two agents."""
    return LoggedRoom.with_members(
        (BOB, Role.ADVERSARY),
        (CAROL, Role.ADVERSARY),
        (CLAUDE, Role.DRIVER),
        (CODEX, Role.DRIVER),
        **config,
    )


def room_with_fork(**config: Any) -> LoggedRoom:
    """A room with a fork `aside` of Alice, Bob and Claude that copied the items `a` and `b`."""
    room = room_of_five(**config)
    for key in ("a", "b"):
        room.send(BOB, context_add(key, "old"))
    room.fork("Aside", BOB, CLAUDE, copy=True)
    return room


def with_conflict(room: LoggedRoom, source: str = "aside") -> LoggedRoom:
    """Change item `a` both in the trunk and in the fork."""
    room.send(BOB, context_update("a", "ours"), fork=source)
    room.send(CAROL, context_update("a", "theirs"))
    return room
