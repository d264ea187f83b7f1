"""Rooms with a repository's pact whose features are open, accepted or merged."""

from typing import Any

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.role_permissions import Role
from accord.core.room.forking.fork_state import PactFeature
from accord.core.room.forking.pact_tasks import TasksMirror
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import BOB, CLAUDE

REPO_ID = "shop-1"
TASKS_CONTENT: dict[str, Any] = {"goal": "shop", "tasks": [], "pact": REPO_ID}
OPEN_FEATURE = PactFeature("cart", "cart", ("T1", "T2"))
ACCEPTED_FEATURE = PactFeature("cart", "cart")
SHIPPED_FEATURE = PactFeature("cart", "cart", shipped=True)


def tasks_mirror(
    *lanes: PactFeature, content: dict[str, Any] = TASKS_CONTENT, repo: str = REPO_ID
) -> TasksMirror:
    """The message by which the server mirrors a pact into a room."""
    return TasksMirror(repo=repo, content=content, lanes=lanes)


def room_with_pact(*lanes: PactFeature) -> LoggedRoom:
    """A room with Alice, Bob and Claude and a mirrored pact."""
    room = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    room.send(POLICY_ACTOR, tasks_mirror(*lanes))
    return room
