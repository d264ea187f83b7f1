"""Fixtures of the tests of MCP."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from accord.core.kernel.role_permissions import Kind, Role
from tests.helpers.clients.http_client import join_payload
from tests.helpers.clients.mcp_requests import caller_of, in_process_server, issue_token
from tests.helpers.clients.mcp_team import Team, send
from tests.helpers.clients.websocket_client import SESSION_CONFIG


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Team]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(in_process_server(tmp_path))
        app = server.asgi_app()
        tokens = [
            await issue_token(server, "alice", Kind.HUMAN, Role.ADMIN, Role.APPROVER),
            await issue_token(server, "claude", Kind.AGENT, Role.DRIVER),
        ]
        alice, claude = [await stack.enter_async_context(caller_of(app, each)) for each in tokens]
        opened = await send(alice, "", "session.create", {"name": "n", "config": SESSION_CONFIG})
        joined = join_payload("claude", "agent")
        await send(claude, opened["session"], "session.join", joined)
        yield Team(server, alice, claude, opened["session"])
