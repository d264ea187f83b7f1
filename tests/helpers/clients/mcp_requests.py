"""Requests to `/mcp` in the shapes that real hosts send, and an application in process."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from accord.api.tokens import TokenRequest
from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_service import SHELL_ACTOR
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog

MODERN, OLDER = "2026-07-28", "2025-06-18"
BOTH_TYPES = "application/json, text/event-stream"
META = "io.modelcontextprotocol/"
CLIENT_INFO = {"name": "claude-code", "title": "Claude Code", "version": "2.1.326"}
CAPABILITIES = {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}


def modern_meta(**more: Any) -> dict[str, Any]:
    """`_meta` as Claude Code sends it."""
    return {
        f"{META}protocolVersion": MODERN,
        f"{META}clientInfo": CLIENT_INFO,
        f"{META}clientCapabilities": CAPABILITIES,
        **more,
    }


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    """Headers of the newest revision."""
    headers = {
        "accept": BOTH_TYPES,
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    return headers if name is None else headers | {"mcp-name": name}


def rpc(method: str, params: Any, id: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def tool_call(name: str, arguments: Any, id: Any = 3, **meta: Any) -> dict[str, Any]:
    """A call as Claude Code sends it."""
    params = {"name": name, "arguments": arguments, "_meta": modern_meta(**meta)}
    return rpc("tools/call", params, id)


class McpHttp:
    """A caller of `/mcp` with one token."""

    def __init__(self, http: httpx.AsyncClient, token: str) -> None:
        self.http = http
        self.token = token
        self.session = ""

    async def post(
        self, body: Any, headers: Mapping[str, str] | list[tuple[str, str]]
    ) -> httpx.Response:
        """Send bytes as they are, or anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = [("authorization", f"Bearer {self.token}")] if self.token else []
        sent += list(headers.items() if isinstance(headers, Mapping) else headers)
        return await self.http.post("/mcp", content=content, headers=sent)

    async def call(self, name: str, arguments: Any, **more: Any) -> httpx.Response:
        """Call a tool with the newest revision."""
        return await self.post(
            tool_call(name, arguments, **more), modern_headers("tools/call", name)
        )

    async def open_session(self, revision: str = OLDER) -> str:
        """Shake hands as Codex and Gemini do; returns the session's id."""
        params = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "codex-mcp-client", "version": "0.169.0"},
        }
        headers = {"accept": BOTH_TYPES, "content-type": "application/json"}
        answer = await self.post(rpc("initialize", params, 0), headers)
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.post(ready, self.session_headers())).status_code == 202
        return self.session

    def session_headers(self, revision: str | None = OLDER) -> dict[str, str]:
        """Headers within the session; Gemini leaves the revision out."""
        headers = {
            "accept": BOTH_TYPES,
            "content-type": "application/json",
            "mcp-session-id": self.session,
        }
        return headers if revision is None else headers | {"mcp-protocol-version": revision}

    async def call_in_session(self, name: str, arguments: Any, id: Any = 1) -> httpx.Response:
        """Call a tool within the session."""
        params = {"name": name, "arguments": arguments}
        return await self.post(rpc("tools/call", params, id), self.session_headers())


def structured(answer: httpx.Response) -> Any:
    """The structured content of a tool's result, which is also its text."""
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


@asynccontextmanager
async def in_process_server(home: Path, **options: Any) -> AsyncIterator[Server]:
    """A server without a socket, on a log in memory."""
    server = Server(ServerOptions(home=home, rate_limit=None, **options), MemoryLog())
    await server.start()
    try:
        yield server
    finally:
        await server.finish_pending(5)
        await server.stop()


async def issue_token(
    server: Server, id: str, kind: Kind = Kind.HUMAN, *roles: Role, workspace: str = "default"
) -> str:
    """A token of this server."""
    wish = TokenRequest(
        id=id, kind=kind, roles=frozenset(roles or {Role.DRIVER}), workspace=workspace
    )
    return (await server.token_service.admin_for(SHELL_ACTOR).issue(wish)).token


@asynccontextmanager
async def caller_of(app: Any, token: str) -> AsyncIterator[McpHttp]:
    """A caller that reaches an application in process."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7420") as http:
        yield McpHttp(http, token)
