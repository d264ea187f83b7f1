"""The fast path and the SDK behind it give the same answer to every request."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.role_permissions import Kind, Role
from accord.transports.edge.origin import is_loopback
from accord.transports.mcp.endpoint import SERVER_INFO, McpEndpoint
from accord.transports.mcp.tool_call_fast_path import FastCall, ToolCallFastPath
from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.mcp_requests import (
    META,
    MODERN,
    OLDER,
    McpHttp,
    caller_of,
    in_process_server,
    issue_token,
    modern_headers,
    modern_meta,
    rpc,
    structured,
    tool_call,
)
from tests.helpers.clients.websocket_client import SESSION_CONFIG

SESSION = "ses_one"
EXAMPLES = 300


class NoFastPath(ToolCallFastPath):
    """A fast path that recognises nothing."""

    def recognise(self, *_: Any) -> FastCall | None:
        return None


class CountingFastPath(ToolCallFastPath):
    """The fast path; counts the calls that it recognises."""

    recognised = 0

    def recognise(self, *request: Any) -> FastCall | None:
        call = super().recognise(*request)
        self.recognised += call is not None
        return call


class Pair(NamedTuple):
    """The same tools with the fast path and without it."""

    fast: McpHttp
    slow: McpHttp
    fast_path: CountingFastPath


def same(fast: httpx.Response, slow: httpx.Response) -> bool:
    """Status, headers and parsed body; the ids of the two sessions differ."""

    def comparable(answer: httpx.Response) -> Any:
        headers = {
            name: "…" if name == "mcp-session-id" else value
            for name, value in answer.headers.items()
            if name != "content-length"  # spaces in JSON are not compared
        }
        is_json = answer.content and answer.headers.get("content-type") == "application/json"
        return answer.status_code, headers, answer.json() if is_json else answer.text

    return bool(comparable(fast) == comparable(slow))


class Open(AsyncExitStack):
    """Two applications on one server, open for a test."""

    async def pair(self, home: Path) -> Pair:
        server = await self.enter_async_context(in_process_server(home))
        token = await issue_token(server, "claude", Kind.AGENT, Role.DRIVER)
        alice = await issue_token(server, "alice", Kind.HUMAN, Role.ADMIN)
        callers: list[McpHttp] = []
        fast_paths: list[CountingFastPath] = []
        for without in (False, True):
            app = McpEndpoint(
                server.callers, server.mcp.box, server.mcp.changes, is_loopback, lambda: "REQUEST"
            )
            fast_path = CountingFastPath(app.box, app.sessions, SERVER_INFO)
            app.fast_path = NoFastPath(app.box, app.sessions, {}) if without else fast_path
            fast_paths.append(fast_path)
            self.push_async_callback(app.close)
            self.callback(app.end_all)
            caller = await self.enter_async_context(caller_of(app, token))
            await caller.open_session()
            callers.append(caller)
        creator = await self.enter_async_context(caller_of(server.asgi_app(), alice))
        opened = envelope(
            "session.create", SESSION, "alice", {"name": "n", "config": SESSION_CONFIG}
        )
        structured(await creator.call("pvp_send", {"envelope": opened}))
        joined = envelope("session.join", SESSION, "claude", join_payload("claude", "agent"))
        structured(await callers[0].call("pvp_send", {"envelope": joined}))
        prompt = envelope(
            "context.add",
            SESSION,
            "alice",
            {
                "key": "k",
                "content_type": "structured",
                "content": {"a": None, "b": "café \u2028"},
            },
        )
        structured(await creator.call("pvp_send", {"envelope": prompt}))
        return Pair(callers[0], callers[1], fast_paths[0])


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with Open() as stack:
        yield await stack.pair(tmp_path)


CALLS: tuple[tuple[str, Any], ...] = (
    ("whats_waiting", {}),
    ("whats_waiting", None),
    ("pvp_read", {"session": SESSION}),
    ("pvp_read", {"session": SESSION, "limit": 1}),
    ("pvp_read", {"session": SESSION, "after": "nothing"}),
    ("pvp_read", {"session": "other"}),
    ("pvp_read", {"session": 5}),
    ("pvp_read", {"sesion": SESSION}),
    ("pvp_read", {}),
    (
        "pvp_send",
        {"envelope": envelope("session.join", SESSION, "claude", join_payload("claude", "agent"))},
    ),
    ("pvp_send", {"envelope": {"session": SESSION, "type": "nothing", "payload": {}}}),
    ("pvp_send", {"envelope": []}),
    ("report_result", {"session": SESSION, "proposal": "p", "success": True}),
    ("propose_and_wait", {"session": SESSION, "proposal": "p"}),
    ("nothing", {}),
)


async def test_recorded_shapes_of_calls_get_the_same_answer(pair: Pair) -> None:
    before = pair.fast_path.recognised
    for name, arguments in CALLS:
        body = tool_call(name, arguments, progressToken=3, **{"claudecode/toolUseId": "toolu_0"})
        headers = modern_headers("tools/call", name)
        fast, slow = await pair.fast.post(body, headers), await pair.slow.post(body, headers)
        assert same(fast, slow), (name, arguments, fast.text, slow.text)
        meta = {"callId": "c", "progressToken": 1}
        for revision in (OLDER, "2025-11-25", None):
            request = rpc("tools/call", {"name": name, "arguments": arguments, "_meta": meta})
            fast = await pair.fast.post(request, pair.fast.session_headers(revision))
            slow = await pair.slow.post(request, pair.slow.session_headers(revision))
            assert same(fast, slow), (name, arguments, revision, fast.text, slow.text)
    # All but the tool that waits for people, and the one that does not exist.
    assert pair.fast_path.recognised - before == 4 * (len(CALLS) - 2)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
# What a part of a request may be instead of what it should be; besides, anything.
OTHER_PARTS: dict[str, list[Any]] = {
    "jsonrpc": ["1.0"],
    "id": ["a", "", 2**53, 2**70, -(2**70), 1.0, 1.5, True],
    "method": ["tools/list", "ping"],
    "params": [{}, {"name": "whats_waiting"}],
    "more": [1],
}
OTHER_PARAMS: dict[str, list[Any]] = {
    "name": ["whats_waiting", "nothing", "propose_and_wait", ""],
    "arguments": [each for _, each in CALLS],
    "_meta": [{}, modern_meta()],
    "task": [{"ttl": 1}],
    "requestState": ["s"],
    "inputResponses": [{}],
    "more": [1],
}
OTHER_META: dict[str, list[Any]] = {
    f"{META}protocolVersion": [OLDER, "1999-01-01", 1],
    f"{META}clientCapabilities": [
        {},
        {"elicitation": {}},
        {"elicitation": {"form": 1}},
        {"roots": {}},
        {"roots": {"listChanged": 1}},
        {"sampling": {}},
        {"sampling": {"tools": {}}},
        {"extensions": {}},
        {"experimental": {"x": {}}},
        {"new": 1},
    ],
    f"{META}clientInfo": [
        {"name": "n", "version": "1"},
        {"name": "n"},
        {"name": "n", "version": 1},
        {"name": "n", "version": "1", "icons": []},
        {"name": "n", "version": "1", "websiteUrl": "no address"},
    ],
    f"{META}logLevel": ["debug", "loud"],
    f"{META}other": [1],
    "progressToken": [1, "t", 1.5, True],
    "traceparent": ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    "own": [{"a": None}],
}
OTHER_HEADERS: dict[str, list[str]] = {
    "accept": ["application/json", "*/*", "text/html", "text/event-stream", "application/*"],
    "content-type": ["application/json; charset=utf-8", "application/jsonx", "text/plain"],
    "mcp-protocol-version": [MODERN, OLDER, "2025-11-25", "1999-01-01"],
    "mcp-method": ["tools/call", "tools/list"],
    "mcp-name": ["whats_waiting", "pvp_read", "=?base64?cHZwX3JlYWQ=?="],
    "mcp-param-x": ["1"],
    "mcp-session-id": ["other", ""],
    "content-encoding": ["gzip"],
}
LEFT_OUT = object()


def change(data: st.DataObject, part: dict[str, Any], others: dict[str, list[Any]]) -> None:
    """Leave one field out, or give it another value."""
    name = data.draw(st.sampled_from(sorted(others)))
    anything: Any = st.text(max_size=5) if others is OTHER_HEADERS else json_values
    value: Any = data.draw(st.sampled_from([LEFT_OUT, *others[name]]) | anything)
    if value is LEFT_OUT:
        part.pop(name, None)
    elif others is not OTHER_HEADERS or (value.isascii() and value.isprintable()):
        part[name] = value.strip() if others is OTHER_HEADERS else value


async def compare(pair: Pair, data: st.DataObject) -> None:
    """Draw a request with up to two wrong parts, and send it to both."""
    name, arguments = data.draw(st.sampled_from(CALLS))
    modern = data.draw(st.booleans())
    meta = modern_meta(progressToken=1) if modern else {"callId": "c"}
    headers = modern_headers("tools/call", name) if modern else pair.fast.session_headers()
    params = {"name": name, "arguments": arguments, "_meta": meta}
    request = rpc("tools/call", params)
    parts = [(request, OTHER_PARTS), (params, OTHER_PARAMS), (meta, OTHER_META)]
    for _ in range(data.draw(st.integers(0, 2))):
        change(data, *data.draw(st.sampled_from([*parts, (headers, OTHER_HEADERS)])))
    raw = json.dumps(request).encode()
    if data.draw(st.integers(0, 9)) == 9:
        place = data.draw(st.integers(0, len(raw)))
        raw = raw[:place] + data.draw(st.binary(max_size=2)) + raw[place + 1 :]
    sent = [*headers.items()]
    if data.draw(st.integers(0, 9)) == 9:
        sent.append(data.draw(st.sampled_from(sent)))
    fast, slow = [
        await caller.post(
            raw,
            [(key, caller.session if text == pair.fast.session else text) for key, text in sent],
        )
        for caller in (pair.fast, pair.slow)
    ]
    assert same(fast, slow), (raw, sent, fast.text, slow.text)


def test_generated_requests_get_the_same_answer(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        stack = Open()
        pair = runner.run(stack.pair(tmp_path))

        @settings(max_examples=EXAMPLES)
        @given(st.data())
        def check(data: st.DataObject) -> None:
            runner.run(compare(pair, data))

        try:
            check()
            assert pair.fast_path.recognised > EXAMPLES / 10
        finally:
            runner.run(stack.aclose())
