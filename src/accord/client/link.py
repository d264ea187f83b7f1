"""The one connection of a client: opened, kept, and opened again when it is lost."""

import asyncio
import logging
from collections import deque
from typing import Protocol

from websockets.asyncio.client import ClientConnection

from .backoff import Backoff, Retry
from .errors import ClientError, Closed, GaveUp
from .identity import Address, Identity
from .socket import LOSSES, asked_to_wait, closing_words, open_socket, unreachable, verdict

log = logging.getLogger("accord.client")


class Hearer(Protocol):
    """Whoever a link brings news to."""

    def opened(self) -> None:
        """There is a connection; nothing was said on it yet."""
        ...

    async def heard(self, data: bytes) -> None:
        """A frame came."""
        ...

    def lost(self, why: str) -> None:
        """The connection is gone; there may be another."""
        ...

    def failed(self, error: ClientError) -> None:
        """There will be no other."""
        ...


class Watch(Protocol):
    """Whoever wants to know whether there is a connection."""

    def lost(self, why: str) -> None:
        """There is none any more; `why` in the words of the server, if it had any."""
        ...

    def back(self) -> None:
        """There is one."""
        ...


class Unwatched:
    """For whom it makes no difference."""

    def lost(self, why: str) -> None:
        """Let it be lost."""

    def back(self) -> None:
        """Let it be there."""


class Link:
    """Says and hears; what was said on a connection that was lost has to be said again."""

    def __init__(
        self, where: Address, who: Identity, runtime: str, retry: Retry, watch: Watch | None = None
    ) -> None:
        self._where = where
        self._who = who
        self._runtime = runtime
        self._backoff = Backoff(retry)
        self._watch = watch or Unwatched()
        self._out: deque[str] = deque()
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None
        self._socket: ClientConnection | None = None

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
                await self._backoff.wait(await self._once(patient=patient))
        except ClientError as error:
            self._give_up(error)
        except Exception as error:
            log.critical("the client's link died", exc_info=error)
            self._give_up(GaveUp(f"Something went wrong in the client: {error!r}"))

    def _give_up(self, error: ClientError) -> None:
        self._hearer.failed(error)
        if self._first is not None and not self._first.done():
            self._first.set_exception(error)

    async def _once(self, *, patient: bool) -> float:
        """One connection, from its opening to its loss; raises when there must be no other.

        Returns for how many seconds the server asked to be left alone.
        """
        try:
            socket = await open_socket(self._where, self._who, self._runtime)
            self._backoff.opened()
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
            return asked_to_wait(error)
        return 0.0

    async def _converse(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._out.clear()
        self._hearer.opened()
        self._watch.back()
        if self._first is not None and not self._first.done():
            self._first.set_result(None)
        writer = asyncio.create_task(self._write(socket), name="accord writer")
        try:
            await self._read(socket)
        except LOSSES as error:
            self._hearer.lost(closing_words(error) or str(error))
            if verdict(error, self._where.base) is None:
                self._watch.lost(closing_words(error))
            raise
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            await self._hearer.heard(await socket.recv(decode=False))

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            while self._out:
                await socket.send(self._out.popleft())
            self._more.clear()
            await self._more.wait()
