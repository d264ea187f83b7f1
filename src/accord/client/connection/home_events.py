"""`GET /home/events`: what concerns the principal, as it changes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from accord.api.home import Home, SessionHome, ThreadHome
from accord.api.threads import ThreadDetail
from accord.client.errors import ClientError, Unreachable
from accord.client.http_client import HttpClient, Query

SESSION_EVENTS: Mapping[str, Any] = {"home": Home, "session": SessionHome}
THREAD_EVENTS: Mapping[str, Any] = {"home": Home, "thread": ThreadHome}
PATH = ("home", "events")
# The server sends a comment every 15 seconds.
SILENCE_TIMEOUT_S = 60.0
MAX_LINE_BYTES = 16 << 20
MAX_UNREAD_EVENTS = 16


class _Reader(threading.Thread):
    """Reads the stream; a daemon, so that a program can end while it waits for the next line."""

    def __init__(self, http: HttpClient, query: Query, types: Mapping[str, Any]) -> None:
        super().__init__(daemon=True, name="accord-home-events")
        self._http, self._query, self._types = http, query, types
        self._loop = asyncio.get_running_loop()
        self._unread = threading.Semaphore(MAX_UNREAD_EVENTS)
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.is_stopped = False

    def run(self) -> None:
        try:
            with self._http.open_stream(PATH, self._query, SILENCE_TIMEOUT_S) as response:
                self._read_events(response.readline)
            ended: ClientError = Unreachable(
                f"{self._http.address.base_url} ended the stream", transient=True
            )
        except ClientError as error:
            ended = error
        except (OSError, ValueError) as error:  # ValueError: a line that is no event of ours
            ended = Unreachable(
                f"The connection to {self._http.address.base_url} was lost: {error}", transient=True
            )
        self._put(ended)

    def _read_events(self, read_line: Callable[[int], bytes]) -> None:
        kind = ""
        while not self.is_stopped and (line := read_line(MAX_LINE_BYTES)):
            name, _, value = line.rstrip(b"\r\n").partition(b": ")
            if name == b"event":
                kind = value.decode()
            elif name == b"data" and (shape := self._types.get(kind)):
                self._put(msgspec.json.decode(value, type=shape))

    def _put(self, item: Any) -> None:
        self._unread.acquire()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.events.put_nowait, item)

    def taken(self) -> None:
        """One more event may be read ahead."""
        self._unread.release()


async def home_events(http: HttpClient, query: Query) -> AsyncIterator[Home]:
    """First the whole home, then a `SessionHome` whenever a session changes.

    Raises ServerRefused or Unreachable when the stream ends; it never ends otherwise.
    """
    async for event in _events(http, query, SESSION_EVENTS):
        yield event


async def thread_events(http: HttpClient, query: Query) -> AsyncIterator[tuple[ThreadDetail, ...]]:
    """First all unread threads, then each thread that changes; raises like `home_events`."""
    async for event in _events(http, query, THREAD_EVENTS):
        yield event.unread_threads if isinstance(event, Home) else (event.thread,)


async def _events(http: HttpClient, query: Query, types: Mapping[str, Any]) -> AsyncIterator[Any]:
    reader = _Reader(http, query, types)
    reader.start()
    try:
        while True:
            event = await reader.events.get()
            reader.taken()
            if isinstance(event, ClientError):
                raise event
            yield event
    finally:
        reader.is_stopped = True
        reader.taken()
