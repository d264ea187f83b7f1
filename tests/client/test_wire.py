"""The WebSocket itself, without a client: frames in, frames out."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from accord.client import usual_config
from accord.core.dialects import pvp
from accord.core.room.lifecycle import SessionCreate
from tests.client.test_connections import envelope
from tests.helpers.server import ServerProcess
from tests.spec import proves

CREATE = json.loads(pvp.encode(SessionCreate(config=usual_config())))
WHO = {"id": "alice", "name": "Alice", "type": "human", "roles": ["driver"]}
JOIN = {"participant": {**WHO, "transport": "websocket"}, "supported_versions": [1]}


@pytest.fixture
def room(request: pytest.FixtureRequest) -> str:
    """A session of one's own."""
    return f"s{abs(hash(request.node.nodeid))}"


@asynccontextmanager
async def alice(server: ServerProcess, **options: Any) -> AsyncIterator[ClientConnection]:
    """A bare connection."""
    async with connect(server.ws_url, proxy=None, **options) as socket:
        yield socket


async def hear(socket: ClientConnection) -> Any:
    """The next frame, which holds one envelope."""
    frame = await socket.recv()
    assert isinstance(frame, str)
    return json.loads(frame)


async def say(socket: ClientConnection, room: str, id: str, type: str, payload: Any) -> None:
    await socket.send(json.dumps(envelope(id, room, type, payload, "alice")))


@proves("PVP-19.1-1", "OPEN-35")
async def test_each_frame_is_one_envelope_and_the_echo_has_a_place(
    open_hall: ServerProcess,
    room: str,
) -> None:
    async with alice(open_hall) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        created, announced = await hear(socket), await hear(socket)

    assert (created["id"], created["type"], created["seq"]) == ("c", "session.create", 1)
    assert (announced["type"], announced["sender"], announced["seq"]) == (
        "participant.announce",
        "system",
        2,
    )


async def test_a_create_and_a_join_may_be_sent_at_once(open_hall: ServerProcess, room: str) -> None:
    async with alice(open_hall) as socket:
        await say(socket, room, "c", "session.create", CREATE)
        await say(socket, room, "j", "session.join", JOIN)
        await say(socket, room, "p", "presence.update", {**PRESENT, "status": "idle"})
        heard = [await hear(socket) for _ in range(5)]

    assert [said["seq"] for said in heard] == [1, 2, 3, 4, 5]
    assert [said["type"] for said in heard] == [
        "session.create",
        "participant.announce",
        "session.join",
        "participant.announce",
        "presence.update",
    ]
    assert heard[3]["payload"]["roles"] == ["admin", "driver"]


PRESENT = {"participant": "alice", "status": "active", "last_active": "2026-01-30T20:00:00.000Z"}


@proves("OPEN-36")
async def test_the_same_message_again_has_one_effect_and_one_outcome(
    open_hall: ServerProcess,
    room: str,
) -> None:
    async with alice(open_hall) as socket:
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
async def test_what_is_not_understood_is_answered_and_the_connection_stays(
    open_hall: ServerProcess, room: str, frame: Any, related: str | None
) -> None:
    async with alice(open_hall) as socket:
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
async def test_the_subprotocol_is_taken_where_it_is_offered(
    open_hall: ServerProcess, room: str, offered: list[Subprotocol] | None, chosen: str | None
) -> None:
    async with alice(open_hall, subprotocols=offered) as socket:
        assert socket.subprotocol == chosen


@proves("OPEN-51")
async def test_frames_are_text_and_of_a_size(open_hall: ServerProcess, room: str) -> None:
    async with alice(open_hall) as socket:
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

    assert [said["payload"]["code"] for said in (binary, several, large)] == [
        "INVALID_MESSAGE",
        "INVALID_MESSAGE",
        "CONTEXT_TOO_LARGE",
    ]
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@proves("OPEN-49")
async def test_a_stranger_learns_of_no_session(open_hall: ServerProcess, room: str) -> None:
    async with alice(open_hall) as socket, alice(open_hall) as stranger:
        await say(socket, room, "c", "session.create", CREATE)
        await hear(socket)
        answers = []
        for session in (room, "nowhere"):
            said = envelope("p", session, "presence.update", {**PRESENT, "participant": "eve"})
            await stranger.send(json.dumps({**said, "sender": "eve"}))
            answers.append((await hear(stranger))["payload"])

    assert [answer["code"] for answer in answers] == ["SESSION_NOT_FOUND"] * 2
    assert not any(answer["recoverable"] for answer in answers)
