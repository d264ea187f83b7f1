"""MCP's public conformance suite and the Inspector, in a cache outside the tree."""

import asyncio
import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from tests.helpers.git import npm_programs
from tests.helpers.hosts.installation import COMPLETE, cache_directory, exclusive, report

LOCK_DIR = Path(__file__).resolve().parents[2] / "transports" / "mcp" / "npm"
INSTALLED_MB = 160
REQUEST_LINE_END = b" HTTP/1.1\r\n"


def ensure_installed() -> Path:
    """The directory of the commands, after installing them where necessary."""
    lock = (LOCK_DIR / "package-lock.json").read_bytes()
    directory = cache_directory().parent / f"mcp-clients-{hashlib.sha256(lock).hexdigest()[:16]}"
    with exclusive(directory.parent):
        if not (directory / COMPLETE).exists():
            report(f"Installing MCP's test clients into {directory} (about {INSTALLED_MB} MB) …")
            made = Path(tempfile.mkdtemp(prefix="installing-", dir=directory.parent))
            try:
                npm_programs.install(made, LOCK_DIR)
                (made / COMPLETE).touch()
                shutil.rmtree(directory, ignore_errors=True)
                made.rename(directory)
            finally:
                shutil.rmtree(made, ignore_errors=True)
            report("Installed MCP's test clients.")
    return directory / "node_modules" / ".bin"


@contextlib.asynccontextmanager
async def with_token(url: str, token: str) -> AsyncIterator[str]:
    """The address of a proxy that adds a token, for programs that cannot send one."""
    port = int(url.rpartition(":")[2])
    mark = REQUEST_LINE_END + f"Authorization: Bearer {token}\r\n".encode()
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, requests: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 20):
                writer.write(data.replace(REQUEST_LINE_END, mark) if requests else data)
                await writer.drain()
        writer.close()

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", port)
        for task in (
            asyncio.create_task(pipe(reader, their_writer, requests=True)),
            asyncio.create_task(pipe(their_reader, writer, requests=False)),
        ):
            pipes.add(task)
            task.add_done_callback(pipes.discard)

    proxy = await asyncio.start_server(on_connect, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()
        for task in list(pipes):
            task.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
