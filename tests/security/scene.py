"""A session with somebody who approves and an agent who cannot be trusted."""

import asyncio
import json
import urllib.error
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from tests.helpers.server import ServerProcess
from tests.helpers.wire import Wire

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
    alice: Wire
    bot: Wire

    async def gate(self, **changes: Any) -> tuple[str, str]:
        """A new proposal of the agent's, and the gate it waits at."""
        proposal = await self.bot.say("tool.propose", self.session, PROPOSAL | changes)
        asked = await self.bot.hear_until("gate.request", action_ref=proposal)
        return proposal, asked["id"]

    async def come(self, seat: str, token: str, *, kind: str = "human", roles: Any = ()) -> Wire:
        """One more member."""
        wire = await Wire.open(self.server.ws_url, seat, token)
        await wire.join(self.session, kind, roles)
        await wire.hear_until("participant.announce", id=seat)
        return wire


async def scene(server: ServerProcess, **config: Any) -> Scene:
    """Both are there."""
    alice = await Wire.open(server.ws_url, "alice", server.issue("alice", roles=["admin"]))
    session = await alice.create(**config)
    bot = await Wire.open(server.ws_url, "bot", server.issue("bot", "agent"))
    await bot.join(session, "agent")
    await bot.hear_until("participant.announce", id="bot")
    return Scene(server, session, alice, bot)


async def error(wire: Wire) -> dict[str, Any]:
    """The next error, whatever else is heard before it."""
    heard: dict[str, Any] = (await wire.hear_until("error"))["payload"]
    return heard


async def executes(wire: Wire, proposal: str, *, within: float = 0.5) -> bool:
    """Whether the room is told that a proposal may run."""
    try:
        async with asyncio.timeout(within):
            await wire.hear_until("tool.execute", tool_proposal=proposal)
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
