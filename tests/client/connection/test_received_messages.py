"""How a client processes expected and unexpected messages."""

import pytest

from accord.client import Envelope, ServerRefused, Unreachable
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SessionJoin
from tests.client.connection.test_reconnect import PRESENCE_BODY
from tests.helpers.servers.scripted_websocket_server import (
    ScriptedConnection,
    make_fast_client,
    run_scripted_server,
)
from tests.spec import proves

END = {"type": "session.end", "payload": {"reason": "done", "final_state": "completed"}}


def announced(id: str, **more: object) -> dict[str, object]:
    """A `participant.announce` frame of bob."""
    who = {"id": "bob", "name": "Bob", "type": "human", "roles": ["driver"], "transport": "http"}
    return {"id": id, "type": "participant.announce", "payload": who, **more}


async def received_messages(url: str) -> list[Envelope]:
    """All messages of session `s` until it ends."""
    async with make_fast_client(url) as client:
        session = await client.join("s")
        return [envelope async for envelope in session.messages()]


@proves("OPEN-2")
async def test_unknown_message_types_are_skipped() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        await connection.send(id="new", type="dance.start", payload={"tempo": 120}, seq=2)
        await connection.send(id="odd", type="prompt.submit", payload={"content": 7}, seq=3)
        await connection.send(id="end", seq=4, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    assert [item.type for item in received] == ["session.join", "session.end"]


@proves("OPEN-2")
async def test_unknown_message_type_counts_as_seen_on_rejoin() -> None:
    refs = []

    async def script(connection: ScriptedConnection) -> None:
        refs.append((await connection.accept_join(seq=10 * connection.number)).get("ref"))
        if connection.number == 1:
            await connection.send(id="new", type="dance.start", payload={}, seq=11)
        else:
            await connection.send(id="end", seq=99, **END)

    async with run_scripted_server(script) as url:
        await received_messages(url)

    assert refs == [None, "new"]


@proves("PVP-17-13")
async def test_invalid_frames_and_unrelated_errors_are_ignored() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        for noise in ("", "{", "null", "[]", "\ud7ff", '{"id":1}', '{"type":"error"}'):
            await connection.websocket.send(noise)
        await connection.websocket.send(b"\xff\xfe")
        await connection.send(id="e1", type="error", session="", payload={})
        await connection.send(id="e2", type="error", session="nowhere", payload={"code": 3})
        problem = {"code": "NEW_CODE", "message": "Unheard of", "recoverable": False}
        await connection.send(id="e3", type="error", payload={**problem, "related_to": "nothing"})
        await connection.send(id="end", seq=2, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    (error,) = [item.body for item in received if isinstance(item.body, ErrorReport)]
    assert (error.code, error.message, error.recoverable) == ("NEW_CODE", "Unheard of", False)
    assert received[-1].type == "session.end"


@proves("PVP-19.5-2", "OPEN-36")
async def test_duplicates_are_dropped_by_seq_and_by_id() -> None:
    async def script(connection: ScriptedConnection) -> None:
        join = await connection.accept_join(seq=1)
        await connection.echo(join, seq=1)
        await connection.send(**announced("a", seq=2))
        await connection.send(**announced("a", seq=2))
        await connection.send(**announced("b"))
        await connection.send(**announced("b"))
        problem = {"code": "GATE_FAILED", "message": "No", "recoverable": True}
        await connection.send(id="e", type="error", payload=problem)
        await connection.send(id="e", type="error", payload=problem)
        await connection.send(id="end", seq=3, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    assert [item.id for item in received][1:] == ["a", "b", "e", "end"]


@proves("OPEN-30")
async def test_repeated_announcements_are_dropped() -> None:
    """Each rejoin replays announcements, whose ids the client may already know."""

    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join(seq=1)
            await connection.send(**announced("a", seq=2))
        else:
            join = await connection.receive()
            await connection.send(**announced("a"))
            await connection.send(**announced("b"))
            await connection.send(**announced("b", seq=3))
            await connection.echo(join, seq=4)
            await connection.send(id="end", seq=5, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    assert [item.id for item in received if isinstance(item.body, ParticipantAnnounce)] == [
        "a",
        "b",
    ]


@proves("OPEN-37")
async def test_rejoin_names_the_last_seen_message_and_receives_the_rest() -> None:
    refs = []

    async def script(connection: ScriptedConnection) -> None:
        join = await connection.receive()
        refs.append(join.get("ref"))
        if connection.number == 1:
            await connection.send(**announced("a", seq=1))
            await connection.echo(join, seq=2)
            await connection.send(**announced("b", seq=5))
            await connection.send(**announced("signal"))
        else:
            await connection.send(**announced("c", seq=6))
            await connection.echo(join, seq=7)
            await connection.send(id="end", seq=8, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    assert refs == [None, "b"]
    assert [item.seq for item in received if item.seq] == [1, 2, 5, 6, 7, 8]


async def test_replayed_leave_does_not_end_the_session() -> None:
    """OPEN-32: away for longer than the grace period, then back."""

    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join(seq=1)
            return
        join = await connection.receive()
        left = {"reason": "Connection lost", "participant": "alice"}
        await connection.send(id="left", type="session.leave", payload=left, seq=2)
        await connection.echo(join, seq=3)
        await connection.echo(await connection.receive(), seq=4)
        await connection.send(id="gone", type="session.leave", payload=left, seq=5)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        assert (await session.send(PRESENCE_BODY)).seq == 4

        received = [envelope async for envelope in session.messages()]

    assert [item.id for item in received if item.type == "session.leave"] == ["left", "gone"]
    assert len([item for item in received if isinstance(item.body, SessionJoin)]) == 2


@proves("PVP-19.5-4")
async def test_lost_connection_is_received_as_an_error_message() -> None:
    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join(seq=connection.number)
        if connection.number == 1:
            await connection.websocket.close(1012, "the server stops")
        else:
            await connection.send(id="end", seq=3, **END)

    async with run_scripted_server(script) as url:
        received = await received_messages(url)

    assert [item.type for item in received] == [
        "session.join",
        "error",
        "session.join",
        "session.end",
    ]
    error = received[1].body
    assert isinstance(error, ErrorReport)
    assert (error.code, error.recoverable) == ("TRANSPORT_ERROR", False)
    assert error.message == "The connection was lost: the server stops"


@pytest.mark.parametrize("code", ["SESSION_NOT_FOUND", "UNAUTHORIZED", "INVALID_MESSAGE"])
async def test_refused_rejoin_raises_to_the_reader(code: str) -> None:
    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join()
            return
        await connection.refuse(await connection.receive(), code)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="No") as refused:
            async for _ in session.messages():
                pass
        assert refused.value.code == code
        with pytest.raises(ServerRefused):
            await session.send(PRESENCE_BODY)


async def test_unreadable_end_of_a_session_raises_to_the_reader() -> None:
    """The session ended while the client was offline, and HTTP does not respond."""

    async def script(connection: ScriptedConnection) -> None:
        if connection.number == 1:
            await connection.accept_join()
            return
        await connection.refuse(await connection.receive(), "INVALID_STATE", recoverable=False)
        await connection.websocket.wait_closed()

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        with pytest.raises(Unreachable):
            async for _ in session.messages():
                pass


@pytest.mark.parametrize("code", ["RATE_LIMITED", "INTERNAL_ERROR"])
async def test_rejoin_refused_with_a_transient_code_is_retried(code: str) -> None:
    async def script(connection: ScriptedConnection) -> None:
        if connection.number in {2, 3}:
            await connection.refuse(await connection.receive(), code)
            await connection.websocket.wait_closed()
            return
        await connection.accept_join(seq=connection.number)
        if connection.number == 4:
            await connection.echo(await connection.receive(), seq=10)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")

        assert (await session.send(PRESENCE_BODY)).seq == 10
