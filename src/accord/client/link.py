"""The one connection of a client: opened, kept, and opened again when it is lost."""

import asyncio
import logging
from collections import deque
from typing import Protocol

from websockets.asyncio.client import ClientConnection

from .backoff import Retry
from .errors import ClientError, Closed, GaveUp
from .identity import Address, Identity
from .socket import LOSSES, closing_words, open_socket, unreachable, verdict

log = logging.getLogger("accord.client")


class Hearer(Protocol):
    """Whoever a link brings news to."""

    def opened(self) -> None:
        """There is a connection; nothing was said on it yet."""
        ...

    async def heard(self, data: bytes) -> bool:
        """A frame came; returns whether it shows that the connection is of use."""
        ...

    def lost(self, why: str) -> None:
        """The connection is gone; there may be another."""
        ...

    def failed(self, error: ClientError) -> None:
        """There will be no other."""
        ...


class Link:
    """Says and hears; what was said on a connection that was lost has to be said again."""

    def __init__(self, where: Address, who: Identity, runtime: str, retry: Retry) -> None:
        self._where = where
        self._who = who
        self._runtime = runtime
        self._retry = retry
        self._out: deque[str] = deque()
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._socket: ClientConnection | None = None
        self._attempt = 0

    async def open(self, hearer: Hearer, *, patient: bool = False) -> None:
        """Connect; a server that cannot be reached is an error now, and a reason to wait later."""
        self._hearer = hearer
        self._first = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(patient=patient), name="accord link")
        try:
            await self._first
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Say goodbye and stop; nothing is left behind."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._hearer.failed(Closed("The client was closed"))

    def say(self, text: str) -> None:
        """Send this after everything that was said before."""
        self._out.append(text)
        self._more.set()

    # The life of a connection

    async def _run(self, *, patient: bool) -> None:
        try:
            while True:
                await self._once(patient=patient)
                await self._retry.sleep(self._retry.delay(self._attempt))
                self._attempt += 1
        except ClientError as error:
            self._give_up(error)
        except Exception as error:
            log.critical("the client's link died", exc_info=error)
            self._give_up(GaveUp(f"Something went wrong in the client: {error!r}"))

    def _give_up(self, error: ClientError) -> None:
        self._hearer.failed(error)
        if self._first is not None and not self._first.done():
            self._first.set_exception(error)

    async def _once(self, *, patient: bool) -> None:
        """One connection, from its opening to its loss; raises when there must be no other."""
        try:
            socket = await open_socket(self._where, self._who, self._runtime)
            try:
                await self._converse(socket)
            finally:
                await socket.close()
        except LOSSES as error:
            if (final := verdict(error, self._where.base)) is not None:
                raise final from error
            if self._first is not None and not self._first.done() and not patient:
                raise unreachable(error, self._where.base) from error
            log.info("the connection to %s is lost: %s", self._where.base, error)

    async def _converse(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._out.clear()
        self._hearer.opened()
        if self._first is not None and not self._first.done():
            self._first.set_result(None)
        writer = asyncio.create_task(self._write(socket), name="accord writer")
        try:
            await self._read(socket)
        except LOSSES as error:
            self._hearer.lost(closing_words(error) or str(error))
            raise
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self, socket: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            while True:
                data = await socket.recv(decode=False)
                if await self._hearer.heard(data):
                    self._attempt = 0
        finally:
            if loop.time() - since > self._retry.cap:
                self._attempt = 0

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            while self._out:
                await socket.send(self._out.popleft())
            self._more.clear()
            await self._more.wait()
