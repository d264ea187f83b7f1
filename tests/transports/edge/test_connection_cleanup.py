"""What a connection leaves behind: nothing that waits for the collector of cycles."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from accord.identity.token_signing import Keyring
from accord.server.engine_factory import make_engine
from accord.stores.memory import MemoryLog
from accord.transports.edge import http_protocol
from accord.transports.edge.http_protocol import MAX_LINGER_BYTES, http_protocol_class
from accord.transports.intake import AuthPolicy, Intake
from accord.transports.websocket.protocol import websocket_protocol_class
from accord.transports.websocket.registry import WebSocketRegistry

PATIENCE = 60.0


@pytest.fixture
def rare() -> Iterator[None]:
    """Cycles are not collected meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An app that is never asked."""


class House:
    """A server of connections that can be looked at, on a port of its own."""

    def __init__(self, home: Path) -> None:
        trust = AuthPolicy(Keyring.open(home / "keys"), tuple)
        hall = WebSocketRegistry(Intake(make_engine(MemoryLog()), trust))
        self.kind, ws = http_protocol_class(hall.connection_limits), websocket_protocol_class(hall)
        self.config = uvicorn.Config(
            nothing, ws=ws, http=self.kind, lifespan="off", log_config=None
        )
        self.config.load()
        self.state = ServerState()
        self.made: list[weakref.ref[Any]] = []

    def accept(self) -> asyncio.BaseProtocol:
        protocol = self.kind(config=self.config, server_state=self.state, app_state={})
        self.made.append(weakref.ref(protocol))
        return protocol

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """The port that it listens on."""
        server = await asyncio.get_running_loop().create_server(self.accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def forgotten(self) -> None:
        """Wait until nothing is left of any connection."""
        async with asyncio.timeout(PATIENCE):
            while any(each() is not None for each in self.made):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)


@pytest.mark.usefixtures("rare")
async def test_a_connection_that_became_a_websocket_is_forgotten_with_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    async with house.open() as port:
        for _ in range(3):
            async with connect(f"ws://127.0.0.1:{port}/ws"):
                pass
        await house.forgotten()

    assert len(house.made) == 3


@pytest.mark.usefixtures("rare")
async def test_of_what_comes_behind_a_refused_upgrade_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "LINGER_S", 10 * PATIENCE)  # it is not time that ends it
    house = House(tmp_path)
    async with house.open() as port, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        assert b" 426 " in await reader.readline()
        writer.write(bytes(2 * MAX_LINGER_BYTES))
        with suppress(ConnectionError):
            await writer.drain()
        await house.forgotten()
        writer.close()

    assert len(house.made) == 1
