"""Whoever sends all that it can is read in its turn: those beside it do not wait for that."""

import asyncio
import contextlib
import json
import re
import select
import socket
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.limits import Limits
from accord.transports.rate_limit import CHUNK_TYPES, MAX_DEBT_BYTES, SHORT_MESSAGE_BYTES, Bucket
from accord.transports.websocket.connection import PAUSE_PER_CONNECTION_S
from accord.transports.websocket.protocol import (
    MAX_READ_BYTES,
    MAX_READ_PAUSE_S,
    THROTTLED_READ_BYTES,
    ReadTurns,
)
from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import PATIENCE, frame, memory, upgraded
from tests.helpers.clients.http_client import envelope
from tests.helpers.servers.server_process import run_server

# What is said, how often, and over how many connections. None of it counts as a message, and each
# is for a session that nobody has heard of.
FLOODS: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "stops": ("session.leave", {"payload": {}}, 6000, 16),
    "chunks": ("response.chunk", {"payload": {"text": "x"}, "ref": "m"}, 20_000, 1),
}


LASTS = 4.0


def pour(opened: socket.socket, flood: bytes) -> None:
    """All of it, as fast as it is taken, reading what comes of it; until somebody has enough."""
    left = memoryview(flood)
    with contextlib.suppress(OSError):
        while True:
            hears, takes, _ = select.select([opened], [opened] if left else [], [])
            if hears and not opened.recv(1 << 20):
                return
            if takes:
                left = left[opened.send(left[: 1 << 16]) :]


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_makes_nobody_else_wait(tmp_path: Path, name: str) -> None:
    kind, more, times, connections = FLOODS[name]
    said = [envelope(kind, f"junk{n}", "mallory", **more) for n in range(times)]
    flood = b"".join(frame(json.dumps(each).encode()) for each in said)
    with run_server(tmp_path, "token", "--rate-limit", "200") as server:
        token = server.issue_token("mallory", "agent")
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(upgraded(server, token)) for _ in range(connections)]
            before = memory(server)
            async with witnessed(server):
                pouring = [asyncio.create_task(asyncio.to_thread(pour, o, flood)) for o in opened]
                await asyncio.wait(pouring, timeout=LASTS)
                for each in opened:
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
                await asyncio.gather(*pouring)
            assert memory(server) - before < 40, "nor is it kept"


# The largest number there is: to read it takes a hundred times as long as to read another.
EDGE = "1.7976931348623157e308"


def dear(number: int) -> bytes:
    """A message of many such numbers."""
    body = {"tool_name": "t", "arguments": {"a": ["EDGE"]}, "agent": "mallory", "category": "other"}
    more = {"risk_level": "low", "description": "", "requires_approval": False}
    said = json.dumps(envelope("tool.propose", f"junk{number}", "mallory", body | more))
    return said.replace('"EDGE"', ",".join([EDGE] * 30_000)).encode()


def refusals(opened: socket.socket, wanted: int) -> list[bytes]:
    """What so many messages were refused with."""
    heard = b""
    while heard.count(b'"code":"') < wanted:
        heard += opened.recv(1 << 16)
    return re.findall(rb'"code":"([A-Z_]+)"', heard)


async def test_bytes_that_are_dear_to_read_are_paid_for(tmp_path: Path) -> None:
    # What is paid is hardly given back meanwhile, however slowly a busy machine sends these.
    slow_refill = ("--limit", "stream_bytes=64KiB")
    with run_server(tmp_path, "token", "--rate-limit", "200", *slow_refill) as server:
        flood, token = [frame(dear(number)) for number in range(12)], server.issue_token("mallory")
        assert sum(map(len, flood)) < Limits().stream_burst, "by their bytes all could come"
        with upgraded(server, token) as opened:
            opened.settimeout(PATIENCE)
            hearing = asyncio.create_task(asyncio.to_thread(refusals, opened, len(flood)))
            async with witnessed(server):
                for each in flood:
                    await asyncio.to_thread(opened.sendall, each)
                codes = await hearing

    assert b"RATE_LIMITED" in codes, codes


def test_what_takes_no_longer_than_usual_costs_nothing_more() -> None:
    bucket = Bucket(200.0, 0.0)
    size = bucket.bytes_left

    bucket.charge_work_time(0.04)
    assert bucket.bytes_left == size
    bucket.charge_work_time(0.4)
    assert 0 < bucket.bytes_left < size
    for _ in range(100):
        bucket.charge_work_time(0.4)
    assert bucket.bytes_left == -MAX_DEBT_BYTES


class Read:
    """A transport that notes whether it is read."""

    def __init__(self) -> None:
        self.reads, self.closing = True, False
        self.again = asyncio.Event()

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True
        self.again.set()


async def test_who_took_long_is_read_again_after_the_others() -> None:
    raw: Any = Read()
    turns = ReadTurns(raw)

    assert not turns.is_over_budget(0.001)
    assert turns.is_over_budget(0.01)
    turns.yield_turn(0)

    assert not raw.reads
    await asyncio.sleep(0)
    assert raw.reads
    assert turns.max_read == MAX_READ_BYTES


async def test_who_sends_too_much_is_read_less_until_it_does_not() -> None:
    raw: Any = Read()
    turns = ReadTurns(raw)

    turns.yield_turn(0.01)
    await asyncio.sleep(0)
    assert not raw.reads
    assert turns.max_read == THROTTLED_READ_BYTES
    assert turns.is_over_budget(0.001), "sooner than others"
    await asyncio.wait_for(raw.again.wait(), PATIENCE)

    turns.yield_turn(0)
    await asyncio.sleep(0)
    assert (raw.reads, turns.max_read, turns.is_over_budget(0.001)) == (True, MAX_READ_BYTES, False)


class Hurried(asyncio.SelectorEventLoop):
    """A loop whose time stands still, unless somebody moves it on."""

    ahead = 0.0

    def time(self) -> float:
        return self.ahead


def test_however_many_connections_somebody_has_nobody_rests_for_minutes() -> None:
    async def rest(seconds: float) -> list[bool]:
        raw: Any = Read()
        ReadTurns(raw).yield_turn(seconds)
        reads = list[bool]()
        for each in (MAX_READ_PAUSE_S - 1, 2):
            loop.ahead += each
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            reads.append(raw.reads)
        return reads

    with asyncio.Runner(loop_factory=Hurried) as runner:
        loop: Any = runner.get_loop()
        assert runner.run(rest(PAUSE_PER_CONNECTION_S * 10_000)) == [False, True]
        assert runner.run(rest(PAUSE_PER_CONNECTION_S * 64)) == [True, True]


async def test_who_is_gone_is_not_read_again() -> None:
    raw: Any = Read()
    turns = ReadTurns(raw)

    turns.yield_turn(0)
    raw.closing = True
    await asyncio.sleep(0)
    assert not raw.reads
    raw.reads = True
    turns.yield_turn(0)
    assert raw.reads, "nor is it stopped"


def test_a_session_that_is_not_at_hand_costs_more() -> None:
    bucket = Bucket(200.0, 0.0)
    whole, size = bucket.messages_left, bucket.bytes_left

    bucket.charge_stream_load("prompt.submit")
    assert (bucket.messages_left, bucket.bytes_left) == (whole - 3, size)
    for _ in range(10_000):
        bucket.charge_stream_load("prompt.submit")
    assert bucket.messages_left == -200, "and can be made up for in a second"
    slow = Bucket(1.0, 0.0)
    slow.charge_stream_load("session.create")
    assert slow.messages_left == 5, "where little is allowed it costs nothing"


def test_nothing_that_costs_makes_up_for_what_is_owed() -> None:
    bucket = Bucket(200.0, 0.0)
    for _ in range(10_000):
        bucket.charge_bytes(SHORT_MESSAGE_BYTES, 0.0)
    bucket.messages_left = -1000.0  # of mistakes
    owed = bucket.messages_left, bucket.bytes_left
    assert bucket.bytes_left < -MAX_DEBT_BYTES

    for kind in ("session.leave", "response.chunk"):
        bucket.charge_stream_load(kind)
        bucket.charge_refusal(kind)

    assert (bucket.messages_left, bucket.bytes_left) == owed


@pytest.mark.parametrize("kind", sorted(CHUNK_TYPES))
def test_what_streams_pays_for_that_with_bytes(kind: str) -> None:
    bucket = Bucket(200.0, 0.0)

    for _ in range(300):
        bucket.charge_stream_load(kind)
    assert bucket.is_exhausted
    assert bucket.bytes_left >= -MAX_DEBT_BYTES
    again = Bucket(200.0, 0.0)
    for _ in range(5000):
        again.charge_refusal(kind)
    assert again.is_exhausted
    assert again.bytes_left >= -MAX_DEBT_BYTES


def test_what_is_counted_already_is_refused_for_nothing_more() -> None:
    bucket = Bucket(200.0, 0.0)
    whole = bucket.messages_left, bucket.bytes_left

    for _ in range(100_000):
        bucket.charge_refusal("prompt.submit")

    assert (bucket.messages_left, bucket.bytes_left) == whole
