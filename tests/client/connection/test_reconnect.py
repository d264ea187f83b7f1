"""When a client reconnects by itself, and when it must not."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from accord.client import (
    Client,
    Closed,
    ConnectionFailed,
    Replaced,
    RetryPolicy,
    SignedOut,
    Unreachable,
)
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.client.connection.test_backoff import unused_url
from tests.helpers.servers.scripted_websocket_server import (
    NO_DELAY_RETRY,
    ScriptedConnection,
    accept_and_wait,
    make_fast_client,
    run_scripted_server,
    yield_to_loop,
)
from tests.spec import proves

PRESENCE_BODY = PresenceUpdate("alice", Presence.ACTIVE, "2026-01-30T20:00:00.000Z")


async def test_connecting_to_an_unused_address_fails_at_once() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        async with Client(unused_url(), id="alice"):
            pass


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
async def test_refused_token_raises_signed_out(status: HTTPStatus) -> None:
    async with run_scripted_server(accept_and_wait, status) as url:
        with pytest.raises(SignedOut, match="Not now"):
            async with make_fast_client(url, patient=True):
                pass


async def test_server_that_does_not_speak_pvp_raises_unreachable() -> None:
    async with run_scripted_server(accept_and_wait, HTTPStatus.NOT_FOUND) as url:
        with pytest.raises(Unreachable, match="does not speak PVP"):
            async with make_fast_client(url, patient=True):
                pass


@proves("PVP-19.1-2")
async def test_upgrade_refused_with_a_transient_status_is_retried() -> None:
    busy = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.BAD_GATEWAY, HTTPStatus.TOO_MANY_REQUESTS)

    async with (
        run_scripted_server(accept_and_wait, *busy) as url,
        make_fast_client(url, patient=True) as client,
    ):
        assert (await client.join("s")).id == "s"


@proves("PVP-19.1-2")
@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013])
async def test_transient_close_code_reconnects(code: int) -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=connection.number)
        if connection.number == 1:
            await connection.websocket.close(code, "see you")
        await connection.echo(await connection.receive(), seq=10)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        assert (await session.send(PRESENCE_BODY)).seq == 10


class RecordedWaits:
    """Records the delays a client asks for, without waiting, and its lost/back notifications."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.news: list[str] = []

    async def sleep(self, seconds: float) -> None:
        self.all.append(seconds)
        await asyncio.sleep(0)

    def lost(self, why: str) -> None:
        self.news.append(f"lost: {why}")

    def back(self) -> None:
        self.news.append("back")

    def make_client(self, url: str, **options: Any) -> Client:
        return make_fast_client(
            url, retry=RetryPolicy(jitter=lambda: 0.0, sleep=self.sleep), watch=self, **options
        )


@pytest.mark.parametrize(("code", "least"), [(1001, 0.0), (1011, 0.0), (1012, 0.5), (1013, 1.0)])
async def test_restarting_server_gets_a_minimum_delay(code: int, least: float) -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=connection.number)
        if connection.number == 1:
            await connection.websocket.close(code, "see you")
        await connection.websocket.wait_closed()

    waits = RecordedWaits()
    async with run_scripted_server(script) as url, waits.make_client(url) as client:
        session = await client.join("s")
        received = [(await anext(aiter(session.messages()))).type for _ in range(3)]

    assert received == ["session.join", "error", "session.join"]
    assert waits.all == [least]
    assert waits.news == ["back", "lost: see you", "back"]


@pytest.mark.parametrize(
    ("retry_after", "least"),
    [("3", 3.0), ("0", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", 0.0)],
)
async def test_retry_after_header_delays_the_next_attempt(retry_after: str, least: float) -> None:
    waits = RecordedWaits()
    busy = HTTPStatus.SERVICE_UNAVAILABLE
    asking = run_scripted_server(accept_and_wait, busy, **{"Retry-After": retry_after})
    async with asking as url, waits.make_client(url, patient=True):
        pass

    assert waits.all == [least]


async def test_permanent_failure_is_not_reported_as_a_lost_connection() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        await connection.websocket.close(1008, "the token was revoked")

    waits = RecordedWaits()
    async with run_scripted_server(script) as url, waits.make_client(url) as client:
        session = await client.join("s")
        with pytest.raises(SignedOut):
            async for _ in session.messages():
                pass

    assert waits.news == ["back"]
    assert waits.all == []


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (1008, "the token has expired", SignedOut),
        (1008, "the token was revoked", SignedOut),
        (1008, "replaced by a newer connection", Replaced),
        (1009, "message too big", ConnectionFailed),
        (1002, "a fragment out of order", ConnectionFailed),
    ],
)
async def test_permanent_close_code_does_not_reconnect(
    code: int, reason: str, error: type[Exception]
) -> None:
    connections = 0

    async def script(connection: ScriptedConnection) -> None:
        nonlocal connections
        connections = connection.number
        await connection.accept_join()
        await connection.websocket.close(code, reason)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        with pytest.raises(error, match=reason):
            async for _ in session.messages():
                pass
        with pytest.raises(error, match=reason):
            await session.send(PRESENCE_BODY)
        with pytest.raises(error, match=reason):
            await session.decision("p")
        with pytest.raises(error, match=reason):
            await client.join("another")
        await yield_to_loop()
    assert connections == 1


async def test_closing_ends_the_reader_and_fails_pending_sends() -> None:
    async with run_scripted_server(accept_and_wait) as url:
        async with make_fast_client(url) as client:
            session = await client.join("s")
            sending = asyncio.create_task(session.send(PRESENCE_BODY))
            waiting = asyncio.create_task(session.decision("p"))
            await yield_to_loop()

        with pytest.raises(Closed):
            await sending
        with pytest.raises(Closed):
            await waiting
        assert [item.type async for item in session.messages()] == ["session.join"]
        with pytest.raises(Closed):
            await session.send(PRESENCE_BODY)


async def test_closed_client_leaves_no_tasks() -> None:
    before = asyncio.all_tasks()

    async with run_scripted_server(accept_and_wait) as url:
        inside = asyncio.all_tasks()
        async with make_fast_client(url) as client:
            await client.join("s")
        await yield_to_loop()
        assert {
            task for task in asyncio.all_tasks() - inside if "accord" in task.get_name()
        } == set()
    assert asyncio.all_tasks() == before


async def test_cancelling_the_with_block_closes_the_client() -> None:
    joined = asyncio.Event()

    async def work(url: str) -> None:
        async with make_fast_client(url) as client:
            session = await client.join("s")
            joined.set()
            async for _ in session.messages():
                pass

    async with run_scripted_server(accept_and_wait) as url:
        task = asyncio.create_task(work(url))
        await joined.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await yield_to_loop()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("accord")]


async def test_bug_in_the_client_fails_waiting_callers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("a bug")

    async with run_scripted_server(accept_and_wait) as url, make_fast_client(url) as client:
        monkeypatch.setattr("accord.client.connection.router.parse_head", broken)

        with pytest.raises(ConnectionFailed, match="Bug in the client"):
            await client.join("s")
    assert "the client's connection task failed" in caplog.text


async def test_joining_outside_async_with_raises() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await Client("http://127.0.0.1:1", id="alice", retry=NO_DELAY_RETRY).join("s")
