"""Any bytes on any transport: an error with its code or a clean end, soon; nobody else notices."""

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accord.transports.edge.http_protocol import HEAD_TIMEOUT_S
from tests.core.dialects.envelopes import envelope
from tests.fuzz.websocket_frames import CLOSE, PING, TEXT, split_frames
from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import frame, plug, upgraded
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

MIB = 1 << 20
# A head, or the rest of a body that nobody wants, has ten seconds: what comes sooner was not waited
# for, and what never comes is.
SOON = HEAD_TIMEOUT_S - 2.0
LATE = HEAD_TIMEOUT_S + 20.0
Expected = str | int


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for everything; whatever it could not handle fails the module."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture(scope="module")
def token(house: ServerProcess) -> str:
    """Mallory's."""
    return house.issue_token("mallory")


def say(type: str = "prompt.submit", **fields: Any) -> bytes:
    """An envelope of mallory's for a session that is not there."""
    return json.dumps(envelope(type, session="nowhere", sender="mallory") | fields).encode()


def in_time(listen: Callable[[], bytes], within: float = SOON) -> bytes:
    """What is heard, which must not take long."""
    began = time.monotonic()
    heard = listen()
    assert time.monotonic() - began < within, "it took too long"
    return heard


def rest(opened: socket.socket, within: float = SOON) -> bytes:
    """Everything until the server hangs up, which it must."""
    opened.settimeout(within)
    heard = b""
    with contextlib.suppress(ConnectionError):
        while more := opened.recv(1 << 16):
            heard += more
    return heard


# Frames

GOOD = say()
DEEP = 100_000
MESSAGES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "INVALID_MESSAGE"),
    "null": (b"null", "INVALID_MESSAGE"),
    "a number": (b"1", "INVALID_MESSAGE"),
    "an array": (b"[" + GOOD + b"]", "INVALID_MESSAGE"),
    "two messages": (GOOD + GOOD, "INVALID_MESSAGE"),
    "brackets": (b"[" * DEEP, "INVALID_MESSAGE"),
    "braces": (b'{"a":' * DEEP, "INVALID_MESSAGE"),
    "deep payload": (
        say(payload=0).replace(b"0}", b"[" * DEEP + b"]" * DEEP + b"}"),
        "INVALID_MESSAGE",
    ),
    "half": (GOOD[:-9], "INVALID_MESSAGE"),
    "no utf-8": (b"\xff\xfe", "INVALID_MESSAGE"),
    "no utf-8 where nobody looks": (GOOD[:-1] + b',"x":"\xff"}', "INVALID_MESSAGE"),
    "utf-16": (GOOD.decode().encode("utf-16"), "INVALID_MESSAGE"),
    "a lone surrogate": (GOOD.replace(b'"mallory"', rb'"\ud800"'), "INVALID_MESSAGE"),
    "another version": (say(v=2), "INVALID_MESSAGE"),
    "no version": (say(v="1"), "INVALID_MESSAGE"),
    "an unknown type": (GOOD.replace(b"prompt.submit", b"x.y"), "INVALID_MESSAGE"),
    "payload of null": (say(payload=None), "INVALID_MESSAGE"),
    "a number as id": (say(id=7), "INVALID_MESSAGE"),
    "an endless number": (GOOD.replace(b'"v": 1', b'"v": 1' + b"0" * 5000), "INVALID_MESSAGE"),
    "a key twice": (GOOD.replace(b'"v": 1', b'"v": 9, "v": 1'), "SESSION_NOT_FOUND"),
    "a path as id": (say(id="../../etc/passwd"), "SESSION_NOT_FOUND"),
    "a path as session": (say(session="../people/default"), "SESSION_NOT_FOUND"),
    "a line break as session": (say(session="a\nb"), "INVALID_MESSAGE"),
    "another sender": (say(sender="alice"), "UNAUTHORIZED"),
    "the server as sender": (say(sender="system"), "UNAUTHORIZED"),
    "too large": (b" " * (MIB + 1), "CONTEXT_TOO_LARGE"),
}
FRAMES: dict[str, tuple[bytes, int]] = {
    "unmasked": (b"\x81\x05hello", 1002),
    "compressed": (b"\xc1" + frame(GOOD)[1:], 1002),
    "second reserved bit": (b"\xa1" + frame(GOOD)[1:], 1002),
    "third reserved bit": (b"\x91" + frame(GOOD)[1:], 1002),
    "reserved kind": (frame(GOOD, 3), 1002),
    "reserved control": (frame(b"x", 11), 1002),
    "a ping in pieces": (frame(b"x", PING, fin=False), 1002),
    "a long ping": (frame(b"x" * 126, PING), 1002),
    "a close of one byte": (frame(b"\x03", CLOSE), 1002),
    "a close with no such code": (frame(struct.pack("!H", 999), CLOSE), 1002),
    "a close without words": (frame(b"", CLOSE), 1000),
    "a close of bad words": (frame(struct.pack("!H", 1000) + b"\xff", CLOSE), 1007),
    "the middle first": (frame(b"x", 0), 1002),
    "a text within a text": (frame(b"a", fin=False) + frame(b"b"), 1002),
    "a negative length": (b"\x81\xff" + b"\xff" * 8 + bytes(4), 1002),
    "a length in more bytes than needed": (b"\x81\xfe\x00\x05" + bytes(4) + b"hello", 1002),
    "terabytes": (frame(b"x", size=1 << 40), 1009),
    "too large": (frame(b"x" * (4 * MIB + 1)), 1009),
    "too many pieces": (frame(b"", fin=False) + frame(b"", 0, fin=False) * 5000, 1009),
}


def codes(heard: bytes) -> list[Expected]:
    """What the frames say: the codes of errors, and the code of the close."""
    found: list[Expected] = []
    for kind, payload in split_frames(heard):
        if kind == TEXT:
            found.append(json.loads(payload)["payload"]["code"])
        elif kind == CLOSE:
            found.append(int.from_bytes(payload[:2]) if payload else 1000)
    return found


def answered(opened: socket.socket) -> list[Expected]:
    """What comes back until there is an answer, and the one to a ping that is sent last."""
    opened.sendall(frame(b"last", PING))
    opened.settimeout(SOON)
    heard = b""
    while b"\x8a\x04last" not in heard or b'"code":' not in heard:
        heard += opened.recv(1 << 16)
    return codes(heard)


@proves("OPEN-49", "OPEN-51", "PVP-17-2", "PVP-17-9")
@pytest.mark.parametrize("name", MESSAGES)
async def test_a_message_is_answered_with_its_code(
    house: ServerProcess, token: str, name: str
) -> None:
    message, code = MESSAGES[name]

    def attack() -> list[Expected]:
        with upgraded(house, token) as opened:
            opened.sendall(frame(message))
            return answered(opened)

    async with witnessed(house):
        assert await asyncio.to_thread(attack) == [code]


@proves("OPEN-51")
@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("signed_in", [True, False])
async def test_a_frame_that_breaks_the_rules_ends_the_connection(
    house: ServerProcess, token: str, name: str, signed_in: bool
) -> None:
    sent, code = FRAMES[name]

    def attack() -> list[Expected]:
        with upgraded(house, token if signed_in else "") as opened:
            with contextlib.suppress(OSError):
                opened.sendall(sent)
            return codes(rest(opened))

    async with witnessed(house):
        heard = await asyncio.to_thread(attack)
    assert heard == [code]


async def test_a_message_may_come_byte_by_byte_and_in_pieces(
    house: ServerProcess, token: str
) -> None:
    pieces = frame(GOOD[:9], fin=False) + frame(b"?", PING) + frame(GOOD[9:], 0)

    def attack() -> list[Expected]:
        with upgraded(house, token) as opened:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number in range(len(pieces)):
                opened.sendall(pieces[number : number + 1])
            return answered(opened)

    async with witnessed(house):
        assert await asyncio.to_thread(attack) == ["SESSION_NOT_FOUND"]


@pytest.mark.parametrize("sent", [b"", frame(GOOD)[:7], frame(GOOD, fin=False), frame(GOOD)])
async def test_a_socket_that_is_half_closed_is_closed(
    house: ServerProcess, token: str, sent: bytes
) -> None:
    def attack() -> bytes:
        with upgraded(house, token) as opened:
            opened.sendall(sent)
            opened.shutdown(socket.SHUT_WR)
            return in_time(lambda: rest(opened))

    async with witnessed(house):
        heard = await asyncio.to_thread(attack)
    assert set(codes(heard)) <= {"SESSION_NOT_FOUND", 1000, 1001, 1006}


async def test_many_who_vanish_in_the_middle_leave_nothing_behind(
    house: ServerProcess, token: str
) -> None:
    def attack() -> None:
        for number in range(60):
            with upgraded(house, token) as opened:
                linger = struct.pack("ii", 1, 0)
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                opened.sendall(frame(GOOD)[: number * 4])

    async with witnessed(house):
        await asyncio.to_thread(attack)


# Requests

HOST = "Host: 127.0.0.1:PORT\r\n"
SIGNED = HOST + "Authorization: Bearer TOKEN\r\n"
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
POST = f"POST /sessions/nowhere/messages HTTP/1.1\r\n{SIGNED}Content-Type: application/json\r\n"
CHUNKED = POST + "Transfer-Encoding: chunked\r\n\r\n"
LENGTH = "Content-Length: "
# 0 is an end without a word; who asked and then changes its mind about how long it is gets none.
REQUESTS: dict[str, tuple[str, int]] = {
    "no http": ("hello\r\n\r\n", 400),
    "tls": ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "http/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "http/3": (f"GET / HTTP/3.0\r\n{HOST}\r\n", 400),
    "http/1.0": ("GET /healthz HTTP/1.0\r\n\r\n", 200),
    "http/1.0 without a host": ("GET /sessions HTTP/1.0\r\n\r\n", 403),
    "an absurd method": (f"FROB / HTTP/1.1\r\n{HOST}\r\n", 400),
    "an endless method": ("A" * 40_000, 400),
    "trace": (f"TRACE / HTTP/1.1\r\n{SIGNED}\r\n", 405),
    "connect": (f"CONNECT evil:1 HTTP/1.1\r\n{HOST}\r\n", 400),
    "options of all": (f"OPTIONS * HTTP/1.1\r\n{HOST}\r\n", 404),
    "no host": ("GET /sessions HTTP/1.1\r\n\r\n", 403),
    "two hosts": (f"GET /sessions HTTP/1.1\r\n{HOST}Host: evil\r\n\r\n", 403),
    "an empty host": ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 403),
    "a host of markup": ("GET / HTTP/1.1\r\nHost: <script>\r\n\r\n", 403),
    "a folded line": (f"GET / HTTP/1.1\r\n{HOST}X: a\r\n b\r\n\r\n", 400),
    "a space before the colon": (f"GET / HTTP/1.1\r\n{HOST}X : a\r\n\r\n", 400),
    "a line without a colon": (f"GET / HTTP/1.1\r\n{HOST}Xa\r\n\r\n", 400),
    "line feeds alone": (f"GET / HTTP/1.1\n{HOST}\n", 400),
    "a control character": (f"GET / HTTP/1.1\r\n{HOST}X: a\x01\r\n\r\n", 400),
    "a zero in the path": (f"GET /\0 HTTP/1.1\r\n{HOST}\r\n", 400),
    "letters in the path": (f"GET /é HTTP/1.1\r\n{HOST}\r\n", 400),
    "an endless path": (f"GET /{'a' * 40_000} HTTP/1.1\r\n{HOST}\r\n", 431),
    "a length and chunks": (
        f"{POST}{LENGTH}4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        400,
    ),
    "two lengths": (f"{POST}{LENGTH}1\r\n{LENGTH}2\r\n\r\n{{}}", 400),
    "a negative length": (f"{POST}{LENGTH}-1\r\n\r\n", 400),
    "a length with a sign": (f"{POST}{LENGTH}+2\r\n\r\n{{}}", 400),
    "a length past counting": (f"{POST}{LENGTH}{'9' * 30}\r\n\r\n", 400),
    "two encodings": (f"{POST}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
    "an unknown encoding": (f"{POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 0),
    "a chunk that is longer": (f"{CHUNKED}2\r\nhello\r\n0\r\n\r\n", 0),
    "a chunk past counting": (f"{CHUNKED}{'f' * 20}\r\n", 0),
    "a negative chunk": (f"{CHUNKED}-1\r\n\r\n", 0),
    "trailers without end": (f"{CHUNKED}2\r\n{{}}\r\n0\r\nX: {'y' * 200_000}", 0),
    "an upgrade elsewhere": (f"GET /x HTTP/1.1\r\n{SIGNED}{UPGRADE}\r\n", 404),
    "an upgrade by post": (f"POST /ws HTTP/1.1\r\n{SIGNED}{UPGRADE}\r\n", 400),
    "an upgrade without a key": (
        f"GET /ws HTTP/1.1\r\n{SIGNED}{UPGRADE.replace('Key', 'Kay')}\r\n",
        400,
    ),
    "an upgrade of old": (f"GET /ws HTTP/1.1\r\n{SIGNED}{UPGRADE.replace('13', '8')}\r\n", 426),
    "an upgrade with a body": (
        f"GET /ws HTTP/1.1\r\n{SIGNED}{UPGRADE}{LENGTH}5\r\n\r\nhello",
        400,
    ),
    "an upgrade to something else": (
        f"GET /healthz HTTP/1.1\r\n{HOST}Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        200,
    ),
    "no upgrade": (f"GET /ws HTTP/1.1\r\n{SIGNED}\r\n", 404),
    "a body of nothing": (f"{POST}{LENGTH}0\r\n\r\n", 400),
    "a body with an expectation": (
        f"{POST}Expect: 100-continue\r\n{LENGTH}{len(GOOD)}\r\n\r\n{GOOD.decode()}",
        404,
    ),
    "a body on a question": (f"GET /sessions HTTP/1.1\r\n{SIGNED}{LENGTH}5\r\n\r\nhello", 200),
}


def asked(house: ServerProcess, token: str, request: str) -> bytes:
    """Everything the server says to this, until both have hung up."""
    text = request.replace("PORT", str(house.port)).replace("TOKEN", token)
    heard = b""
    with plug(house) as opened, contextlib.suppress(ConnectionError):
        opened.settimeout(SOON)
        opened.sendall(text.encode())
        while not statuses(heard) and (more := opened.recv(1 << 16)):
            heard += more
        opened.shutdown(socket.SHUT_WR)
        heard += rest(opened)
    return heard


def statuses(heard: bytes) -> list[int]:
    """Of every answer, but for the word that one may go on."""
    found = (int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:])
    return [status for status in found if status != 100]


@proves("OPEN-51", "PVP-17-2")
@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_is_answered_once_or_ends(
    house: ServerProcess, token: str, name: str
) -> None:
    request, status = REQUESTS[name]

    async with witnessed(house):
        heard = await asyncio.to_thread(in_time, lambda: asked(house, token, request))
    assert statuses(heard) == ([status] if status else []), heard


async def test_requests_in_a_row_are_answered_in_their_order(
    house: ServerProcess, token: str
) -> None:
    request = "".join(
        f"GET {path} HTTP/1.1\r\n{SIGNED}\r\n" for path in ("/healthz", "/nowhere", "/sessions") * 7
    )

    def attack() -> bytes:
        heard = b""
        with plug(house) as opened:
            text = request.replace("PORT", str(house.port)).replace("TOKEN", token)
            opened.sendall(text.encode())
            opened.settimeout(SOON)
            while len(statuses(heard)) < 21:
                heard += opened.recv(1 << 16)
        return heard

    async with witnessed(house):
        heard = await asyncio.to_thread(attack)
    assert statuses(heard) == [200, 404, 200] * 7


# Slowness

BODY = f"GET /healthz HTTP/1.1\r\n{HOST}{LENGTH}1000\r\n\r\n"
CHUNK = f"GET /healthz HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n3e8\r\n"
SLOW: dict[str, tuple[str, list[int]]] = {
    "a head": ("GET / HTTP/1.1\r\nX: ", [408]),
    "a second head": (f"GET /healthz HTTP/1.1\r\n{HOST}\r\nGET /", [200, 408]),
    "a body that nobody wants": (BODY, [200]),
    "a chunk that nobody wants": (CHUNK, [200]),
    "an upgrade": (f"GET /ws HTTP/1.1\r\n{HOST}Upgrade: websocket\r\n", [408]),
}


@proves("OPEN-51")
async def test_whoever_dawdles_is_not_waited_for_however_it_is_done(house: ServerProcess) -> None:
    def dawdle(start: str) -> list[int]:
        heard = b""
        with plug(house) as opened, contextlib.suppress(ConnectionError):
            opened.sendall(start.replace("PORT", str(house.port)).encode())
            opened.settimeout(0.5)
            deadline = time.monotonic() + LATE
            while time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    if not (more := opened.recv(1 << 16)):
                        return statuses(heard)
                    heard += more
                opened.sendall(b"1")
            raise AssertionError("it was waited for")
        return statuses(heard)

    async with witnessed(house):
        heard = await asyncio.gather(
            *(asyncio.to_thread(dawdle, start) for start, _ in SLOW.values())
        )
    assert dict(zip(SLOW, heard, strict=True)) == {name: row[1] for name, row in SLOW.items()}
