"""An upgrade that is not granted is refused like every other request; odd ones are granted too."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.attacks.raw_socket import frame, plug, rest
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

PATIENCE = 60.0
HOST = "Host: localhost\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
VERSION = "Sec-WebSocket-Version: 13\r\n"
ASKS = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
SOUND = f"{ASKS}{KEY}{VERSION}"
MOST = 2


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    flags = ("--limit", f"connections_per_principal={MOST}")
    with run_server(tmp_path_factory.mktemp("house"), "token", *flags) as server:
        yield server


def answered(opened: socket.socket, request: str) -> http.client.HTTPResponse:
    """The answer to this."""
    opened.settimeout(PATIENCE)
    opened.sendall(request.encode("latin-1"))
    answer = http.client.HTTPResponse(opened)
    answer.begin()
    return answer


def refused(server: ServerProcess, request: str) -> tuple[http.client.HTTPResponse, dict[str, Any]]:
    """The answer, and what its body says in the one shape that there is."""
    with plug(server) as opened:
        answer = answered(opened, request)
        said = json.loads(answer.read())
        assert not rest(opened), "and that is the end of it"
    assert answer.getheader("content-type") == "application/json"
    assert len(answer.headers.get_all("content-length", [])) == 1
    assert answer.getheader("x-content-type-options") == "nosniff"
    assert set(said) == {"error"}
    assert set(said["error"]) == {"code", "message", "details"}
    error: dict[str, Any] = said["error"]
    return answer, error


def asks(line: str = "GET /ws HTTP/1.1", head: str = HOST + SOUND) -> str:
    """An upgrade."""
    return f"{line}\r\n{head}\r\n"


REFUSED: dict[str, tuple[str, int, str, str]] = {
    "a bad token": (
        asks(head=f"{HOST}{SOUND}Authorization: Bearer x\r\n"),
        401,
        "UNAUTHORIZED",
        "This is not a token",
    ),
    "two tokens": (
        asks(head=f"{HOST}{SOUND}Authorization: Bearer x\r\nAuthorization: Bearer y\r\n"),
        401,
        "UNAUTHORIZED",
        "",
    ),
    "no host": (asks(head=SOUND), 403, "UNAUTHORIZED", "Send exactly one valid Host header"),
    "two hosts": (
        asks(head=2 * HOST + SOUND),
        403,
        "UNAUTHORIZED",
        "Send exactly one valid Host header",
    ),
    "a page of another site": (
        asks(head=f"{HOST}{SOUND}Origin: https://evil.example\r\n"),
        403,
        "UNAUTHORIZED",
        "Web pages from https://evil.example may not connect",
    ),
    "an unknown path": (asks("GET /x HTTP/1.1"), 404, "INVALID_MESSAGE", "Connect to /ws for PVP"),
    "a path that is no path": (asks("GET //[ HTTP/1.1"), 404, "INVALID_MESSAGE", "Connect to /ws"),
    "a whole address": (asks("GET http://[/ws HTTP/1.1"), 404, "INVALID_MESSAGE", "Connect to /ws"),
    "another method": (asks("POST /ws HTTP/1.1"), 400, "INVALID_MESSAGE", "with GET, not POST"),
    "http of old": (asks("GET /ws HTTP/1.0"), 400, "INVALID_MESSAGE", "with HTTP/1.1"),
    "another version": (
        asks(head=HOST + ASKS + KEY + VERSION.replace("13", "8")),
        426,
        "INVALID_MESSAGE",
        "Only WebSocket version 13",
    ),
    "no version": (asks(head=HOST + ASKS + KEY), 426, "INVALID_MESSAGE", "version 13"),
    "no key": (asks(head=HOST + ASKS + VERSION), 400, "INVALID_MESSAGE", "Sec-WebSocket-Key"),
    "two keys": (asks(head=HOST + SOUND + KEY), 400, "INVALID_MESSAGE", "Sec-WebSocket-Key"),
    "a key of another length": (
        asks(head=HOST + ASKS + VERSION + KEY.replace("dGhl", "")),
        400,
        "INVALID_MESSAGE",
        "Sec-WebSocket-Key",
    ),
    "a key that is none": (
        asks(head=HOST + ASKS + VERSION + KEY.replace("==", "\xe9=")),
        400,
        "INVALID_MESSAGE",
        "Sec-WebSocket-Key",
    ),
    "a body": (
        asks(head=f"{HOST}{SOUND}Content-Length: 5\r\n") + "hello",
        400,
        "INVALID_MESSAGE",
        "must not have a body",
    ),
    "a body in chunks": (
        asks(head=f"{HOST}{SOUND}Transfer-Encoding: chunked\r\n") + "0\r\n\r\n",
        400,
        "INVALID_MESSAGE",
        "must not have a body",
    ),
    "too many headers": (
        asks(head=HOST + SOUND + 100 * "Sec-WebSocket-Protocol: x\r\n"),
        431,
        "CONTEXT_TOO_LARGE",
        "64 relevant headers",
    ),
}


@proves("UNI-26")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_granted_says_why_with_a_code(house: ServerProcess, name: str) -> None:
    request, status, code, sentence = REFUSED[name]

    answer, error = refused(house, request)

    assert (answer.status, error["code"]) == (status, code)
    assert error["message"]
    assert sentence in error["message"]


def test_whoever_speaks_another_version_hears_which_one_is_spoken(house: ServerProcess) -> None:
    answer, _ = refused(house, REFUSED["no version"][0])

    assert answer.getheader("sec-websocket-version") == "13"
    assert answer.getheader("upgrade") == "websocket"


def test_whoever_is_here_too_often_hears_that(house: ServerProcess) -> None:
    request = asks(head=f"{HOST}{SOUND}Authorization: Bearer {house.issue_token('bob')}\r\n")
    with plug(house) as first, plug(house) as second:
        assert [answered(each, request).status for each in (first, second)] == [101, 101]

        answer, error = refused(house, request)

    assert (answer.status, error["code"]) == (429, "RATE_LIMITED")
    assert f"{MOST}" in error["message"]
    assert error["details"]["limit"] == "connections_per_principal"


GRANTED = {
    "as Firefox asks": ASKS.replace("Upgrade\r\n", "keep-alive, Upgrade\r\n"),
    "as a proxy asks": ASKS.replace("Connection: ", "Connection: close\r\nConnection: "),
    "in capitals": "UPGRADE: WebSocket\r\nCONNECTION: UPGRADE\r\n",
    "with all that a browser sends": ASKS + "".join(f"X-{n}: y\r\n" for n in range(200)),
    "with letters of elsewhere": ASKS + "X: \xff\xfe\r\n",
    "with a body of nothing": ASKS + "Content-Length: 0\r\n",
}


@pytest.mark.parametrize("name", GRANTED)
def test_whoever_asks_in_its_own_way_comes_in(house: ServerProcess, name: str) -> None:
    with plug(house) as opened:
        answer = answered(opened, asks(head=HOST + GRANTED[name] + KEY + VERSION))
        assert answer.status == 101
        assert answer.getheader("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        opened.sendall(frame(b"hello"))
        assert b"INVALID_MESSAGE" in opened.recv(1 << 16)


@pytest.mark.parametrize("path", ["/sessions", "/healthz"])
def test_an_upgrade_on_the_heels_of_a_question_gets_nothing(
    house: ServerProcess, path: str
) -> None:
    """Its answer would come behind the head of the upgrade, where frames are expected."""
    with plug(house) as opened:
        opened.settimeout(PATIENCE)
        opened.sendall(f"GET {path} HTTP/1.1\r\n{HOST}\r\n{asks()}".encode())
        heard = rest(opened)

    assert b" 101 " not in heard


def test_after_an_answer_the_same_connection_may_be_upgraded(house: ServerProcess) -> None:
    with plug(house) as opened:
        first = answered(opened, f"GET /healthz HTTP/1.1\r\n{HOST}\r\n")
        assert (first.status, first.read()) == (200, b"ok\n")

        assert answered(opened, asks()).status == 101
