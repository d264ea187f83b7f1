"""The fast path and the SDK behind it give the same answer to every request."""

import asyncio
import json
import re
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
from accord.transports.mcp.tool_call_fast_path import CONTENT_TYPES, FastCall, ToolCallFastPath
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
from tests.helpers.servers.server_process import ServerProcess

SESSION = "ses_one"
# Requests name the thread by this word, because its id differs in every run.
THREAD = "th_OWN"
REQUEST_ID = re.compile("req_[0-9A-HJKMNP-TV-Z]{26}")
# The request itself makes an agent heard of; in text the quotes are escaped.
LAST_SEEN = re.compile(r'(last_seen_at\\*":\s*\\*")[^"\\]*')
RECORDED = Path(__file__).parents[2] / "data" / "mcp"
EXAMPLES = 300


Headers = list[tuple[str, str]]


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
    thread: str

    async def send(self, raw: bytes, headers: Headers) -> tuple[httpx.Response, httpx.Response]:
        """The answers of both, each in its own session and about the same thread."""
        content = raw.replace(THREAD.encode(), self.thread.encode())
        fast, slow = [
            await caller.post(
                content,
                [
                    (name, caller.session if text == self.fast.session else text)
                    for name, text in headers
                ],
            )
            for caller in (self.fast, self.slow)
        ]
        return fast, slow


def same(fast: httpx.Response, slow: httpx.Response) -> bool:
    """Status, headers and parsed body; the ids of the two sessions differ."""

    def comparable(answer: httpx.Response) -> Any:
        headers = {
            name: "…" if name == "mcp-session-id" else value
            for name, value in answer.headers.items()
            if name not in {"content-length", "date"}  # spaces in JSON are not compared
        }
        is_json = answer.content and answer.headers.get("content-type") == "application/json"
        text = LAST_SEEN.sub(r"\1…", REQUEST_ID.sub("req_…", answer.text))
        return answer.status_code, headers, json.loads(text) if is_json else text

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
        thread = await furnish(creator, callers[0])
        return Pair(callers[0], callers[1], fast_paths[0], thread)


async def furnish(creator: McpHttp, member: McpHttp) -> str:
    """A session and a thread with something to read; the thread's id."""
    opened = envelope("session.create", SESSION, "alice", {"name": "n", "config": SESSION_CONFIG})
    structured(await creator.call("pvp_send", {"envelope": opened}))
    joined = envelope("session.join", SESSION, "claude", join_payload("claude", "agent"))
    structured(await member.call("pvp_send", {"envelope": joined}))
    content = {"key": "k", "content_type": "structured", "content": {"a": None, "b": "é \u2028"}}
    added = envelope("context.add", SESSION, "alice", content)
    structured(await creator.call("pvp_send", {"envelope": added}))
    made = await creator.call("create_thread", {"title": "t", "participants": ["claude"]})
    thread: str = structured(made)["thread_id"]
    for number in range(3):
        said = {"thread_id": thread, "schema_version": 1, "body": f"café {number}"}
        structured(await creator.call("post_message", said))
    return thread


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with Open() as stack:
        yield await stack.pair(tmp_path)


KEYED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("post_message", {"thread_id": THREAD, "schema_version": 1, "body": "hi"}),
    (
        "post_message",
        {
            "thread_id": THREAD,
            "schema_version": 1,
            "body": "b",
            "kind": "event",
            "metadata": {"event_type": "finding_reported", "n": [1, 1.5, None]},
        },
    ),
    ("post_message", {"thread_id": SESSION, "schema_version": 1, "body": "hi"}),
    ("post_message", {"thread_id": THREAD, "schema_version": 2, "body": "hi"}),
    ("create_thread", {"title": "t", "participants": ["claude"]}),
    ("create_thread", {"title": "t", "participants": []}),
    ("update_thread_status", {"thread_id": THREAD, "status": "blocked"}),
    ("trigger_participant", {"thread_id": THREAD, "target_agent_id": "claude"}),
)
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
    ("pvp_send", {"decide": "no gate"}),
    ("propose_and_wait", {"session": SESSION, "proposal": "p"}),
    ("nothing", {}),
    ("get_thread", {"thread_id": THREAD}),
    ("get_thread", {"thread_id": SESSION}),
    ("get_thread", {"thread_id": "th_other"}),
    ("read_messages", {"thread_id": THREAD}),
    ("read_messages", {"thread_id": THREAD, "since_seq": 1, "limit": 1}),
    ("read_messages", {"thread_id": SESSION, "limit": 2}),
    ("read_messages", {"thread_id": THREAD, "limit": 0}),
    ("summarize_thread", {"thread_id": THREAD}),
    ("summarize_thread", {"thread_id": SESSION, "max_messages": 2}),
    ("ack_read", {"thread_id": THREAD, "last_read_seq": 2}),
    ("ack_read", {"thread_id": THREAD, "last_read_seq": 1}),
    ("ack_read", {"thread_id": THREAD, "last_read_seq": 1000}),
    *(
        (name, {**arguments, "idempotency_key": f"{name} {number}"})
        for number, (name, arguments) in enumerate(KEYED)
    ),
    ("heartbeat_session", {"runtime": "No name", "status": "idle"}),
)
# The fast path serves neither the tool that waits for people nor one that does not exist.
LEFT_TO_SDK = sum(name in {"propose_and_wait", "nothing"} for name, _ in CALLS)


async def test_recorded_shapes_of_calls_get_the_same_answer(pair: Pair) -> None:
    before = pair.fast_path.recognised
    for name, arguments in CALLS:
        body = tool_call(name, arguments, progressToken=3, **{"claudecode/toolUseId": "toolu_0"})
        headers = modern_headers("tools/call", name)
        fast, slow = await pair.send(json.dumps(body).encode(), [*headers.items()])
        assert same(fast, slow), (name, arguments, fast.text, slow.text)
        meta = {"callId": "c", "progressToken": 1}
        for revision in (OLDER, "2025-11-25", None):
            request = rpc("tools/call", {"name": name, "arguments": arguments, "_meta": meta})
            headers = pair.fast.session_headers(revision)
            fast, slow = await pair.send(json.dumps(request).encode(), [*headers.items()])
            assert same(fast, slow), (name, arguments, revision, fast.text, slow.text)
    assert pair.fast_path.recognised - before == 4 * (len(CALLS) - LEFT_TO_SDK)


STREAMS = frozenset({"subscriptions/listen"})


@pytest.mark.parametrize("host", ["claude", "codex", "gemini"])
async def test_recorded_requests_of_hosts_get_the_same_answer(pair: Pair, host: str) -> None:
    calls = 0
    for request in json.loads((RECORDED / f"{host}.json").read_bytes()):
        body = request["body"]
        if request["method"] != "POST" or body["method"] in STREAMS:
            continue  # a stream ends only with its client, and no tool is called by it
        headers = [
            (name, pair.fast.session if text == "SESSION" else text)
            for name, text in request["headers"].items()
        ]
        before = pair.fast_path.recognised
        fast, slow = await pair.send(json.dumps(body).encode(), headers)
        assert same(fast, slow), (body, fast.text, slow.text)
        is_call = body["method"] == "tools/call"
        assert pair.fast_path.recognised - before == is_call, (body, headers)
        calls += is_call
        if is_call:
            assert structured(fast)["message_id"]
    assert calls == (0 if host == "gemini" else 1)


async def test_real_server_gives_the_same_answer_by_either_way(signed: ServerProcess) -> None:
    """The SDK takes a content type in capitals, which the fast path leaves to it."""
    capitals = "application/json; charset=UTF-8"
    assert capitals.encode() not in CONTENT_TYPES
    async with httpx.AsyncClient(base_url=signed.url, timeout=60) as http:
        alice = McpHttp(http, signed.issue_token("alice", roles=["admin"]))
        claude = McpHttp(http, signed.issue_token("claude", "agent"))
        thread = await furnish(alice, claude)
        for name, arguments in CALLS:
            body = json.dumps(tool_call(name, arguments)).replace(THREAD, thread).encode()
            headers = modern_headers("tools/call", name)
            fast = await claude.post(body, headers)
            slow = await claude.post(body, {**headers, "content-type": capitals})
            assert same(fast, slow), (name, arguments, fast.text, slow.text)


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
    fast, slow = await pair.send(raw, sent)
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
