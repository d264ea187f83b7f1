"""People at their shells, and an agent that waits for them."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from accord.client import Client, Session
from tests.helpers.clients.cli import UserShell
from tests.helpers.servers.server_process import ServerProcess


@pytest.fixture
def shell(server: ServerProcess, tmp_path: Path) -> Callable[..., UserShell]:
    """A shell for somebody, with a token of these roles."""

    def of(id: str, *roles: str, kind: str = "human", labels: tuple[str, ...] = ()) -> UserShell:
        token = server.issue_token(id, kind, roles or ("admin",), labels)
        return UserShell(tmp_path / f"home-{id}", server, token)

    return of


@pytest.fixture
def alice(shell: Callable[..., UserShell]) -> UserShell:
    """Alice, who may do everything."""
    return shell("alice", "admin")


@pytest.fixture
def session(alice: UserShell) -> str:
    """A session of Alice's."""
    return alice.output_of("session", "create", "--name", "Fix the parser")


@pytest.fixture
async def claude(server: ServerProcess, session: str) -> AsyncIterator[Session]:
    """An agent in that session."""
    token = server.issue_token("claude", "agent", ("driver",))
    async with Client(server.url, token=token) as client:
        yield await client.join(session, listen=False)
