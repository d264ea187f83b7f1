"""Requests that are sent before the first is answered: so many are, and the rest is not read."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from accord.transports.edge.http_protocol import MAX_PIPELINED
from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import memory, plug, rest
from tests.helpers.servers.server_process import ServerProcess, run_server

SOON = 10.0
ASK = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def pour(opened: socket.socket, times: int) -> None:
    """As many as are taken."""
    with contextlib.suppress(OSError):
        opened.sendall(ASK * times)


@pytest.mark.parametrize("reads", [True, False], ids=["read", "deaf"])
async def test_whoever_asks_without_end_makes_nobody_wait(
    house: ServerProcess, reads: bool
) -> None:
    before = memory(house)

    def attack() -> int:
        with plug(house) as opened:
            opened.settimeout(SOON)
            pouring = threading.Thread(target=pour, args=(opened, 20_000))
            pouring.start()
            heard = rest(opened) if reads else b""
            pouring.join()
        return heard.count(b"HTTP/1.1 404 ")

    async with witnessed(house):
        answers = await asyncio.to_thread(attack)
    assert not reads or MAX_PIPELINED <= answers < 20_000
    assert memory(house) - before < 20


def test_as_many_as_may_be_sent_at_once_are_answered_and_more_after_that(
    house: ServerProcess,
) -> None:
    with plug(house) as opened:
        opened.settimeout(SOON)
        for _ in range(3):
            opened.sendall(ASK * MAX_PIPELINED)
            heard = b""
            while heard.count(b'"details":{}}}') < MAX_PIPELINED:
                heard += opened.recv(1 << 16)
            assert heard.count(b"HTTP/1.1 404 ") == MAX_PIPELINED
