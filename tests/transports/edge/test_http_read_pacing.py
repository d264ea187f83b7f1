"""Requests whose bytes are dear to read, from whoever knows the address: nobody else waits."""

import asyncio
import contextlib
import json
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.transports.edge.http_read_pacing import (
    MAX_PARSE_PAUSE_S,
    MAX_READING_AGE_S,
    MAX_UNPARSED_BYTES,
    PARSE_BUDGET_S,
    PacedFlowControl,
    ParseBudget,
)
from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import frame, plug, upgraded
from tests.helpers.clients.http_client import envelope
from tests.helpers.servers.certificates import run_tls_server
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.transports.edge.test_tls import secured

CONNECTIONS = 64
LASTS = 3.0
SOON = 10.0
HOST = b"Host: 127.0.0.1\r\n"
CHUNKED = HOST + b"Transfer-Encoding: chunked\r\n\r\n"
# A chunk of one byte costs as much to take apart as one of many.
CRUMBS = b"1\r\nx\r\n" * (32 << 10)
# What a connection says first, and what it says then without an end.
FLOODS: dict[str, tuple[bytes, bytes]] = {
    "behind the answer": (b"GET /healthz HTTP/1.1\r\n" + CHUNKED, CRUMBS),
    "before there is one": (b"POST /sessions/x/messages HTTP/1.1\r\n" + CHUNKED, CRUMBS),
}


def pour(opened: list[socket.socket], head: bytes, flood: bytes) -> None:
    """All that is taken over all of them, for a while."""
    for each in opened:
        each.sendall(head)
        each.setblocking(False)
    deadline = time.monotonic() + LASTS
    while opened and time.monotonic() < deadline:
        for each in select.select([], opened, [], 0.1)[1]:
            try:
                each.send(flood)
            except BlockingIOError:
                pass
            except OSError:
                opened.remove(each)


@pytest.mark.parametrize("name", FLOODS)
async def test_crumbs_without_end_make_nobody_wait(tmp_path: Path, name: str) -> None:
    with run_server(tmp_path) as server, contextlib.ExitStack() as stack:
        opened = [stack.enter_context(plug(server)) for _ in range(CONNECTIONS)]
        async with witnessed(server):
            await asyncio.to_thread(pour, opened, *FLOODS[name])


# Dear, and yet sound


def crumbs(data: bytes) -> bytes:
    """A body, a byte at a time."""
    return b"".join(b"1\r\n%c\r\n" % byte for byte in data) + b"0\r\n\r\n"


def dear(server: ServerProcess, token: str = "") -> bytes:
    """A message for a session that is not there, in more bytes than are looked at in one go."""
    item = {"key": "k", "content_type": "text", "content": "x" * 20_000}
    said = json.dumps(envelope("context.add", "nowhere", "mallory", item))
    head = f"POST /sessions/nowhere/messages HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
    head += f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + crumbs(said.encode())


def heard(opened: socket.socket, word: bytes) -> bytes:
    """What comes, up to this word."""
    said = b""
    opened.settimeout(SOON)
    while word not in said:
        more = opened.recv(1 << 16)
        assert more, said
        said += more
    return said


@pytest.fixture(scope="module", params=["plain", "tls"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("house")
    with run_tls_server(home) if request.param == "tls" else run_server(home) as server:
        yield server


def dial(server: ServerProcess) -> socket.socket:
    """A connection as the server speaks."""
    return secured(server) if server.url.startswith("https") else plug(server)


def test_a_sound_message_in_crumbs_is_heard_whole_and_so_is_what_follows(
    house: ServerProcess,
) -> None:
    asks = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with dial(house) as opened:
        opened.sendall(dear(house, house.issue_token("mallory")) + asks)
        said = heard(opened, b"HTTP/1.1 200 OK")

    assert b"SESSION_NOT_FOUND" in said


def test_a_connection_may_be_upgraded_behind_crumbs(house: ServerProcess) -> None:
    with dial(house) as opened:
        opened.sendall(dear(house))
        heard(opened, b"UNAUTHORIZED")
        upgraded(house, house.issue_token("mallory"), opened)
        opened.sendall(frame(b"{"))
        heard(opened, b"INVALID_MESSAGE")


def test_who_says_its_last_words_in_crumbs_is_heard(house: ServerProcess) -> None:
    before = house.admin_request("GET", "/admin/tokens")
    token = house.admin_token
    wish = json.dumps({"id": "bob", "type": "human", "roles": ["driver"], "name": "b" * 100})
    head = f"POST /admin/tokens HTTP/1.1\r\nHost: localhost:{house.port}\r\n"
    head += f"Authorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with dial(house) as opened:
        opened.sendall(head.encode() + crumbs(wish.encode().ljust(20_000)))
        socket.socket.shutdown(opened, socket.SHUT_WR)
        deadline = time.monotonic() + SOON
        while house.admin_request("GET", "/admin/tokens") == before:
            assert time.monotonic() < deadline, "nobody heard it"
            time.sleep(0.02)


# By itself


class Line:
    """A transport that notes whether it is read."""

    def __init__(self) -> None:
        self.reads, self.gone = True, False

    def is_closing(self) -> bool:
        return self.gone

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.gone = True


class Toil(ParseBudget):
    """Of a parser that has much to do."""

    def __init__(self) -> None:
        self.at = 0.0
        super().__init__(self.clock, self.clock)

    def clock(self) -> float:
        return self.at

    def parse(self, _: memoryview) -> None:
        self.at += PARSE_BUDGET_S * 2


class Brief(Toil):
    """Whose rests are over at once."""

    def pause_for(self, took: float, now: float) -> float:
        return 0.0


def dearly(line: Any, ration: Toil) -> PacedFlowControl:
    return PacedFlowControl(line, ration, ration.parse)


async def test_whoever_is_not_read_for_two_reasons_is_read_when_both_are_over() -> None:
    line: Any = Line()
    paced = dearly(line, Brief())

    paced.feed(b"dear")
    assert not line.reads
    paced.pause_reading()
    paced.resume_reading()
    assert not line.reads, "its rest is not over"
    paced.pause_reading()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not paced.pausing
    assert not line.reads, "nobody has taken what came"
    paced.resume_reading()
    assert line.reads


async def test_nobody_pays_for_a_machine_that_was_busy_elsewhere() -> None:
    line: Any = Line()
    paced = PacedFlowControl(line, ParseBudget(), lambda _: time.sleep(PARSE_BUDGET_S * 20))

    paced.feed(b"cheap")

    assert not paced.pausing
    assert line.reads


async def test_cpu_time_is_asked_for_once_in_many_cheap_parts() -> None:
    asked = 0

    def cpu() -> float:
        nonlocal asked
        asked += 1
        return 0.0

    line: Any = Line()
    ration = ParseBudget(cpu, elapsed=lambda: 1.0)
    paced = PacedFlowControl(line, ration, lambda _: None)
    for _ in range(100):
        paced.feed(b"cheap")

    assert asked == 1


@pytest.mark.parametrize("age", [0.0, 0.9])
async def test_what_ran_just_before_is_charged_no_more_than_a_part_of_the_budget(
    age: float,
) -> None:
    """The CPU time may have been read a moment before parsing started."""
    now = used = 0.0
    ration = ParseBudget(lambda: used, lambda: now)
    ration.start()
    now = used = MAX_READING_AGE_S * age
    started = ration.start()
    now = 1.0
    used += PARSE_BUDGET_S / 10

    spent = ration.spent_since(started)

    assert PARSE_BUDGET_S / 10 <= spent <= PARSE_BUDGET_S / 10 + MAX_READING_AGE_S
    assert spent < PARSE_BUDGET_S


async def test_what_is_dear_waits_for_all_others_that_are_but_not_for_minutes() -> None:
    ration = ParseBudget()

    assert ration.pause_for(0.01, 100.0) == pytest.approx(0.04)
    assert ration.pause_for(0.01, 100.0) == pytest.approx(0.08)
    assert ration.pause_for(0.01, 200.0) == pytest.approx(0.04)
    assert ration.pause_for(60, 200.0) == MAX_PARSE_PAUSE_S


async def test_what_waits_to_be_looked_at_is_bounded_and_let_go() -> None:
    ration, lines = Toil(), [Line() for _ in range(3)]
    many: list[Any] = lines
    paced = [dearly(line, ration) for line in many]

    for each in paced:
        each.feed(bytes(MAX_UNPARSED_BYTES // 2))

    assert [line.gone for line in lines] == [False, False, True]
    for each in paced:
        each.stop()
    assert ration.unparsed_bytes == 0


async def test_what_comes_when_nobody_looks_any_more_is_not_kept() -> None:
    line: Any = Line()
    paced = dearly(line, Toil())

    paced.stop()
    paced.feed(b"more")

    assert not paced.unparsed
