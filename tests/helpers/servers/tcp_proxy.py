"""A TCP proxy on loopback in front of a server or its database, which a test can cut or hold."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

CHUNK_BYTES = 1 << 16


class TcpProxy:
    """Forwards connections to a port of this machine."""

    def __init__(self, target_port: int) -> None:
        # Called for each new connection.
        self.choose_target: Callable[[], int] = lambda: target_port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers_pass = asyncio.Event()
        self._answers_pass.set()
        self.accepts = True
        self.held_bytes = 0

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    def hold_answers(self) -> None:
        """Keep what the target answers from now on; what is sent to it passes."""
        self.held_bytes = 0
        self._answers_pass.clear()

    def release_answers(self) -> None:
        """Let answers pass again."""
        self._answers_pass.set()

    def cut(self) -> None:
        """Reset all connections; answers that were held are lost."""
        for writer in self._writers:
            writer.transport.abort()
        self._answers_pass.set()

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """Stop listening and cut everything."""
        assert self._server
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.accepts:
            writer.transport.abort()
            return
        try:
            back = await asyncio.open_connection("127.0.0.1", self.choose_target())
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back[1]}
        for work in (
            self._forward(reader, back[1], answers=False),
            self._forward(back[0], writer, answers=True),
        ):
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while content := await source.read(CHUNK_BYTES):
                if answers and not self._answers_pass.is_set():
                    self.held_bytes += len(content)
                    await self._answers_pass.wait()
                target.write(content)
                await target.drain()
        target.transport.abort()
        self._writers.discard(target)


@contextlib.asynccontextmanager
async def proxy_to(port: int) -> AsyncIterator[TcpProxy]:
    """A running proxy to this port."""
    proxy = TcpProxy(port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
