"""A reader that is slow holds up the connection, loses nothing and blocks nobody's answer."""

import asyncio

import pytest

from accord.client.response import MOST_UNDER_WAY
from tests.client.scripted import Guest, guest, scripted, settle
from tests.client.test_hearing import END
from tests.client.test_link import HELLO
from tests.client.test_saying import prompt

MANY = 3000
BOUND = 16


async def flood(guest: Guest, first: int, count: int = MANY) -> int:
    """Many messages; returns the place of the next."""
    chunk = {"type": "response.chunk", "sender": "claude", "payload": {"text": "x" * 1000}}
    for seq in range(first, first + count):
        await guest.say(id=f"m{seq}", seq=seq, **chunk)
    return first + count


async def test_a_slow_reader_keeps_a_bounded_number_waiting_and_misses_nothing() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        await guest.say(id="end", seq=await flood(guest, 2), **END)

    async with scripted(script) as url, guest(url, inbox=BOUND) as client:
        session = await client.join("s")
        places, most = [], 0
        async for envelope in session.messages():
            places.append(envelope.seq)
            most = max(most, len(session._attendance.inbox._waiting))

    assert places == list(range(1, MANY + 3))
    assert most <= BOUND


async def test_an_answer_gets_through_to_who_does_not_read() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        seq = await flood(guest, 2)
        await guest.echo(await guest.hear(), seq)
        await guest.say(id="end", seq=await flood(guest, seq + 1), **END)

    async with scripted(script) as url, guest(url, inbox=BOUND) as client:
        session = await client.join("s")
        accepted = await session.send(HELLO)

        places = [envelope.seq async for envelope in session.messages()]

    assert accepted.seq == MANY + 2
    assert places == list(range(1, 2 * MANY + 4))


async def test_a_decision_gets_through_to_who_does_not_read() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        seq = await flood(guest, 2)
        grant = {"tool_proposal": "p", "approved_by": ["bob"]}
        await guest.say(id="go", type="tool.execute", payload=grant, seq=seq)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url, inbox=BOUND) as client:
        session = await client.join("s")

        assert (await session.decision("p")).approved_by == ("bob",)


async def test_a_wait_that_is_given_up_holds_nothing_open() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        await flood(guest, 2)

    async with scripted(script) as url, guest(url, inbox=BOUND) as client:
        session = await client.join("s")
        waiting = asyncio.create_task(session.decision("p"))
        await settle()
        assert session._attendance.waiting
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert not session._attendance.waiting


async def test_who_does_not_listen_keeps_nothing() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        seq = await flood(guest, 2)
        await guest.echo(await guest.hear(), seq)
        await guest.say(id="end", seq=seq + 1, **END)

    async with scripted(script) as url, guest(url, inbox=BOUND) as client:
        session = await client.join("s", listen=False)
        await session.send(HELLO)

        assert [envelope async for envelope in session.messages()] == []


async def test_an_answer_is_written_without_waiting_for_each_bit() -> None:
    """The server stays silent until it has 40 chunks; a client that waited would wait for ever."""
    bits = 40

    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        await guest.echo(await guest.hear(), seq=2)
        messages = [await guest.hear() for _ in range(bits)]
        for seq, message in enumerate(messages, 3):
            await guest.echo(message, seq)
        await guest.echo(await guest.hear(), seq=99)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        async with session.respond("prompt") as out:
            for number in range(bits):
                await out.write(str(number))


async def test_an_answer_does_not_run_far_ahead() -> None:
    heard = []
    enough = asyncio.Event()

    async def script(guest: Guest) -> None:
        await guest.let_in(seq=1)
        await guest.echo(await guest.hear(), seq=2)
        while True:
            heard.append(await guest.hear())
            if len(heard) == MOST_UNDER_WAY:
                enough.set()

    async def write(url: str) -> None:
        async with guest(url) as client:
            session = await client.join("s")
            async with session.respond("prompt") as out:
                while True:
                    await out.write("x")
                    await asyncio.sleep(0)

    async with scripted(script) as url:
        writing = asyncio.create_task(write(url))
        await enough.wait()
        await settle()
        assert len(heard) == MOST_UNDER_WAY
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_two_sessions_share_a_connection() -> None:
    async def script(guest: Guest) -> None:
        one, two = await guest.hear(), await guest.hear()
        await guest.echo(two, seq=1)
        await guest.echo(one, seq=1)
        for seq in (2, 3):
            await guest.echo(await guest.hear(), seq)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        one, two = await asyncio.gather(client.join("one"), client.join("two"))

        assert (await one.send(prompt("a"))).seq == 2
        assert (await two.send(prompt("b"))).seq == 3
