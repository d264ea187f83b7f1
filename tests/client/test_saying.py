"""What is said is accepted once or refused, however often the connection is lost."""

import asyncio

import pytest

from accord.client import ServerRefused, SessionOver
from accord.core.room.members import SessionLeave
from accord.core.room.notices import ErrorReport
from accord.core.room.prompts import PromptSubmit
from tests.client.scripted import Guest, guest, scripted, settle
from tests.client.test_link import HELLO
from tests.spec import proves


def prompt(content: str) -> PromptSubmit:
    return PromptSubmit(content, "claude", ("alice",), ())


@proves("OPEN-36", "PVP-19.5-1")
async def test_what_was_not_acknowledged_is_said_again_with_its_id_and_in_order() -> None:
    said: list[list[tuple[str, str]]] = []

    async def script(guest: Guest) -> None:
        await guest.let_in(seq=10 * guest.number)
        messages = [await guest.hear() for _ in range(5 if guest.number == 1 else 4)]
        said.append([(each["id"], each["payload"]["content"]) for each in messages])
        if guest.number == 1:
            await guest.echo(messages[0], seq=11)
            return
        for number, message in enumerate(messages):
            await guest.echo(message, seq=21 + number)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        answers = [session.say(prompt(text)) for text in "abcde"]
        accepted = await asyncio.gather(*answers)

    assert [content for _, content in said[0]] == list("abcde")
    assert said[1] == said[0][1:]
    assert [each.seq for each in accepted] == [11, 21, 22, 23, 24]


@proves("OPEN-36")
async def test_what_the_replay_shows_was_accepted_is_not_said_again() -> None:
    kept = {}

    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in(seq=1)
            kept.update(await guest.hear())
            return
        join = await guest.hear()
        await guest.echo(kept, seq=2)
        await guest.echo(join, seq=3)
        second = await guest.hear()
        assert second["payload"]["content"] == "second"
        await guest.echo(second, seq=4)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        assert (await session.send(prompt("first"))).seq == 2
        assert (await session.send(prompt("second"))).seq == 4


async def test_a_message_whose_sender_stopped_waiting_is_not_said_again() -> None:
    heard_once, given_up = asyncio.Event(), asyncio.Event()

    async def script(guest: Guest) -> None:
        await guest.let_in(seq=10 * guest.number)
        message = await guest.hear()
        if guest.number == 1:
            heard_once.set()
            await given_up.wait()
        else:
            assert message["payload"]["content"] == "second"
            await guest.echo(message, seq=21)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        first = asyncio.create_task(session.send(prompt("first")))
        await heard_once.wait()
        first.cancel()
        await settle()
        given_up.set()
        assert (await session.send(prompt("second"))).seq == 21


@proves("PVP-17-13", "OPEN-49")
async def test_a_refusal_is_raised_where_it_was_caused_and_nothing_else_is_disturbed() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        first, second = await guest.hear(), await guest.hear()
        await guest.refuse(first, "INVALID_STATE", details={"limit": 3})
        await guest.echo(second, seq=2)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        first, second = session.say(prompt("a")), session.say(prompt("b"))

        with pytest.raises(ServerRefused, match="INVALID_STATE: No") as refused:
            await first
        assert (refused.value.message, refused.value.details) == ("No.", {"limit": 3})
        assert (await second).seq == 2


@proves("OPEN-36")
async def test_a_post_that_was_cut_off_is_said_again() -> None:
    said = []

    async def script(guest: Guest) -> None:
        message = await guest.hear()
        said.append(message)
        if guest.number == 2:
            await guest.echo(message, seq=7)
            await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        assert (await client.post("s", prompt("Hi"))).seq == 7
    assert said[0] == said[1]


async def test_a_join_that_is_given_up_is_not_tried_again() -> None:
    heard = asyncio.Event()
    types = []

    async def script(guest: Guest) -> None:
        types.append((await guest.hear())["type"])
        heard.set()
        if guest.number == 1:
            await given_up.wait()

    given_up = asyncio.Event()
    async with scripted(script) as url, guest(url) as client:
        joining = asyncio.create_task(client.join("s"))
        await heard.wait()
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        given_up.set()
        heard.clear()
        posting = asyncio.create_task(client.post("s", prompt("Hi")))
        await heard.wait()
        posting.cancel()
    assert types == ["session.join", "prompt.submit"]


async def test_a_create_that_was_cut_off_creates_one_session() -> None:
    said = []

    async def script(guest: Guest) -> None:
        create = await guest.hear()
        said.append((create["id"], create["session"], create["type"]))
        if guest.number == 1:
            return
        await guest.echo(create, seq=1)
        await guest.let_in(seq=2)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.create(name="one")

        assert session.id == said[0][1]
    assert said[0] == said[1]
    assert said[0][2] == "session.create"


@proves("PVP-19.5-3")
async def test_a_leave_that_was_cut_off_does_not_bring_one_back() -> None:
    said = []

    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in()
            said.append(await guest.hear())
            return
        leave = await guest.hear()
        said.append(leave)
        await guest.echo(leave, seq=2)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        await session.leave("bye")

        assert [each.type async for each in session.messages()][-1] == "session.leave"
        with pytest.raises(SessionOver):
            await session.send(HELLO)
    assert said[0] == said[1]
    assert said[0]["type"] == SessionLeave.type


async def test_one_who_is_out_already_has_left() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        await guest.refuse(await guest.hear(), "PARTICIPANT_NOT_FOUND")
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await session.leave()
        assert [each.type async for each in session.messages()] == ["session.join"]


async def test_a_signal_waits_for_nobody() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        assert (await guest.hear())["payload"]["code"] == "AGENT_ERROR"
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        sent = await session.send(ErrorReport("AGENT_ERROR", "Tired", recoverable=True))

        assert (sent.seq, sent.echo) == (0, None)


async def test_a_frame_that_would_end_the_connection_is_not_sent() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        await guest.echo(await guest.hear(), seq=2)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="CONTEXT_TOO_LARGE"):
            await session.send(prompt("x" * (5 << 20)))
        assert (await session.send(prompt("x"))).seq == 2
