"""A graceful stop finishes pending work, answers every sender, and ends within its timeout."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from websockets.exceptions import ConnectionClosed

from tests.helpers.attacks.approval_scene import get
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.stores.write_lock import hold_write_lock

SPEAKERS = 20
ENOUGH = 200
ITEM = {"key": "k", "content": "x", "content_type": "text", "source": "someone"}
GOODBYE = 1012


class Speaker:
    """Talks in a session of its own until the server says goodbye; every echo is an answer."""

    def __init__(self, wire: WebSocketClient, session: str) -> None:
        self.wire = wire
        self.session = session
        self.heard: set[str] = set()
        self.errors: list[dict[str, Any]] = []
        self.code = 0

    async def talk(self, _: asyncio.Semaphore) -> None:
        number = 0
        with suppress(ConnectionClosed):
            while True:
                number += 1
                item = ITEM | {"key": f"k{number % 20}"}
                await self.wire.send("context.add", self.session, item)
                await asyncio.sleep(0)

    async def listen(self, enough: asyncio.Semaphore) -> None:
        try:
            async for text in self.wire.socket:
                said = json.loads(text)
                if said["type"] == "error":
                    self.errors.append(said["payload"])
                else:
                    self.heard.add(said["id"])
                    enough.release()
            self.code = self.wire.socket.close_code or 0
        except ConnectionClosed as closed:
            self.code = closed.rcvd.code if closed.rcvd else 0


async def speakers(server: ServerProcess, count: int) -> list[Speaker]:
    made = []
    for number in range(count):
        wire = await WebSocketClient.open(
            server.ws_url, f"p{number}", server.issue_token(f"p{number}")
        )
        made.append(Speaker(wire, await wire.create()))
    return made


async def talking(people: list[Speaker]) -> list[asyncio.Task[None]]:
    """They talk, and much was answered already."""
    enough = asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(work(enough)) for each in people for work in (each.talk, each.listen)
    ]
    for _ in range(ENOUGH):
        await enough.acquire()
    return tasks


def stored(server: ServerProcess) -> set[str]:
    with_store = apsw.Connection(str(server.home / "accord.db"), apsw.SQLITE_OPEN_READONLY)
    try:
        return {id for (id,) in with_store.execute("SELECT id FROM records")}
    finally:
        with_store.close()


def verified(server: ServerProcess) -> bool:
    words = [sys.executable, "-m", "accord", "verify", "--data-dir", str(server.home)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


async def ended(server: ServerProcess, *how: signal.Signals) -> int:
    return await asyncio.to_thread(server.wait_for_exit, *how)


async def test_stop_under_load_loses_nothing_acknowledged_and_answers_all(
    tmp_path: Path,
) -> None:
    with run_server(tmp_path, "token", "--stop-timeout", "50") as server:
        people = await speakers(server, SPEAKERS)
        tasks = await talking(people)
        began = time.monotonic()
        assert await ended(server, signal.SIGTERM) == 0
        assert time.monotonic() - began < 50
        await asyncio.gather(*tasks)

        assert {each.code for each in people} == {GOODBYE}
        heard = set().union(*(each.heard for each in people))
        assert len(heard) >= ENOUGH
        assert heard - stored(server) == set()
        server.start()
        assert await get(f"{server.url}/readyz") == (200, {"status": "ready"})
        server.stop()
        assert verified(server)


async def test_second_signal_exits_at_once_and_loses_nothing_acknowledged(
    tmp_path: Path,
) -> None:
    with run_server(tmp_path, "token", "--drain", "600") as server:
        people = await speakers(server, 3)
        tasks = await talking(people)
        server.request_stop()
        while (await get(f"{server.url}/readyz"))[0] == 200:
            pass
        assert await ended(server, signal.SIGTERM) == 128 + signal.SIGTERM
        await asyncio.gather(*tasks)

        heard = set().union(*(each.heard for each in people))
        assert heard - stored(server) == set()
        assert verified(server)


async def test_draining_server_is_not_ready_but_still_serves(
    tmp_path: Path,
) -> None:
    with run_server(tmp_path, "token", "--drain", "600") as server:
        (alice,) = await speakers(server, 1)
        server.request_stop()
        while (said := await get(f"{server.url}/readyz"))[0] == 200:
            pass
        assert said == (503, {"status": "not ready", "failed": ["stopping"]})
        await alice.wire.send("context.add", alice.session, ITEM)
        await alice.wire.receive_until("context.add")
        await alice.wire.socket.close()


async def test_stop_with_a_hanging_store_refuses_unstored_messages(
    tmp_path: Path,
) -> None:
    with run_server(tmp_path, "token", "--stop-timeout", "2") as server:
        (alice,) = await speakers(server, 1)
        enough = asyncio.Semaphore(0)
        listening = asyncio.create_task(alice.listen(enough))
        with hold_write_lock(server.home / "accord.db"):
            asked = await alice.wire.send("context.add", alice.session, ITEM)
            await (await alice.wire.socket.ping())  # it was taken
            began = time.monotonic()
            assert await ended(server, signal.SIGTERM) == 6
            assert time.monotonic() - began < 10, "the store never comes back"
        await listening

        assert asked not in alice.heard
        assert [error["related_to"] for error in alice.errors] == [asked]
        assert "same id" in alice.errors[0]["message"]
        assert alice.code == GOODBYE
        server.start()
        server.stop()
        assert verified(server)


async def test_message_during_stop_is_refused_as_unavailable(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--stop-timeout", "50") as server:
        alice, bob = await speakers(server, 2)
        listening = [asyncio.create_task(each.listen(asyncio.Semaphore())) for each in (alice, bob)]
        with hold_write_lock(server.home / "accord.db"):
            asked = await alice.wire.send("context.add", alice.session, ITEM)
            await (await alice.wire.socket.ping())  # it was taken
            server.request_stop()
            while not bob.errors:
                await bob.wire.send("context.add", bob.session, ITEM)
                await asyncio.sleep(0.05)
        assert await ended(server) == 0
        await asyncio.gather(*listening)
        assert "The server is stopping" in bob.errors[0]["message"]
        assert asked in alice.heard


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_idle_server_stops_quickly(how: signal.Signals, tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--stop-timeout", "50") as server:
        began = time.monotonic()
        assert server.wait_for_exit(how) == 0
        assert time.monotonic() - began < 20, "it waits for nothing"
