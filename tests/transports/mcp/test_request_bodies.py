"""However the bytes of a call arrive, it is answered once and in the same way."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from accord.core.kernel.role_permissions import Kind
from accord.transports.edge.http_protocol import BODY_STATE_KEY
from tests.helpers.attacks.raw_socket import plug
from tests.helpers.clients.mcp_requests import (
    caller_of,
    in_process_server,
    issue_token,
    modern_headers,
    tool_call,
)
from tests.helpers.servers.server_process import ServerProcess, run_server

SHORT = tool_call("get_thread", {"thread_id": "th_none"})
# Longer than what the server reads before the application asks for it.
LONG = tool_call("get_thread", {"thread_id": "th_none", "unknown": "x" * 200_000})


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture(scope="module")
def token(house: ServerProcess) -> str:
    return house.issue_token("claude", "agent")


def head(house: ServerProcess, token: str, *framing: str) -> bytes:
    named = modern_headers("tools/call", "get_thread") | {
        "host": f"127.0.0.1:{house.port}",
        "authorization": f"Bearer {token}",
    }
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, *framing, "", ""]).encode()


def chunked(content: bytes) -> bytes:
    half = len(content) // 2
    parts = (content[:half], content[half:], b"")
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def error_codes(house: ServerProcess, parts: list[bytes], count: int) -> list[str]:
    """What the server answers to these bytes; between the parts it asks for more."""
    with plug(house) as opened, opened.makefile("rb") as answers:
        opened.sendall(parts[0])
        for part in parts[1:]:
            assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
            assert answers.readline() == b"\r\n"
            opened.sendall(part)
        return [error_code(answers) for _ in range(count)]


def error_code(answers: Any) -> str:
    assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
    size = 0
    while (line := answers.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        size = int(value) if name == b"content-length" else size
    result = json.loads(answers.read(size))["result"]
    assert result["isError"]
    return str(result["structuredContent"]["error"]["code"])


@pytest.mark.parametrize("call", [SHORT, LONG], ids=["short", "long"])
def test_call_is_answered_however_it_is_framed(
    house: ServerProcess, token: str, call: dict[str, Any]
) -> None:
    content = json.dumps(call).encode()
    sized, in_chunks = f"content-length: {len(content)}", "transfer-encoding: chunked"
    whole = head(house, token, sized) + content
    waits = "expect: 100-continue"

    assert error_codes(house, [whole], 1) == ["NOT_FOUND"]
    assert error_codes(house, [whole + whole], 2) == ["NOT_FOUND"] * 2
    assert error_codes(house, [head(house, token, sized, waits), content], 1) == ["NOT_FOUND"]
    assert error_codes(house, [head(house, token, in_chunks) + chunked(content)], 1) == [
        "NOT_FOUND"
    ]


def arrived_whole(app: ASGIApp) -> ASGIApp:
    """The application as the server calls it when a body came with its head."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]

        async def whole() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        await app({**scope, "state": {BODY_STATE_KEY: bytearray(body)}}, whole, send)

    return called


async def test_body_over_the_limit_is_refused_also_if_it_is_there(tmp_path: Path) -> None:
    async with in_process_server(tmp_path) as server:
        token = await issue_token(server, "claude", Kind.AGENT)
        async with caller_of(arrived_whole(server.asgi_app()), token) as claude:
            big = b'{"jsonrpc":"2.0","params":"' + b"x" * (5 << 20) + b'"}'
            refused = await claude.post(big, modern_headers("tools/call", "get_thread"))
            heard = await claude.call("get_thread", {"thread_id": "th_none"})

    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "VALIDATION_ERROR"
    assert heard.json()["result"]["structuredContent"]["error"]["code"] == "NOT_FOUND"
