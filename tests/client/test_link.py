"""When a client comes back by itself, and when it must not."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from accord.client import Client, Closed, GaveUp, Replaced, Retry, SignedOut, Unreachable
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.client.scripted import QUICK, Guest, guest, scripted, settle, stay
from tests.client.test_backoff import nobody_listens
from tests.spec import proves

HELLO = PresenceUpdate("alice", Presence.ACTIVE, "2026-01-30T20:00:00.000Z")


async def test_an_address_where_nobody_answers_is_an_error_at_once() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        async with Client(nobody_listens(), id="alice"):
            pass


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
async def test_a_token_that_is_not_taken_ends_it(status: HTTPStatus) -> None:
    async with scripted(stay, status) as url:
        with pytest.raises(SignedOut, match="Not now"):
            async with guest(url, patient=True):
                pass


async def test_something_else_at_the_address_ends_it() -> None:
    async with scripted(stay, HTTPStatus.NOT_FOUND) as url:
        with pytest.raises(Unreachable, match="does not speak PVP"):
            async with guest(url, patient=True):
                pass


@proves("PVP-19.1-2")
async def test_a_server_that_is_not_ready_is_asked_again() -> None:
    busy = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.BAD_GATEWAY, HTTPStatus.TOO_MANY_REQUESTS)

    async with scripted(stay, *busy) as url, guest(url, patient=True) as client:
        assert (await client.join("s")).id == "s"


@proves("PVP-19.1-2")
@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013])
async def test_after_such_an_end_it_comes_back(code: int) -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=guest.number)
        if guest.number == 1:
            await guest.connection.close(code, "see you")
        await guest.echo(await guest.hear(), seq=10)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        assert (await session.send(HELLO)).seq == 10


class Waits:
    """Somebody who notes how long it is to wait, and does not."""

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

    def guest(self, url: str, **options: Any) -> Client:
        return guest(url, retry=Retry(chance=lambda: 0.0, sleep=self.sleep), watch=self, **options)


@pytest.mark.parametrize(("code", "least"), [(1001, 0.0), (1011, 0.0), (1012, 0.5), (1013, 1.0)])
async def test_a_server_that_says_it_stops_is_given_time(code: int, least: float) -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=guest.number)
        if guest.number == 1:
            await guest.connection.close(code, "see you")
        await guest.connection.wait_closed()

    waits = Waits()
    async with scripted(script) as url, waits.guest(url) as client:
        session = await client.join("s")
        heard = [(await anext(aiter(session.messages()))).type for _ in range(3)]

    assert heard == ["session.join", "error", "session.join"]
    assert waits.all == [least]
    assert waits.news == ["back", "lost: see you", "back"]


@pytest.mark.parametrize(
    ("said", "least"), [("3", 3.0), ("0", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", 0.0)]
)
async def test_a_server_that_names_a_time_is_left_alone_until_then(said: str, least: float) -> None:
    waits = Waits()
    busy = HTTPStatus.SERVICE_UNAVAILABLE
    asking = scripted(stay, busy, **{"Retry-After": said})
    async with asking as url, waits.guest(url, patient=True):
        pass

    assert waits.all == [least]


async def test_a_loss_for_good_is_no_absence() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        await guest.connection.close(1008, "the token was revoked")

    waits = Waits()
    async with scripted(script) as url, waits.guest(url) as client:
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
        (1009, "message too big", GaveUp),
        (1002, "a fragment out of order", GaveUp),
    ],
)
async def test_after_such_an_end_it_stays_away(
    code: int, reason: str, error: type[Exception]
) -> None:
    connections = 0

    async def script(guest: Guest) -> None:
        nonlocal connections
        connections = guest.number
        await guest.let_in()
        await guest.connection.close(code, reason)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        with pytest.raises(error, match=reason):
            async for _ in session.messages():
                pass
        with pytest.raises(error, match=reason):
            await session.send(HELLO)
        with pytest.raises(error, match=reason):
            await session.decision("p")
        with pytest.raises(error, match=reason):
            await client.join("another")
        await settle()
    assert connections == 1


async def test_closing_ends_reading_and_fails_whoever_waits() -> None:
    async with scripted(stay) as url:
        async with guest(url) as client:
            session = await client.join("s")
            sending = asyncio.create_task(session.send(HELLO))
            waiting = asyncio.create_task(session.decision("p"))
            await settle()

        with pytest.raises(Closed):
            await sending
        with pytest.raises(Closed):
            await waiting
        assert [each.type async for each in session.messages()] == ["session.join"]
        with pytest.raises(Closed):
            await session.send(HELLO)


async def test_nothing_is_left_running() -> None:
    before = asyncio.all_tasks()

    async with scripted(stay) as url:
        inside = asyncio.all_tasks()
        async with guest(url) as client:
            await client.join("s")
        await settle()
        assert {
            task for task in asyncio.all_tasks() - inside if "accord" in task.get_name()
        } == set()
    assert asyncio.all_tasks() == before


async def test_a_cancelled_block_closes_the_client() -> None:
    joined = asyncio.Event()

    async def work(url: str) -> None:
        async with guest(url) as client:
            session = await client.join("s")
            joined.set()
            async for _ in session.messages():
                pass

    async with scripted(stay) as url:
        task = asyncio.create_task(work(url))
        await joined.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settle()
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("accord")]


async def test_a_fault_in_the_client_is_told_to_whoever_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(data: bytes) -> None:
        raise KeyError("a bug")

    async with scripted(stay) as url, guest(url) as client:
        monkeypatch.setattr("accord.client.hub.head", broken)

        with pytest.raises(GaveUp, match="Something went wrong in the client"):
            await client.join("s")
    assert "the client's link died" in caplog.text


async def test_sessions_are_joined_inside_the_block() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await Client("http://127.0.0.1:1", id="alice", retry=QUICK).join("s")
