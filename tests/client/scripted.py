"""A server that does what the test says, for what a real one seldom does."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from accord.client import Client, Retry

Script = Callable[["Guest"], Awaitable[None]]


async def at_once(_: float) -> None:
    """Let others go first, and do not wait."""
    await asyncio.sleep(0)


QUICK = Retry(sleep=at_once)


class Guest:
    """A client's connection, seen from the server."""

    def __init__(self, connection: ServerConnection, number: int) -> None:
        self.connection = connection
        self.number = number

    async def hear(self) -> dict[str, Any]:
        """The next envelope."""
        said: dict[str, Any] = json.loads(await self.connection.recv())
        return said

    async def say(self, **envelope: Any) -> None:
        """An envelope, with whatever the test leaves out."""
        usual = {"v": 1, "id": "x", "ts": "2026-01-30T20:00:00.000Z", "session": "s"}
        await self.connection.send(json.dumps({**usual, "sender": "system", **envelope}))

    async def echo(self, said: dict[str, Any], seq: int) -> None:
        """Accept a message."""
        await self.say(**{**said, "seq": seq})

    async def refuse(self, said: dict[str, Any], code: str, **more: Any) -> None:
        """Refuse a message."""
        problem = {"code": code, "message": "No.", "recoverable": True, **more}
        payload = {**problem, "related_to": said["id"]}
        await self.say(
            id=f"no-{said['id']}", type="error", session=said["session"], payload=payload
        )

    async def let_in(self, seq: int = 1) -> dict[str, Any]:
        """Accept a join; returns it."""
        join = await self.hear()
        assert join["type"] == "session.join"
        await self.echo(join, seq)
        return join


@asynccontextmanager
async def scripted(script: Script, *statuses: HTTPStatus, **headers: str) -> AsyncIterator[str]:
    """The server's address. The first upgrades are refused with `statuses`, one each."""
    refusals = list(statuses)
    failures: list[BaseException] = []
    count = 0

    def admit(connection: ServerConnection, _: Request) -> Response | None:
        if not refusals:
            return None
        response = connection.respond(refusals.pop(0), "Not now.\n")
        response.headers.update(headers)
        return response

    async def handle(connection: ServerConnection) -> None:
        nonlocal count
        count += 1
        try:
            await script(Guest(connection, count))
        except AssertionError as error:
            failures.append(error)

    async with serve(handle, "127.0.0.1", 0, process_request=admit) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    assert failures == []


def guest(url: str, **options: Any) -> Client:
    """A client that does not wait between attempts."""
    return Client(url, **{"id": "alice", "retry": QUICK, **options})


async def stay(guest: Guest) -> None:
    """Let everybody in and then keep quiet."""
    await guest.let_in()
    await guest.connection.wait_closed()


async def settle() -> None:
    """Let everything that can run now do so."""
    for _ in range(20):
        await asyncio.sleep(0)
