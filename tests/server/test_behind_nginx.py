"""Three servers on one PostgreSQL log behind nginx, as `docs/how-to/scale.md` configures it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from accord.client import Client, RetryPolicy, Session
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.servers.certificates import CertificateAuthority, trust_authority
from tests.helpers.servers.nginx_proxy import nginx_in_front_of
from tests.helpers.servers.postgres_server import SHARED_POSTGRES
from tests.helpers.servers.server_group import ServerGroup, run_servers
from tests.spec import proves

ROLES = {
    "alice": ("admin", "driver", "approver"),
    "bob": ("driver", "approver"),
    "claude": ("driver",),
}
SOON = RetryPolicy(first_delay_s=0.01, max_delay_s=0.2)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerGroup]:
    database = SHARED_POSTGRES.server().new_database()
    with run_servers(tmp_path, [database] * 3) as group:
        yield group


@pytest.fixture
def address(servers: ServerGroup, tmp_path: Path) -> Iterator[str]:
    """The one address of all servers."""
    authority = CertificateAuthority(tmp_path / "authority")
    ports = [server.port for server in servers.servers]
    certificate = authority.issue_certificate()
    with (
        trust_authority(authority),
        nginx_in_front_of(ports, tmp_path / "nginx", certificate) as url,
    ):
        yield url


class Team:
    """People and an agent with one session, and what each of them hears."""

    def __init__(self, sessions: dict[str, Session], hears: dict[str, RecordingListener]) -> None:
        self.sessions, self.hears = sessions, hears

    async def say(self, sender: str, text: str) -> None:
        """Everybody hears it."""
        said = await self.sessions[sender].prompt(text, agent="claude")
        for listener in self.hears.values():
            await listener.wait_for(lambda envelope: envelope.id == said)


@pytest.fixture
async def team(servers: ServerGroup, address: str) -> AsyncIterator[Team]:
    tokens = {
        id: servers[0].issue_token(id, "agent" if id == "claude" else "human", roles)
        for id, roles in ROLES.items()
    }
    async with AsyncExitStack() as stack:
        clients = {
            id: await stack.enter_async_context(Client(address, token=token, retry=SOON))
            for id, token in tokens.items()
        }
        created = await clients["alice"].create()
        sessions = {"alice": created}
        for id in ("bob", "claude"):
            sessions[id] = await clients[id].join(created.id)
        hears = {
            id: await stack.enter_async_context(RecordingListener(session))
            for id, session in sessions.items()
        }
        yield Team(sessions, hears)


@proves("PVP-3.2-1", "PVP-3.2-2")
@pytest.mark.timeout(300)
async def test_servers_are_killed_and_restarted_behind_one_address_and_nothing_is_lost(
    servers: ServerGroup, team: Team
) -> None:
    await team.say("alice", "Before")
    for number, server in enumerate(servers.servers):
        server.kill()
        await team.say("bob", f"Server {number} was killed")
        server.start()
        await team.say("alice", f"Server {number} is back")
    for number, server in enumerate(servers.servers):
        server.stop()  # SIGTERM; it must exit with 0
        await team.say("alice", f"Server {number} was stopped")
        server.start()
        await team.say("bob", f"Server {number} was started")

    for listener in team.hears.values():
        listener.check_once_in_order()
    said = [each for each in team.hears["claude"].received if each.type == "prompt.submit"]
    assert len(said) == 1 + 4 * len(servers.servers)
