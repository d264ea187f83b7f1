"""What a connection leaves behind: nothing that waits for the collector of cycles."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from accord.app import make_engine
from accord.stores.memory import MemoryLog
from accord.transports.hall import Hall
from accord.transports.head import http_class
from accord.transports.identity import Keyring
from accord.transports.reception import Reception, Trust
from accord.transports.websocket import protocol_class

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


@pytest.mark.usefixtures("rare")
async def test_a_connection_that_became_a_websocket_is_forgotten_with_it(tmp_path: Path) -> None:
    trust = Trust(Keyring.open(tmp_path / "keys"), tuple)
    hall = Hall(Reception(make_engine(MemoryLog()), trust))
    made: list[weakref.ref[Any]] = []
    kind = http_class(hall.porch)
    ws = protocol_class(hall)
    config = uvicorn.Config(nothing, ws=ws, http=kind, lifespan="off", log_config=None)
    config.load()
    state = ServerState()

    def accept() -> asyncio.BaseProtocol:
        protocol = kind(config=config, server_state=state, app_state={})
        made.append(weakref.ref(protocol))
        return protocol

    server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for _ in range(3):
        async with connect(f"ws://127.0.0.1:{port}/ws"):
            pass
    async with asyncio.timeout(PATIENCE):
        while any(each() is not None for each in made):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    server.close()

    assert len(made) == 3
