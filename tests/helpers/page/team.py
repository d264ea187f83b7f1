"""People and agents with work under way: sessions, gates, decisions and stalls."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from accord.client import Client, Session, default_config
from accord.core.policy.reported_call import CallKind, Place, ReportedCall, reported_metadata
from tests.helpers.servers.server_process import ServerProcess

PEOPLE: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "maya": ("Maya Okafor", ("admin", "driver", "approver"), ()),
    "jonas": ("Jonas Lind", ("driver", "approver"), ()),
    "priya": ("Priya Raman", ("approver",), ("security",)),
    "lena": ("Lena Sommer", ("approver",), ("security",)),
}
PLACE = Place(cwd="/work/shop", worktree="/work/shop", home="/home/claude")
AGENTS = {"claude": "claude", "codex": "codex", "gemini": "gemini"}


class Team:
    """Clients of everyone, connected; sessions are created by Jonas."""

    def __init__(self, server: ServerProcess, stack: AsyncExitStack) -> None:
        self.server = server
        self.stack = stack
        self.clients: dict[str, Client] = {}

    async def client(self, id: str) -> Client:
        if id not in self.clients:
            kind = "agent" if id in AGENTS else "human"
            roles, labels = PEOPLE[id][1:] if id in PEOPLE else (("driver",), ())
            token = self.server.issue_token(id, kind, roles, labels)
            name = PEOPLE[id][0] if id in PEOPLE else AGENTS[id]
            made = Client(self.server.url, token=token, name=name)
            self.clients[id] = await self.stack.enter_async_context(made)
        return self.clients[id]

    async def session(self, name: str, *members: str, **config: Any) -> dict[str, Session]:
        """A session of these members by id; the first creates it."""
        first, *others = members
        created = await (await self.client(first)).create(
            default_config(**config), name=name, listen=False
        )
        joined = {first: created}
        for id in others:
            joined[id] = await (await self.client(id)).join(created.id, listen=False)
        return joined


@asynccontextmanager
async def team_at(server: ServerProcess) -> AsyncIterator[Team]:
    async with AsyncExitStack() as stack:
        yield Team(server, stack)


async def propose_migration(claude: Session) -> str:
    """A risky call with a reason, as agents write it."""
    return await claude.propose(
        "shell",
        {"command": "uv run alembic -x env=staging upgrade 4c1f9a2e07b3"},
        category="database",
        risk="high",
        description=(
            "The limits need a table that survives a Redis restart. "
            "Building its indexes concurrently takes no lock."
        ),
    )


async def propose_deletion(codex: Session) -> str:
    return await codex.propose(
        "shell",
        {"command": "rm -r var/cache/invoices/2024"},
        category="file_delete",
        risk="medium",
        description="214 cached files, rebuilt on demand",
    )


async def propose_reported(agent: Session, command: str) -> str:
    """A call that a hook reports, so that the server classes it itself."""
    call = ReportedCall(CallKind.SHELL, "Bash", {"command": command}, PLACE)
    return await agent.propose(
        "Bash",
        {"command": command},
        category="shell_execute",
        metadata=reported_metadata(call, "shop"),
    )
