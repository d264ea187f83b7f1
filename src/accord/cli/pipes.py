"""Standard input and output as lines, beside an event loop; neither may hold it up."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

CHUNK = 1 << 16
# Whoever fills standard output waits once this much is unread.
LARGEST_UNREAD = 1 << 20


class Line(NamedTuple):
    """A line without its end; of one that is too long, only the beginning."""

    data: bytes
    whole: bool = True


class Splitter:
    """Bytes to lines; of a line that is too long no more than its beginning is kept."""

    def __init__(self, longest: int, kept: int = 1024) -> None:
        self._longest = longest
        self._kept = kept
        self._part = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that are complete now."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._done()
        self._add(rest)

    def rest(self) -> Iterator[Line]:
        """What is left at the end of input counts as a line."""
        if self._part:
            yield self._done()

    def _add(self, data: bytes) -> None:
        if not self._skipping:
            self._part += data
            if len(self._part) > self._longest:
                self._skipping = True
                del self._part[self._kept :]

    def _done(self) -> Line:
        line = Line(bytes(self._part), not self._skipping)
        self._part, self._skipping = bytearray(), False
        return line


class Input:
    """A file descriptor, read by a thread of its own no faster than its lines are taken."""

    def __init__(self, fd: int, longest: int) -> None:
        self._fd = fd
        self._splitter = Splitter(longest)

    async def read(self, take: Callable[[Line], Awaitable[None]]) -> None:
        """Hand on every line, to the end of input."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        async def feed(data: bytes) -> None:
            for line in self._splitter.feed(data) if data else self._splitter.rest():
                await take(line)

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def pump() -> None:
            data = b"-"
            try:
                while data:
                    data = self._chunk()
                    asyncio.run_coroutine_threadsafe(feed(data), loop).result()
                loop.call_soon_threadsafe(end)
            except BaseException:  # noqa: BLE001 - the loop is gone, and with it whoever would care
                return

        threading.Thread(target=pump, name="accord stdin", daemon=True).start()
        await over

    def _chunk(self) -> bytes:
        try:
            return os.read(self._fd, CHUNK)
        except OSError:
            return b""  # nobody will ever write


class Output:
    """A file descriptor, written by a thread of its own; what is unread has a bound."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._more = threading.Condition()
        self._waiting: list[bytes] = []
        self._size = 0
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.broken = asyncio.Event()
        threading.Thread(target=self._pump, name="accord stdout", daemon=True).start()

    def put(self, line: bytes) -> None:
        """One more line."""
        if self.broken.is_set():
            return
        self._size += len(line) + 1
        self._idle.clear()
        if self._size > LARGEST_UNREAD:
            self._room.clear()
        with self._more:
            self._waiting.append(line)
            self._more.notify()

    async def room(self) -> None:
        """Wait until the reader keeps up."""
        await self._room.wait()

    async def flushed(self) -> None:
        """Wait until everything is written."""
        await self._idle.wait()

    def _pump(self) -> None:
        while True:
            with self._more:
                while not self._waiting:
                    self._more.wait()
                lines, self._waiting = self._waiting, []
            data = b"\n".join([*lines, b""])
            try:
                write_all(self._fd, data)
            except OSError:
                self._tell(self._break)
                return
            self._tell(self._written, len(data))

    def _tell(self, what: Callable[..., None], *args: int) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *args)

    def _written(self, size: int) -> None:
        self._size -= size
        if self._size <= LARGEST_UNREAD:
            self._room.set()
        if not self._size:
            self._idle.set()

    def _break(self) -> None:
        """Nobody reads any more."""
        self.broken.set()
        self._room.set()
        self._idle.set()


def write_all(fd: int, data: bytes) -> None:
    """All of it, however little the other end takes at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
