"""A person who approves and an agent in one session, both over MCP."""

from typing import Any, NamedTuple

from accord.server.app import Server
from tests.helpers.clients.mcp_requests import (
    META,
    McpHttp,
    modern_headers,
    modern_meta,
    rpc,
    structured,
)

CALL = {
    "tool_name": "bash",
    "arguments": {"command": "rm -r build"},
    "description": "remove old output",
    "category": "shell_execute",
}


class Team(NamedTuple):
    """Alice, who approves, and Claude, an agent, in one session."""

    server: Server
    alice: McpHttp
    claude: McpHttp
    session: str


async def send(caller: McpHttp, session: str, type: str, payload: Any, **more: Any) -> Any:
    envelope = {"session": session, "type": type, "payload": payload, **more}
    return structured(await caller.call("pvp_send", {"envelope": envelope}))


async def propose(team: Team, call: Any, **params: Any) -> Any:
    """Propose as a host does that cannot show an address."""
    meta = {**modern_meta(), f"{META}clientCapabilities": {}}
    arguments = {"session": team.session, **call}
    request = {"name": "propose_and_wait", "arguments": arguments, "_meta": meta, **params}
    headers = modern_headers("tools/call", "propose_and_wait")
    return await team.claude.post(rpc("tools/call", request), headers)


async def pending_gate(team: Team, **call: Any) -> str:
    """The gate of a new proposal, which waits for alice."""
    answer = structured(await propose(team, {**CALL, **call, "wait_seconds": 0}))
    id: str = answer["gate"]["id"]
    return id
