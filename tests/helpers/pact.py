"""A repository's pact in a room: features open, accepted and merged."""

from typing import Any

from accord.core.kernel.actor import POLICY
from accord.core.kernel.authority import Role
from accord.core.room.pact import TasksMirror
from accord.core.room.state import Lane
from tests.helpers.forks import Talk
from tests.helpers.room import BOB, CLAUDE

REPO = "shop-1"
CONTENT: dict[str, Any] = {"goal": "shop", "tasks": [], "pact": REPO}
OPEN = Lane("cart", "cart", ("T1", "T2"))
ACCEPTED = Lane("cart", "cart")
SHIPPED = Lane("cart", "cart", shipped=True)


def tasks(*lanes: Lane, content: dict[str, Any] = CONTENT, repo: str = REPO) -> TasksMirror:
    return TasksMirror(repo=repo, content=content, lanes=lanes)


def talking(*lanes: Lane) -> Talk:
    talk = Talk.of((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.says(POLICY, tasks(*lanes))
    return talk
