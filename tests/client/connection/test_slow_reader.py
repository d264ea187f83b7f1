"""A slow reader stops the client from reading, but loses nothing and blocks no response."""

import asyncio

import pytest

from accord.client.response_stream import MAX_UNACKNOWLEDGED_CHUNKS
from tests.client.connection.test_received_messages import END
from tests.client.connection.test_reconnect import PRESENCE_BODY
from tests.client.connection.test_resending import prompt
from tests.helpers.servers.scripted_websocket_server import (
    ScriptedConnection,
    make_fast_client,
    run_scripted_server,
    yield_to_loop,
)

MESSAGE_COUNT = 3000
INBOX_SIZE = 16


async def send_chunks(
    connection: ScriptedConnection, first: int, count: int = MESSAGE_COUNT
) -> int:
    """Send many messages; returns the next unused seq."""
    chunk = {"type": "response.chunk", "sender": "claude", "payload": {"text": "x" * 1000}}
    for seq in range(first, first + count):
        await connection.send(id=f"m{seq}", seq=seq, **chunk)
    return first + count


async def test_slow_reader_bounds_unread_messages_and_misses_nothing() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        await connection.send(id="end", seq=await send_chunks(connection, 2), **END)

    async with (
        run_scripted_server(script) as url,
        make_fast_client(url, inbox=INBOX_SIZE) as client,
    ):
        session = await client.join("s")
        places, most = [], 0
        async for envelope in session.messages():
            places.append(envelope.seq)
            most = max(most, len(session._link.inbox._unread))

    assert places == list(range(1, MESSAGE_COUNT + 3))
    assert most <= INBOX_SIZE


async def test_acknowledgement_arrives_while_the_inbox_is_full() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        seq = await send_chunks(connection, 2)
        await connection.echo(await connection.receive(), seq)
        await connection.send(id="end", seq=await send_chunks(connection, seq + 1), **END)

    async with (
        run_scripted_server(script) as url,
        make_fast_client(url, inbox=INBOX_SIZE) as client,
    ):
        session = await client.join("s")
        accepted = await session.send(PRESENCE_BODY)

        places = [envelope.seq async for envelope in session.messages()]

    assert accepted.seq == MESSAGE_COUNT + 2
    assert places == list(range(1, 2 * MESSAGE_COUNT + 4))


async def test_decision_arrives_while_the_inbox_is_full() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        seq = await send_chunks(connection, 2)
        grant = {"tool_proposal": "p", "approved_by": ["bob"]}
        await connection.send(id="go", type="tool.execute", payload=grant, seq=seq)
        await connection.websocket.wait_closed()

    async with (
        run_scripted_server(script) as url,
        make_fast_client(url, inbox=INBOX_SIZE) as client,
    ):
        session = await client.join("s")

        assert (await session.decision("p")).approved_by == ("bob",)


async def test_cancelled_wait_does_not_keep_reading_open() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        await send_chunks(connection, 2)

    async with (
        run_scripted_server(script) as url,
        make_fast_client(url, inbox=INBOX_SIZE) as client,
    ):
        session = await client.join("s")
        waiting = asyncio.create_task(session.decision("p"))
        await yield_to_loop()
        assert session._link.awaits_response
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert not session._link.awaits_response


async def test_session_without_listener_keeps_no_messages() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        seq = await send_chunks(connection, 2)
        await connection.echo(await connection.receive(), seq)
        await connection.send(id="end", seq=seq + 1, **END)

    async with (
        run_scripted_server(script) as url,
        make_fast_client(url, inbox=INBOX_SIZE) as client,
    ):
        session = await client.join("s", listen=False)
        await session.send(PRESENCE_BODY)

        assert [envelope async for envelope in session.messages()] == []


async def test_response_does_not_wait_for_each_chunk() -> None:
    """The server responds only after 40 chunks; a client that waited for each would hang."""
    bits = 40

    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        await connection.echo(await connection.receive(), seq=2)
        messages = [await connection.receive() for _ in range(bits)]
        for seq, message in enumerate(messages, 3):
            await connection.echo(message, seq)
        await connection.echo(await connection.receive(), seq=99)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        async with session.respond("prompt") as out:
            for number in range(bits):
                await out.write(str(number))


async def test_response_limits_unacknowledged_chunks() -> None:
    received = []
    enough = asyncio.Event()

    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=1)
        await connection.echo(await connection.receive(), seq=2)
        while True:
            received.append(await connection.receive())
            if len(received) == MAX_UNACKNOWLEDGED_CHUNKS:
                enough.set()

    async def write(url: str) -> None:
        async with make_fast_client(url) as client:
            session = await client.join("s")
            async with session.respond("prompt") as out:
                while True:
                    await out.write("x")
                    await asyncio.sleep(0)

    async with run_scripted_server(script) as url:
        writing = asyncio.create_task(write(url))
        await enough.wait()
        await yield_to_loop()
        assert len(received) == MAX_UNACKNOWLEDGED_CHUNKS
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_two_sessions_on_one_connection_receive_their_own_messages() -> None:
    async def script(connection: ScriptedConnection) -> None:
        one, two = await connection.receive(), await connection.receive()
        await connection.echo(two, seq=1)
        await connection.echo(one, seq=1)
        for seq in (2, 3):
            await connection.echo(await connection.receive(), seq)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        one, two = await asyncio.gather(client.join("one"), client.join("two"))

        assert (await one.send(prompt("a"))).seq == 2
        assert (await two.send(prompt("b"))).seq == 3
