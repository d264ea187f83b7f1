"""Several connections of one member, and which of them replaces which."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from accord.client import Client, Envelope, Replaced, ServerRefused, SignedOut
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.clients.three_member_session import (
    CLIENT_ROLES,
    FAST_RETRY,
    make_client,
    open_session,
)
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves


def is_gone(who: str) -> Any:
    """A predicate for the message that a member is disconnected."""

    def says(message: Envelope) -> bool:
        body = message.body
        return isinstance(body, PresenceUpdate) and (body.participant, body.status) == (
            who,
            "disconnected",
        )

    return says


def client_options(server: ServerProcess, id: str, **options: Any) -> dict[str, Any]:
    """Options shared by all clients of one member."""
    kind, roles = CLIENT_ROLES[id]
    return {
        "url": server.url,
        "token": server.issue_token(id, kind, roles),
        "retry": FAST_RETRY,
        **options,
    }


@proves("OPEN-29", "OPEN-32")
async def test_all_connections_of_a_member_receive_everything_and_one_may_close(
    shared_server: ServerProcess,
) -> None:
    desk, phone = client_options(shared_server, "olga"), client_options(shared_server, "olga")
    async with open_session(shared_server) as room:
        async with (
            Client(**phone) as there,
            RecordingListener(await there.join(room.alice.id)) as phone_ear,
        ):
            async with (
                Client(**desk) as here,
                RecordingListener(await here.join(room.alice.id)) as desk_ear,
            ):
                asked = await room.alice.prompt("Both?", "claude")
                for listener in (desk_ear, phone_ear):
                    await listener.wait_for(lambda message: message.id == asked)
            members = (await there.session(room.alice.id)).members
            assert [item.id for item in members].count("olga") == 1

            asked = await room.alice.prompt("Still?", "claude")
            await phone_ear.wait_for(lambda message: message.id == asked)
            await room.bob_listener.wait_for(lambda message: message.id == asked)
            assert not [
                message for message in room.bob_listener.received if is_gone("olga")(message)
            ]
        await room.bob_listener.wait_for(is_gone("olga"))


@proves("PVP-19.5-3")
async def test_leaving_ends_all_connections_of_a_member(shared_server: ServerProcess) -> None:
    async with (
        open_session(shared_server) as room,
        Client(**client_options(shared_server, "olga")) as one,
        Client(**client_options(shared_server, "olga")) as two,
    ):
        first, second = await one.join(room.alice.id), await two.join(room.alice.id)
        await first.leave("Tea")

        for session in (first, second):
            received = [message async for message in session.messages()]
            assert isinstance(received[-1].body, SessionLeave)
        await room.bob_listener.wait_for(lambda message: message.type == "session.leave")
        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await two.post(room.alice.id, SessionLeave())

        await one.join(room.alice.id)


@proves("OPEN-29")
async def test_new_connection_of_a_runtime_replaces_the_old_one_once(
    shared_server: ServerProcess,
) -> None:
    desk = client_options(shared_server, "olga", runtime="desk")
    async with open_session(shared_server) as room, Client(**desk) as old:
        before = await old.join(room.alice.id)
        async with (
            Client(**desk) as new,
            RecordingListener(await new.join(room.alice.id)) as listener,
        ):
            with pytest.raises(Replaced, match="newer connection"):
                async for _ in before.messages():
                    pass
            with pytest.raises(Replaced):
                await old.join(room.alice.id)

            asked = await room.alice.prompt("Who is it?", "claude")
            await listener.wait_for(lambda message: message.id == asked)
            assert not [
                message for message in room.bob_listener.received if is_gone("olga")(message)
            ]


async def test_reconnect_replaces_a_hanging_connection(
    shared_server: ServerProcess,
) -> None:
    """The server still believes the old connection is alive, but must admit the new one."""
    desk = client_options(shared_server, "olga", runtime="desk")
    headers = {"Authorization": f"Bearer {desk['token']}"}
    async with open_session(shared_server) as room:
        session = room.alice.id
        async with connect(
            f"{shared_server.ws_url}?runtime=desk", additional_headers=headers, proxy=None
        ) as hangs:
            who = {"id": "olga", "name": "Olga", "type": "human", "roles": ["observer"]}
            join = {"participant": {**who, "transport": "websocket"}, "supported_versions": [1]}
            await hangs.send(json.dumps(envelope("j", session, "session.join", join)))
            await hangs.recv()
            async with (
                Client(**desk) as new,
                RecordingListener(await new.join(session)) as listener,
            ):
                with pytest.raises(ConnectionClosed, match="replaced by a newer connection"):
                    await read_until_closed(hangs)
                asked = await room.alice.prompt("You?", "claude")
                await listener.wait_for(lambda message: message.id == asked)


async def read_until_closed(socket: ClientConnection) -> None:
    """Read frames until the connection is closed."""
    while True:
        await socket.recv()


def envelope(id: str, session: str, type: str, payload: Any, sender: str = "olga") -> Any:
    """An envelope to send without a client."""
    ts = "2026-01-30T20:00:00.000Z"
    return {
        "v": 1,
        "id": id,
        "ts": ts,
        "session": session,
        "sender": sender,
        "type": type,
        "payload": payload,
    }


@proves("OPEN-29")
async def test_open_server_admits_an_id_once(shared_open_server: ServerProcess) -> None:
    url = shared_open_server.url
    async with Client(url, id="alice", retry=FAST_RETRY) as alice:
        session = await alice.create()
        async with Client(url, id="alice", retry=FAST_RETRY) as thief:
            with pytest.raises(ServerRefused, match="connects once") as refusal:
                await thief.join(session.id)
            assert refusal.value.code == "UNAUTHORIZED"
        async with RecordingListener(session) as listener:
            await session.presence("idle")
            await listener.wait_for(lambda message: message.type == "presence.update")
    async with (
        Client(url, id="alice", retry=FAST_RETRY) as herself,
        RecordingListener(session) as listener,
    ):
        assert (await herself.join(session.id)).id == session.id


async def test_revoked_token_ends_the_connection_permanently(
    server: ServerProcess,
) -> None:
    async with make_client(server, "alice") as alice:
        session = await alice.create()
        tokens = server.admin_request("GET", "/admin/tokens")["tokens"]
        (jti,) = [item["jti"] for item in tokens if item["id"] == "alice"]
        server.admin_request("DELETE", f"/admin/tokens/{jti}")

        with pytest.raises(SignedOut, match="revoked"):
            async for _ in session.messages():
                pass
    with pytest.raises(SignedOut, match="revoked"):
        async with alice:
            pass


async def test_invalid_token_is_refused(shared_server: ServerProcess) -> None:
    with pytest.raises(SignedOut, match="Tokens must be signed"):
        async with Client(shared_server.url, token="e30.e30.e30", id="alice"):
            pass


@proves("OPEN-30")
async def test_join_replays_members_then_history_then_own_announcement(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        asked = await room.alice.prompt("Before you came", "claude")
        async with (
            make_client(shared_server, "olga") as connection,
            RecordingListener(await connection.join(room.alice.id)) as listener,
        ):
            await listener.wait_for(lambda message: is_announcement(message, "olga"))
            await room.bob_listener.wait_for(lambda message: is_announcement(message, "olga"))

            places = {message.id: place for place, message in enumerate(listener.received)}
            announced = [
                message
                for message in listener.received
                if isinstance(message.body, ParticipantAnnounce)
            ]
            assert [message.body.id for message in announced] == ["alice", "bob", "claude", "olga"]  # type: ignore[attr-defined]
            assert places[announced[2].id] < places[asked] < places[announced[3].id]


def is_announcement(message: Envelope, who: str) -> bool:
    """Whether this is the announcement of that member."""
    return isinstance(message.body, ParticipantAnnounce) and message.body.id == who


@proves("OPEN-30")
async def test_one_connection_carries_several_sessions(server: ServerProcess) -> None:
    async with make_client(server, "alice") as alice:
        sessions = [await alice.create(name=str(number)) for number in range(20)]
        ears = [RecordingListener(session) for session in sessions]
        sent = await asyncio.gather(*(session.presence("idle") for session in sessions))
        await asyncio.to_thread(server.restart)
        await asyncio.gather(*(session.presence("active") for session in sessions))

        for listener, accepted in zip(ears, sent, strict=True):
            await listener.wait_for(lambda message, id=accepted.id: message.id == id)  # type: ignore[misc]
            assert {message.session for message in listener.received} == {listener.session.id}
            listener.check_once_in_order()
        for listener in ears:
            await listener.__aexit__(None, None, None)
