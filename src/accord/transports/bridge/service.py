"""The bridge while a server runs: its sockets and its port, opened together and closed together."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import uvicorn

from accord.core.kernel.limits import Limits
from accord.transports.head import http_class
from accord.transports.porch import Porch

from .listening import Listening, Places
from .table import Clerk
from .ticket import ticket
from .web import app

LIMITS = Limits(connections=64, strangers=64)


class _Quiet(uvicorn.Server):
    """uvicorn that leaves signals to the server it serves beside."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are not ours."""
        yield


class Bridge:
    """What hooks reach; leaving it removes the files and lets go of the port."""

    def __init__(self, clerk: Clerk, home: Path, port: int | None) -> None:
        self.clerk = clerk
        self.home = home
        self.listening = Listening(clerk, Places(home, port))
        self.web: _Quiet | None = None
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.listening.open()
        if (sock := self.listening.port()) is not None:
            port = sock.getsockname()[1]
            self.web = _Quiet(self._config(port))
            self.task = asyncio.create_task(self.web.serve(sockets=[sock]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.listening.close()
        if self.web is not None and self.task is not None:
            self.web.should_exit = True
            await self.task

    def _config(self, port: int) -> uvicorn.Config:
        made = app(self.clerk, ticket(self.home), port, self.listening.meter)
        return uvicorn.Config(
            made,
            http=http_class(Porch(LIMITS)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
        )
