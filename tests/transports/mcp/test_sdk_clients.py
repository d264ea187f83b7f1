"""The official client in all its modes, over HTTP and over `accord mcp`."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

MODES = ("2026-07-28", "auto", "legacy")
TRANSPORTS = ("http", "stdio")
NOTICE_TIMEOUT_S = 30


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@asynccontextmanager
async def client(
    house: ServerProcess, id: str, transport: str, mode: Any, **more: Any
) -> AsyncIterator[Client]:
    """A connected client of an agent, or with this token."""
    token = more.pop("token", None) or house.issue_token(id, "agent")
    if transport == "stdio":
        env = {**os.environ, "ACCORD_URL": house.url, "ACCORD_TOKEN": token}
        words = StdioServerParameters(command=sys.executable, args=["-m", "accord", "mcp"], env=env)
        async with Client(stdio_client(words), mode=mode, **more) as connected:
            yield connected
        return
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        stream = streamable_http_client(f"{house.url}/mcp", http_client=http)
        async with Client(stream, mode=mode, **more) as connected:
            yield connected


async def subscribe(client: Client, uri: str) -> None:
    """Subscribe as clients of the older revisions do."""
    params = types.SubscribeRequestParams(uri=uri)
    await client.session.send_request(types.SubscribeRequest(params=params), types.EmptyResult)


@proves("MSG-1-3", "OPEN-125", "PVP-1.2-4")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_client_lists_calls_reads_and_is_refused(
    house: ServerProcess, transport: str, mode: str
) -> None:
    async with client(house, "claude", transport, mode) as claude:
        assert claude.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert "propose_and_wait" in {tool.name for tool in (await claude.list_tools()).tools}
        made = await claude.call_tool("create_thread", {"title": "t", "participants": ["claude"]})
        thread = made.structured_content["thread_id"]
        post = {"thread_id": thread, "schema_version": 1, "body": "hi"}
        posted = await claude.call_tool("post_message", post)
        assert not posted.is_error
        read = await claude.call_tool("read_messages", {"thread_id": thread})
        assert [each["body"] for each in read.structured_content["messages"]] == ["hi"]
        refused = await claude.call_tool("read_messages", {"thread_id": "th_other"})
        assert refused.is_error
        assert refused.structured_content["error"]["code"] == "NOT_FOUND"
        uris = {str(each.uri) for each in (await claude.list_resources()).resources}
        assert uris == {"accord://inbox", "accord://threads", "accord://agents"}
        assert len((await claude.list_resource_templates()).resource_templates) == 2
        content = (await claude.read_resource(f"accord://threads/{thread}")).contents[0]
        assert '"hi"' in getattr(content, "text", "")
        with pytest.raises(MCPError, match="no resource"):
            await claude.read_resource("accord://threads/th_other")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_listening_client_hears_of_changes_it_may_see(
    house: ServerProcess, transport: str
) -> None:
    async with (
        client(house, "claude", transport, "2026-07-28") as claude,
        client(house, "codex", "http", "auto") as codex,
    ):
        made = await codex.call_tool(
            "create_thread", {"title": "t", "participants": ["claude", "codex"]}
        )
        thread = made.structured_content["thread_id"]
        uri = f"accord://threads/{thread}"
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            async with claude.listen(resource_subscriptions=[uri]) as events:
                post = {"thread_id": thread, "schema_version": 1, "body": "hi"}
                await codex.call_tool("post_message", post)
                async for event in events:
                    assert event == ResourceUpdated(uri=uri)
                    break


async def test_subscription_to_what_one_may_not_read_is_refused(house: ServerProcess) -> None:
    async with (
        client(house, "codex", "http", "auto") as codex,
        client(house, "mallory", "http", "2026-07-28") as listener,
        client(house, "mallory", "http", "legacy") as subscriber,
    ):
        made = await codex.call_tool("create_thread", {"title": "t", "participants": ["codex"]})
        uri = f"accord://threads/{made.structured_content['thread_id']}"
        with pytest.raises(MCPError, match="no resource"):
            async with listener.listen(resource_subscriptions=[uri]):
                pass
        with pytest.raises(MCPError, match="no resource"):
            await subscribe(subscriber, uri)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_subscribed_session_hears_of_changes(house: ServerProcess, transport: str) -> None:
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        if "resources/updated" in str(getattr(message, "method", "")):
            heard.set()

    async with (
        client(house, "claude", transport, "legacy", message_handler=on_message) as claude,
        client(house, "codex", "http", "auto") as codex,
    ):
        made = await codex.call_tool("create_thread", {"title": "t", "participants": ["claude"]})
        thread = made.structured_content["thread_id"]
        await subscribe(claude, f"accord://threads/{thread}")
        with anyio.fail_after(NOTICE_TIMEOUT_S):
            while not heard.is_set():
                post = {"thread_id": thread, "schema_version": 1, "body": "hi"}
                await codex.call_tool("post_message", post)
                with anyio.move_on_after(0.2):
                    await heard.wait()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("own", [True, False], ids=["own connection", "agent"])
async def test_the_form_of_a_gate_is_a_vote_only_on_a_persons_own_connection(
    house: ServerProcess, transport: str, own: bool
) -> None:
    roles = ["admin", "driver", "approver"]
    token = house.issue_token("alice", "human", roles=roles)
    agents = house.issue_token("claude", "agent")
    alice, claude = HttpClient(house.url, "alice", token), HttpClient(house.url, "claude", agents)
    session = await alice.create()
    await alice.join(session, roles=roles)
    await claude.join(session, kind="agent")
    proposal = {
        "tool_name": "bash",
        "arguments": {"command": "make"},
        "agent": "claude",
        "risk_level": "medium",
        "description": "build",
        "requires_approval": True,
        "category": "shell_execute",
    }
    await claude.send("tool.propose", session, proposal)
    [gate] = (await alice.http.get(f"/sessions/{session}")).json()["gates"]
    shown: list[str] = []

    async def approve(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        shown.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    more = {"token": token if own else agents, "elicitation_callback": approve}
    async with client(house, "alice", transport, "auto", **more) as host:
        answer = await host.call_tool("pvp_send", {"decide": gate["id"]})
    left = (await alice.http.get(f"/sessions/{session}")).json()["gates"]
    assert answer.is_error is not own
    assert (len(shown), len(left)) == ((1, 0) if own else (0, 1))
    await alice.close()
    await claude.close()
