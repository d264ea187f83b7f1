"""A session with somebody who approves and an agent who cannot be trusted."""

import asyncio
import json
import urllib.error
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess

PROPOSAL: dict[str, Any] = {
    "tool_name": "shell",
    "arguments": {"argv": ["ls"]},
    "agent": "bot",
    "risk_level": "low",
    "description": "Look around",
    "requires_approval": False,
    "category": "shell_execute",
}
PROMPT: dict[str, Any] = {
    "content": "Hello",
    "target_agent": "bot",
    "contributors": [],
    "context_keys": [],
}
PATIENCE = 30


class Scene(NamedTuple):
    """Alice opened the session, bot works in it."""

    server: ServerProcess
    session: str
    alice: WebSocketClient
    bot: WebSocketClient

    async def gate(self, **changes: Any) -> tuple[str, str]:
        """A new proposal of the agent's, and the gate it waits at."""
        proposal = await self.bot.send("tool.propose", self.session, PROPOSAL | changes)
        asked = await self.bot.receive_until("gate.request", action_ref=proposal)
        return proposal, asked["id"]

    async def come(
        self, seat: str, token: str, *, kind: str = "human", roles: Any = ()
    ) -> WebSocketClient:
        """One more member."""
        wire = await WebSocketClient.open(self.server.ws_url, seat, token)
        await wire.join(self.session, kind, roles)
        await wire.receive_until("participant.announce", id=seat)
        return wire


async def scene(server: ServerProcess, **config: Any) -> Scene:
    """Both are there."""
    alice = await WebSocketClient.open(
        server.ws_url, "alice", server.issue_token("alice", roles=["admin"])
    )
    session = await alice.create(**config)
    bot = await WebSocketClient.open(server.ws_url, "bot", server.issue_token("bot", "agent"))
    await bot.join(session, "agent")
    await bot.receive_until("participant.announce", id="bot")
    return Scene(server, session, alice, bot)


async def error(wire: WebSocketClient) -> dict[str, Any]:
    """The next error, whatever else is heard before it."""
    heard: dict[str, Any] = (await wire.receive_until("error"))["payload"]
    return heard


async def executes(wire: WebSocketClient, proposal: str, *, within: float = 0.5) -> bool:
    """Whether the room is told that a proposal may run."""
    try:
        async with asyncio.timeout(within):
            await wire.receive_until("tool.execute", tool_proposal=proposal)
    except TimeoutError:
        return False
    return True


async def get(url: str, token: str = "", **headers: str) -> tuple[int, Any]:
    """Status and content of an answer over HTTP."""
    given = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    return await asyncio.to_thread(_get, Request(url, headers=given))  # noqa: S310 - our own


def _get(request: Request) -> tuple[int, Any]:
    try:
        with urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - our own address
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as no:
        with no:
            status, body = no.code, no.read()
    return status, json.loads(body) if body.startswith(b"{") else body
