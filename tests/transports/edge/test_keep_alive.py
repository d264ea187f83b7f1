"""A connection without a request is closed after a while, and never during one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.edge.http_protocol import BoundedHttpProtocol, http_protocol_class

KEEP_ALIVE_S = 5


class Timer:
    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due, self.callback = due, callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """A loop whose time the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + delay, callback))
        return self.timers[-1]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self.timers if each.due <= self.now and not each.cancelled]
        self.timers = [each for each in self.timers if each not in due and not each.cancelled]
        for each in due:
            each.callback()


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
async def idle() -> tuple[BoundedHttpProtocol, Loop, Transport]:
    """A connection that has just been answered."""

    def app(*_: Any) -> None: ...

    config = uvicorn.Config(app, timeout_keep_alive=KEEP_ALIVE_S, log_config=None)
    loop: Any = Loop()
    protocol = http_protocol_class(ConnectionLimits())(config, ServerState(), {}, loop)
    transport = Transport()
    protocol.connection_made(transport)
    loop.timers.clear()  # those of the first head
    protocol.on_response_complete()
    return protocol, loop, transport


async def test_idle_connection_is_closed(
    idle: tuple[BoundedHttpProtocol, Loop, Transport],
) -> None:
    _, loop, transport = idle

    loop.pass_time(KEEP_ALIVE_S - 1)
    assert not transport.closed
    loop.pass_time(1)
    assert transport.closed


async def test_time_counts_from_the_last_response_and_one_timer_serves_many(
    idle: tuple[BoundedHttpProtocol, Loop, Transport],
) -> None:
    protocol, loop, transport = idle

    for _ in range(10):
        loop.pass_time(KEEP_ALIVE_S - 1)
        protocol.data_received(b"")
        protocol.on_response_complete()
        assert len(loop.timers) == 1
    assert not transport.closed
    loop.pass_time(KEEP_ALIVE_S)
    assert transport.closed


async def test_connection_with_a_request_is_not_closed_however_long_it_takes(
    idle: tuple[BoundedHttpProtocol, Loop, Transport],
) -> None:
    protocol, loop, transport = idle

    protocol.data_received(b"")
    loop.pass_time(KEEP_ALIVE_S * 10)
    assert not transport.closed
    protocol.on_response_complete()
    loop.pass_time(KEEP_ALIVE_S)
    assert transport.closed


async def test_no_timer_outlives_its_connection(
    idle: tuple[BoundedHttpProtocol, Loop, Transport],
) -> None:
    protocol, loop, _ = idle

    protocol.connection_lost(None)

    assert all(timer.cancelled for timer in loop.timers)
