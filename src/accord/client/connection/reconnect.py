"""A client's single connection, reopened whenever it is lost."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NoReturn, Protocol

from websockets.asyncio.client import ClientConnection

from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.connection.websocket import (
    CONNECTION_ERRORS,
    close_reason,
    ended_with_token,
    open_websocket,
    permanent_error,
    retry_after_s,
)
from accord.client.errors import ClientError, Closed, ConnectionFailed, Unreachable
from accord.client.http_client import unreachable
from accord.client.identity import Identity, ServerAddress

log = logging.getLogger("accord.client")


class ConnectionHandler(Protocol):
    """Receives what happens on a connection."""

    def on_connected(self) -> None:
        """A connection was opened; nothing was sent on it yet."""
        ...

    async def on_frame(self, data: bytes) -> None:
        """A frame was received."""
        ...

    def on_connection_lost(self, why: str) -> None:
        """The connection was lost and will be retried."""
        ...

    def on_failed(self, error: ClientError) -> None:
        """The connection failed for good."""
        ...


class ConnectionObserver(Protocol):
    """Is notified when the connection is lost and when it is back."""

    def lost(self, why: str) -> None:
        """The connection was lost; `why` is the server's close reason, or empty."""
        ...

    def back(self) -> None: ...


class NullObserver:
    """The observer of a client that was given none."""

    def lost(self, why: str) -> None:
        pass

    def back(self) -> None:
        pass


class ReconnectLoop:
    """Opens a connection, and opens it again after each loss, until a retry would not help."""

    def __init__(
        self,
        address: ServerAddress,
        identity: Identity,
        runtime: str,
        retry: RetryPolicy,
        watch: ConnectionObserver | None = None,
    ) -> None:
        self.address = address
        self.identity = identity
        self.runtime = runtime
        self.observer = watch or NullObserver()
        self._backoff = Backoff(retry)

    async def run(
        self,
        serve: Callable[[ClientConnection], Awaitable[None]],
        on_lost: Callable[[str], None],
        *,
        patient: bool = False,
    ) -> NoReturn:
        """Serve each connection in turn; `on_lost` is told why each one ended.

        Raises ClientError if a retry would not help, or if the first attempt fails and the caller
        is not `patient`.
        """
        retries = patient
        while True:
            delay_s, connected = 0.0, False
            try:
                socket = await open_websocket(self.address, self.identity, self.runtime)
                connected = retries = True
                self._backoff.on_connected()
                self.observer.back()
                try:
                    await serve(socket)
                finally:
                    await socket.close()
            except Unreachable as error:  # the token could not be renewed
                if not (error.transient and retries):
                    raise
            except CONNECTION_ERRORS as error:
                final = self._final_error(error, retries=retries)
                if connected:
                    on_lost(str(final or close_reason(error) or error))
                if final is not None:
                    raise final from error
                self.observer.lost(close_reason(error))
                log.info("lost the connection to %s: %s", self.address.base_url, error)
                delay_s = retry_after_s(error)
            await self._backoff.wait(delay_s)

    def _final_error(self, error: Exception, *, retries: bool) -> ClientError | None:
        base = self.address.base_url
        if self.identity.is_renewable and ended_with_token(error):
            return None  # the next connection has another token
        return permanent_error(error, base) or (None if retries else unreachable(error, base))


class ReconnectingConnection:
    """Sends and receives frames; the caller resends what was sent on a lost connection."""

    def __init__(self, loop: ReconnectLoop) -> None:
        self._loop = loop
        self._send_queue: deque[str] = deque()
        self._queue_filled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._first_connected: asyncio.Future[None] | None = None

    async def open(self, handler: ConnectionHandler, *, patient: bool = False) -> None:
        """Connect; raises if the server cannot be reached now, but retries later losses."""
        self._handler = handler
        self._first_connected = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(patient=patient), name="accord connection")
        try:
            await self._first_connected
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection and end its task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._handler.on_failed(Closed("The client was closed"))

    def enqueue(self, text: str) -> None:
        """Queue a frame; frames are sent in order."""
        self._send_queue.append(text)
        self._queue_filled.set()

    # Connecting, running, reconnecting

    async def _run(self, *, patient: bool) -> None:
        try:
            await self._loop.run(
                self._run_connection, self._handler.on_connection_lost, patient=patient
            )
        except ClientError as error:
            self._give_up(error)
        except Exception as error:
            log.critical("the client's connection task failed", exc_info=error)
            self._give_up(ConnectionFailed(f"Bug in the client, please report it: {error!r}"))

    def _give_up(self, error: ClientError) -> None:
        self._handler.on_failed(error)
        if self._first_connected is not None and not self._first_connected.done():
            self._first_connected.set_exception(error)

    async def _run_connection(self, socket: ClientConnection) -> None:
        self._send_queue.clear()
        self._handler.on_connected()
        if self._first_connected is not None and not self._first_connected.done():
            self._first_connected.set_result(None)
        writer = asyncio.create_task(self._write(socket), name="accord writer")
        try:
            await self._read(socket)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            await self._handler.on_frame(await socket.recv(decode=False))

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            while self._send_queue:
                await socket.send(self._send_queue.popleft())
            self._queue_filled.clear()
            await self._queue_filled.wait()
