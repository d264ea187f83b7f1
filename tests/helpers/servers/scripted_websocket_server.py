"""A WebSocket server that follows a test's script, for what a real server rarely does."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from accord.client import Client, RetryPolicy

Script = Callable[["ScriptedConnection"], Awaitable[None]]


async def sleep_zero(_: float) -> None:
    """A sleep that only yields to other tasks."""
    await asyncio.sleep(0)


NO_DELAY_RETRY = RetryPolicy(sleep=sleep_zero)


class ScriptedConnection:
    """The server's side of one client connection."""

    def __init__(self, connection: ServerConnection, number: int) -> None:
        self.websocket = connection
        self.number = number

    async def receive(self) -> dict[str, Any]:
        """The next envelope from the client."""
        message: dict[str, Any] = json.loads(await self.websocket.recv())
        return message

    async def send(self, **envelope: Any) -> None:
        """Send an envelope, with defaults for fields the test omits."""
        defaults = {"v": 1, "id": "x", "ts": "2026-01-30T20:00:00.000Z", "session": "s"}
        await self.websocket.send(json.dumps({**defaults, "sender": "system", **envelope}))

    async def echo(self, message: dict[str, Any], seq: int) -> None:
        """Accept a message by echoing it with a seq."""
        await self.send(**{**message, "seq": seq})

    async def refuse(self, message: dict[str, Any], code: str, **more: Any) -> None:
        """Refuse a message with this error code."""
        problem = {"code": code, "message": "No.", "recoverable": True, **more}
        payload = {**problem, "related_to": message["id"]}
        await self.send(
            id=f"no-{message['id']}", type="error", session=message["session"], payload=payload
        )

    async def accept_join(self, seq: int = 1) -> dict[str, Any]:
        """Receive a join and accept it; returns the join."""
        join = await self.receive()
        assert join["type"] == "session.join"
        await self.echo(join, seq)
        return join


@asynccontextmanager
async def run_scripted_server(
    script: Script, *statuses: HTTPStatus, **headers: str
) -> AsyncIterator[str]:
    """Run a server; yields its URL. The first upgrades are refused with `statuses`, one each."""
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
            await script(ScriptedConnection(connection, count))
        except AssertionError as error:
            failures.append(error)

    async with serve(handle, "127.0.0.1", 0, process_request=admit) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    assert failures == []


def make_fast_client(url: str, **options: Any) -> Client:
    """A client that reconnects without delay."""
    return Client(url, **{"id": "alice", "retry": NO_DELAY_RETRY, **options})


async def accept_and_wait(connection: ScriptedConnection) -> None:
    """A script that accepts the join and then stays silent."""
    await connection.accept_join()
    await connection.websocket.wait_closed()


async def yield_to_loop() -> None:
    """Run all tasks that are ready."""
    for _ in range(20):
        await asyncio.sleep(0)
