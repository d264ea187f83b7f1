"""WebSocket frames as sent and received without Accord's client."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from accord.client import default_config
from accord.core.dialects import pvp
from accord.core.room.session_lifecycle import SessionCreate
from tests.client.connection.test_replaced_connections import envelope
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

CREATE = json.loads(pvp.encode(SessionCreate(config=default_config())))
WHO = {"id": "alice", "name": "Alice", "type": "human", "roles": ["driver"]}
JOIN = {"participant": {**WHO, "transport": "websocket"}, "supported_versions": [1]}


@pytest.fixture
def room(request: pytest.FixtureRequest) -> str:
    """A session id used by one test only."""
    return f"s{abs(hash(request.node.nodeid))}"


@asynccontextmanager
async def alice(server: ServerProcess, **options: Any) -> AsyncIterator[ClientConnection]:
    """A bare WebSocket connection as alice."""
    async with connect(server.ws_url, proxy=None, **options) as socket:
        yield socket


async def hear(socket: ClientConnection) -> Any:
    """The next frame, decoded."""
    frame = await socket.recv()
    assert isinstance(frame, str)
    return json.loads(frame)


async def say(socket: ClientConnection, room: str, id: str, type: str, payload: Any) -> None:
    await socket.send(json.dumps(envelope(id, room, type, payload, "alice")))


@proves("PVP-19.1-1", "OPEN-35")
async def test_each_frame_is_one_envelope_and_echoes_have_a_seq(
    shared_open_server: ServerProcess,
    room: str,
) -> None:
    async with alice(shared_open_server) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        created, announced = await hear(socket), await hear(socket)

    assert (created["id"], created["type"], created["seq"]) == ("c", "session.create", 1)
    assert (announced["type"], announced["sender"], announced["seq"]) == (
        "participant.announce",
        "system",
        2,
    )


async def test_create_and_join_can_be_sent_without_waiting(
    shared_open_server: ServerProcess, room: str
) -> None:
    async with alice(shared_open_server) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        await say(socket, room, "j", "session.join", JOIN)
        await say(socket, room, "p", "presence.update", {**PRESENT, "status": "idle"})
        received = [await hear(socket) for _ in range(5)]

    assert [message["seq"] for message in received] == [1, 2, 3, 4, 5]
    assert [message["type"] for message in received] == [
        "session.create",
        "participant.announce",
        "session.join",
        "participant.announce",
        "presence.update",
    ]
    assert received[3]["payload"]["roles"] == ["admin", "driver"]


PRESENT = {"participant": "alice", "status": "active", "last_active": "2026-01-30T20:00:00.000Z"}


@proves("OPEN-36")
async def test_repeated_message_has_one_effect_and_the_same_outcome(
    shared_open_server: ServerProcess,
    room: str,
) -> None:
    async with alice(shared_open_server) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        await say(socket, room, "p", "presence.update", PRESENT)
        first = [await hear(socket) for _ in range(3)][-1]
        await say(socket, room, "p", "presence.update", PRESENT)
        again = await hear(socket)
        await say(socket, room, "p", "presence.update", {**PRESENT, "status": "idle"})
        error = await hear(socket)
        await say(socket, room, "q", "presence.update", PRESENT)
        second = await hear(socket)

    assert again == first
    assert (error["type"], error["payload"]["code"]) == ("error", "INVALID_MESSAGE")
    assert error["payload"]["related_to"] == "p"
    assert second["seq"] == first["seq"] + 1


@proves("OPEN-2", "PVP-17-12")
@pytest.mark.parametrize(
    ("frame", "related"),
    [
        (envelope("x", "here", "dance.start", {}, "alice"), "x"),
        (envelope("x", "here", "presence.update", {"status": "asleep"}, "alice"), "x"),
        ({**envelope("x", "here", "presence.update", PRESENT, "alice"), "v": 2}, "x"),
        ({"id": "x"}, "x"),
        ([], None),
        ("noise", None),
    ],
)
async def test_invalid_frame_gets_an_error_and_keeps_the_connection(
    shared_open_server: ServerProcess, room: str, frame: Any, related: str | None
) -> None:
    async with alice(shared_open_server) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        await hear(socket)
        await hear(socket)
        await socket.send(json.dumps(frame))
        error = await hear(socket)
        await say(socket, room, "p", "presence.update", {**PRESENT, "mood": "good"})
        after = await hear(socket)

    assert (error["type"], error["payload"]["code"]) == ("error", "INVALID_MESSAGE")
    assert error["payload"].get("related_to") == related
    assert error["payload"]["message"]
    assert (after["id"], after["seq"], after["payload"]) == ("p", 3, PRESENT)


@proves("OPEN-51", "PVP-21-1")
@pytest.mark.parametrize(
    ("offered", "chosen"), [(None, None), (["pvp.v1"], "pvp.v1"), (["chat", "pvp.v1"], "pvp.v1")]
)
async def test_subprotocol_is_accepted_when_offered(
    shared_open_server: ServerProcess,
    room: str,
    offered: list[Subprotocol] | None,
    chosen: str | None,
) -> None:
    async with alice(shared_open_server, subprotocols=offered) as socket:
        assert socket.subprotocol == chosen


@proves("OPEN-51")
async def test_binary_or_oversized_frames_close_the_connection(
    shared_open_server: ServerProcess, room: str
) -> None:
    async with alice(shared_open_server) as socket:
        await socket.send(json.dumps(envelope("c", room, "session.create", CREATE)).encode())
        binary = await hear(socket)
        two = json.dumps(envelope("c", room, "session.create", CREATE, "alice"))
        await socket.send(f"{two}\\n{two}")
        several = await hear(socket)
        big = {**CREATE, "name": "x" * (2 << 20)}
        await say(socket, room, "big", "session.create", big)
        large = await hear(socket)
        await socket.send("x" * (5 << 20))
        with pytest.raises(ConnectionClosed) as closed:
            await hear(socket)

    assert [message["payload"]["code"] for message in (binary, several, large)] == [
        "INVALID_MESSAGE",
        "INVALID_MESSAGE",
        "CONTEXT_TOO_LARGE",
    ]
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@proves("OPEN-49")
async def test_non_member_cannot_tell_whether_a_session_exists(
    shared_open_server: ServerProcess, room: str
) -> None:
    async with alice(shared_open_server) as socket, alice(shared_open_server) as stranger:
        await say(socket, room, "c", "session.create", CREATE)
        await hear(socket)
        answers = []
        for session in (room, "nowhere"):
            message = envelope("p", session, "presence.update", {**PRESENT, "participant": "eve"})
            await stranger.send(json.dumps({**message, "sender": "eve"}))
            answers.append((await hear(stranger))["payload"])

    assert [answer["code"] for answer in answers] == ["SESSION_NOT_FOUND"] * 2
    assert not any(answer["recoverable"] for answer in answers)
