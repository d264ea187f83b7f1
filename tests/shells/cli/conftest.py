"""People at their shells, and an agent that waits for them."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from accord.client import Client, Session
from tests.helpers.cli import Shell
from tests.helpers.server import ServerProcess


@pytest.fixture
def shell(server: ServerProcess, tmp_path: Path) -> Callable[..., Shell]:
    """A shell for somebody, with a token of these roles."""

    def of(id: str, *roles: str, kind: str = "human", labels: tuple[str, ...] = ()) -> Shell:
        token = server.issue(id, kind, roles or ("admin",), labels)
        return Shell(tmp_path / f"home-{id}", server, token)

    return of


@pytest.fixture
def alice(shell: Callable[..., Shell]) -> Shell:
    """Alice, who may do everything."""
    return shell("alice", "admin")


@pytest.fixture
def session(alice: Shell) -> str:
    """A session of Alice's."""
    return alice.good("session", "create", "--name", "Fix the parser")


@pytest.fixture
async def claude(server: ServerProcess, session: str) -> AsyncIterator[Session]:
    """An agent in that session."""
    token = server.issue("claude", "agent", ("driver",))
    async with Client(server.url, token=token) as client:
        yield await client.join(session, listen=False)
