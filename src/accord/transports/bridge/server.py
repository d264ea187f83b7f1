"""The bridge's lifetime: its Unix sockets and its port, opened and closed together."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import uvicorn

from accord.core.kernel.limits import Limits
from accord.transports.bridge.actions import BridgeHandler
from accord.transports.bridge.http_server import bridge_app
from accord.transports.bridge.listeners import ListenAddresses, Listeners
from accord.transports.bridge.token_file import load_or_create_token
from accord.transports.edge.connection_limits import ConnectionLimits
from accord.transports.edge.http_protocol import http_protocol_class

BRIDGE_LIMITS = Limits(connections=64, strangers=64)


class _SignalFreeServer(uvicorn.Server):
    """A uvicorn server that leaves signal handling to the main server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Bridge:
    """An async context manager; leaving it removes the socket files and frees the port."""

    def __init__(self, handlers: BridgeHandler, home: Path, port: int | None) -> None:
        self.handlers = handlers
        self.home = home
        self.listeners = Listeners(handlers, ListenAddresses(home, port))
        self.http_server: _SignalFreeServer | None = None
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.listeners.open()
        if (sock := self.listeners.bind_port()) is not None:
            port = sock.getsockname()[1]
            self.http_server = _SignalFreeServer(self._config(port))
            self.task = asyncio.create_task(self.http_server.serve(sockets=[sock]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.listeners.close()
        if self.http_server is not None and self.task is not None:
            self.http_server.should_exit = True
            await self.task

    def _config(self, port: int) -> uvicorn.Config:
        app = bridge_app(
            self.handlers, load_or_create_token(self.home), port, self.listeners.request_rate
        )
        return uvicorn.Config(
            app,
            http=http_protocol_class(ConnectionLimits(BRIDGE_LIMITS)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
        )
