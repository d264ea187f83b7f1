"""Reads and writes lines in threads, so that slow pipes do not block the event loop."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

READ_SIZE = 1 << 16
# Backpressure starts when the reader of standard output is this far behind.
MAX_UNREAD_BYTES = 1 << 20


class InputLine(NamedTuple):
    """A line without its line break; `complete` is False if it was too long and was cut."""

    data: bytes
    complete: bool = True


class LineSplitter:
    """Splits bytes into lines; keeps only the beginning of a line that is too long."""

    def __init__(self, max_length: int, kept: int = 1024) -> None:
        self._max_length = max_length
        self._kept = kept
        self._part = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[InputLine]:
        """Add data; yields the lines that it completes."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._done()
        self._add(rest)

    def flush(self) -> Iterator[InputLine]:
        """The rest at the end of input, as a line."""
        if self._part:
            yield self._done()

    def _add(self, data: bytes) -> None:
        if not self._skipping:
            self._part += data
            if len(self._part) > self._max_length:
                self._skipping = True
                del self._part[self._kept :]

    def _done(self) -> InputLine:
        line = InputLine(bytes(self._part), not self._skipping)
        self._part, self._skipping = bytearray(), False
        return line


class LineReader:
    """Reads a file descriptor in a thread, no faster than its lines are processed."""

    def __init__(self, fd: int, max_length: int) -> None:
        self._fd = fd
        self._splitter = LineSplitter(max_length)

    async def read(self, take: Callable[[InputLine], Awaitable[None]]) -> None:
        """Pass every line to `take` until the end of input."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        async def feed(data: bytes) -> None:
            for line in self._splitter.feed(data) if data else self._splitter.flush():
                await take(line)

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def pump() -> None:
            data = b"-"
            try:
                while data:
                    data = self._read_chunk()
                    asyncio.run_coroutine_threadsafe(feed(data), loop).result()
                loop.call_soon_threadsafe(end)
            except BaseException:  # noqa: BLE001 - the loop has been closed, so there is no caller to report to
                return

        threading.Thread(target=pump, name="accord stdin", daemon=True).start()
        await over

    def _read_chunk(self) -> bytes:
        try:
            return os.read(self._fd, READ_SIZE)
        except OSError:
            return b""  # nothing will ever be written


class LineWriter:
    """Writes to a file descriptor in a thread, with a bounded buffer."""

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
        if self.broken.is_set():
            return
        self._size += len(line) + 1
        self._idle.clear()
        if self._size > MAX_UNREAD_BYTES:
            self._room.clear()
        with self._more:
            self._waiting.append(line)
            self._more.notify()

    async def wait_for_room(self) -> None:
        """Wait until the buffer has room again."""
        await self._room.wait()

    async def wait_flushed(self) -> None:
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
                self._call_in_loop(self._mark_broken)
                return
            self._call_in_loop(self._written, len(data))

    def _call_in_loop(self, what: Callable[..., None], *args: int) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *args)

    def _written(self, size: int) -> None:
        self._size -= size
        if self._size <= MAX_UNREAD_BYTES:
            self._room.set()
        if not self._size:
            self._idle.set()

    def _mark_broken(self) -> None:
        """The reader has closed its end."""
        self.broken.set()
        self._room.set()
        self._idle.set()


def write_all(fd: int, data: bytes) -> None:
    """Write all data, in as many system calls as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
