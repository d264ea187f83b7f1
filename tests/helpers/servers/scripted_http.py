"""HTTP servers that send prepared bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Respond = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(*lines: str) -> AsyncIterator[str]:
    """A server that sends these lines in response to every request."""

    async def respond(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(lines).encode())

    async with responding(respond) as url:
        yield url


@asynccontextmanager
async def responding(respond: Respond) -> AsyncIterator[str]:
    """A server that passes the head of each request to `respond`, then closes the connection."""
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The client may close the connection at any time.
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                await respond(await reader.readuntil(b"\r\n\r\n"), writer)
            except asyncio.CancelledError:
                writer.transport.abort()
            finally:
                writer.close()
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # A task that was cancelled before it began has closed nothing.
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0)  # lets the transports close their sockets
