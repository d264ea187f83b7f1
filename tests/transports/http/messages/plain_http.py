"""What is said over plain HTTP, and what comes back."""

import asyncio
from typing import Any

import httpx

from tests.helpers.servers.server_process import ServerProcess

MIB = 1 << 20
PATIENCE = 60.0


def note(key: str = "k") -> dict[str, Any]:
    """Something to say."""
    return {"key": key, "content_type": "text", "content": "hello"}


def ids(page: dict[str, Any]) -> list[str]:
    """The messages of a page."""
    return [each["id"] for each in page["messages"]]


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The payload of the error this answer is."""
    assert answer.status_code == status, answer.text
    said = answer.json()
    assert (said["type"], said["payload"]["code"]) == ("error", code), said
    assert answer.headers["cache-control"] == "no-store"
    problem: dict[str, Any] = said["payload"]
    return problem


class Plug:
    """A bare connection, which may be used for one request after the other."""

    def __init__(self, server: ServerProcess, pair: Any) -> None:
        self.host = server.url.removeprefix("http://")
        self.reader, self.writer = pair

    @classmethod
    async def into(cls, server: ServerProcess) -> "Plug":
        """Connected."""
        return cls(server, await asyncio.open_connection("127.0.0.1", server.port))

    async def ask(self, first: str, token: str, *more: str, body: bytes = b"") -> None:
        """Send a head and what there is of a body."""
        lines = [first, f"Host: {self.host}", f"Authorization: Bearer {token}", *more, "", ""]
        self.writer.write("\r\n".join(lines).encode() + body)
        await self.writer.drain()

    async def status(self) -> int:
        """The status of the next answer."""
        line = await self.reader.readline()
        return int(line.split()[1]) if line else 0


async def until_logged(server: ServerProcess, words: str) -> str:
    """The server's log, once these words are in it."""
    async with asyncio.timeout(PATIENCE):
        while words not in server.log:  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(0.01)
    return server.log
