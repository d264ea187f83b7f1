"""A message is accepted or refused exactly once, however often the connection is lost."""

import asyncio

import pytest

from accord.client import ServerRefused, SessionOver
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.membership.leaving import SessionLeave
from tests.client.connection.test_reconnect import PRESENCE_BODY
from tests.helpers.servers.scripted_websocket_server import (
    ScriptedConnection,
    make_fast_client,
    run_scripted_server,
    yield_to_loop,
)
from tests.spec import proves


def prompt(content: str) -> PromptSubmit:
    return PromptSubmit(content, "claude", ("alice",), ())


@proves("OPEN-36", "PVP-19.5-1")
async def test_unacknowledged_messages_are_resent_in_order_with_their_ids() -> None:
    sent: list[list[tuple[str, str]]] = []

    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=10 * connection.number)
        messages = [await connection.receive() for _ in range(5 if connection.number == 1 else 4)]
        sent.append([(item["id"], item["payload"]["content"]) for item in messages])
        if connection.number == 1:
            await connection.echo(messages[0], seq=11)
            return
        for number, message in enumerate(messages):
            await connection.echo(message, seq=21 + number)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        answers = [session.say(prompt(text)) for text in "abcde"]
        accepted = await asyncio.gather(*answers)

    assert [content for _, content in sent[0]] == list("abcde")
    assert sent[1] == sent[0][1:]
    assert [item.seq for item in accepted] == [11, 21, 22, 23, 24]


@proves("OPEN-36")
async def test_message_seen_in_the_replay_is_not_resent() -> None:
    kept = {}

    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join(seq=1)
            kept.update(await connection.receive())
            return
        join = await connection.receive()
        await connection.echo(kept, seq=2)
        await connection.echo(join, seq=3)
        second = await connection.receive()
        assert second["payload"]["content"] == "second"
        await connection.echo(second, seq=4)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        assert (await session.send(prompt("first"))).seq == 2
        assert (await session.send(prompt("second"))).seq == 4


async def test_cancelled_message_is_not_resent() -> None:
    heard_once, given_up = asyncio.Event(), asyncio.Event()

    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=10 * connection.number)
        message = await connection.receive()
        if connection.number == 1:
            heard_once.set()
            await given_up.wait()
        else:
            assert message["payload"]["content"] == "second"
            await connection.echo(message, seq=21)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        first = asyncio.create_task(session.send(prompt("first")))
        await heard_once.wait()
        first.cancel()
        await yield_to_loop()
        given_up.set()
        assert (await session.send(prompt("second"))).seq == 21


@proves("PVP-17-13", "OPEN-49")
async def test_refusal_is_raised_only_for_the_refused_message() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        first, second = await connection.receive(), await connection.receive()
        await connection.refuse(first, "INVALID_STATE", details={"limit": 3})
        await connection.echo(second, seq=2)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        first, second = session.say(prompt("a")), session.say(prompt("b"))

        with pytest.raises(ServerRefused, match="INVALID_STATE: No") as refused:
            await first
        assert (refused.value.message, refused.value.details) == ("No.", {"limit": 3})
        assert (await second).seq == 2


@proves("OPEN-36")
async def test_unacknowledged_post_is_resent() -> None:
    sent = []

    async def script(connection: ScriptedConnection) -> None:
        message = await connection.receive()
        sent.append(message)
        if connection.number == 2:
            await connection.echo(message, seq=7)
            await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        assert (await client.post("s", prompt("Hi"))).seq == 7
    assert sent[0] == sent[1]


async def test_cancelled_join_is_not_retried() -> None:
    received = asyncio.Event()
    types = []

    async def script(connection: ScriptedConnection) -> None:
        types.append((await connection.receive())["type"])
        received.set()
        if connection.number == 1:
            await given_up.wait()

    given_up = asyncio.Event()
    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        joining = asyncio.create_task(client.join("s"))
        await received.wait()
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        given_up.set()
        received.clear()
        posting = asyncio.create_task(client.post("s", prompt("Hi")))
        await received.wait()
        posting.cancel()
    assert types == ["session.join", "prompt.submit"]


async def test_interrupted_create_creates_one_session() -> None:
    sent = []

    async def script(connection: ScriptedConnection) -> None:
        create = await connection.receive()
        sent.append((create["id"], create["session"], create["type"]))
        if connection.number == 1:
            return
        await connection.echo(create, seq=1)
        await connection.accept_join(seq=2)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.create(name="one")

        assert session.id == sent[0][1]
    assert sent[0] == sent[1]
    assert sent[0][2] == "session.create"


@proves("PVP-19.5-3")
async def test_interrupted_leave_does_not_rejoin() -> None:
    sent = []

    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join()
            sent.append(await connection.receive())
            return
        leave = await connection.receive()
        sent.append(leave)
        await connection.echo(leave, seq=2)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        await session.leave("bye")

        assert [item.type async for item in session.messages()][-1] == "session.leave"
        with pytest.raises(SessionOver):
            await session.send(PRESENCE_BODY)
    assert sent[0] == sent[1]
    assert sent[0]["type"] == SessionLeave.type


async def test_leave_refused_as_already_gone_ends_the_session() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        await connection.refuse(await connection.receive(), "PARTICIPANT_NOT_FOUND")
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await session.leave()
        assert [item.type async for item in session.messages()] == ["session.join"]


async def test_signal_is_sent_without_waiting() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        assert (await connection.receive())["payload"]["code"] == "AGENT_ERROR"
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        sent = await session.send(ErrorReport("AGENT_ERROR", "Tired", recoverable=True))

        assert (sent.seq, sent.echo) == (0, None)


async def test_oversized_message_is_refused_before_sending() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        await connection.echo(await connection.receive(), seq=2)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="CONTEXT_TOO_LARGE"):
            await session.send(prompt("x" * (5 << 20)))
        assert (await session.send(prompt("x"))).seq == 2
