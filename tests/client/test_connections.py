"""Who is connected how often, and who takes whose place."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from accord.client import Client, Envelope, Replaced, ServerRefused, SignedOut
from accord.core.room.members import SessionLeave
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.presence import PresenceUpdate
from tests.client.people import ROLES, SOON, a_room, client
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess
from tests.spec import proves


def is_gone(who: str) -> Any:
    """Whether a message says that somebody is disconnected."""

    def says(said: Envelope) -> bool:
        body = said.body
        return isinstance(body, PresenceUpdate) and (body.participant, body.status) == (
            who,
            "disconnected",
        )

    return says


def of(server: ServerProcess, id: str, **options: Any) -> dict[str, Any]:
    """What every client of one person shares."""
    kind, roles = ROLES[id]
    return {"url": server.url, "token": server.issue(id, kind, roles), "retry": SOON, **options}


@proves("OPEN-29", "OPEN-32")
async def test_all_connections_of_a_person_hear_everything_and_one_may_go(
    hall: ServerProcess,
) -> None:
    desk, phone = of(hall, "olga"), of(hall, "olga")
    async with a_room(hall) as room:
        async with Client(**phone) as there, Ear(await there.join(room.alice.id)) as phone_ear:
            async with Client(**desk) as here, Ear(await here.join(room.alice.id)) as desk_ear:
                asked = await room.alice.prompt("Both?", "claude")
                for ear in (desk_ear, phone_ear):
                    await ear.until(lambda said: said.id == asked)
            members = (await there.session(room.alice.id)).members
            assert [each.id for each in members].count("olga") == 1

            asked = await room.alice.prompt("Still?", "claude")
            await phone_ear.until(lambda said: said.id == asked)
            await room.his.until(lambda said: said.id == asked)
            assert not [said for said in room.his.heard if is_gone("olga")(said)]
        await room.his.until(is_gone("olga"))


@proves("PVP-19.5-3")
async def test_leaving_is_for_all_connections_of_a_person(hall: ServerProcess) -> None:
    async with (
        a_room(hall) as room,
        Client(**of(hall, "olga")) as one,
        Client(**of(hall, "olga")) as two,
    ):
        first, second = await one.join(room.alice.id), await two.join(room.alice.id)
        await first.leave("Tea")

        for session in (first, second):
            heard = [said async for said in session.messages()]
            assert isinstance(heard[-1].body, SessionLeave)
        await room.his.until(lambda said: said.type == "session.leave")
        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await two.post(room.alice.id, SessionLeave())

        await one.join(room.alice.id)


@proves("OPEN-29")
async def test_a_runtime_that_comes_again_takes_its_own_place_and_there_is_no_war(
    hall: ServerProcess,
) -> None:
    desk = of(hall, "olga", runtime="desk")
    async with a_room(hall) as room, Client(**desk) as old:
        before = await old.join(room.alice.id)
        async with Client(**desk) as new, Ear(await new.join(room.alice.id)) as ear:
            with pytest.raises(Replaced, match="newer connection"):
                async for _ in before.messages():
                    pass
            with pytest.raises(Replaced):
                await old.join(room.alice.id)

            asked = await room.alice.prompt("Who is it?", "claude")
            await ear.until(lambda said: said.id == asked)
            assert not [said for said in room.his.heard if is_gone("olga")(said)]


async def test_a_connection_that_came_back_replaces_the_one_that_hangs(
    hall: ServerProcess,
) -> None:
    """The server has not noticed yet that the old one is dead; the new one is let in anyway."""
    desk = of(hall, "olga", runtime="desk")
    headers = {"Authorization": f"Bearer {desk['token']}"}
    async with a_room(hall) as room:
        session = room.alice.id
        async with connect(
            f"{hall.ws_url}?runtime=desk", additional_headers=headers, proxy=None
        ) as hangs:
            who = {"id": "olga", "name": "Olga", "type": "human", "roles": ["observer"]}
            join = {"participant": {**who, "transport": "websocket"}, "supported_versions": [1]}
            await hangs.send(json.dumps(envelope("j", session, "session.join", join)))
            await hangs.recv()
            async with Client(**desk) as new, Ear(await new.join(session)) as ear:
                with pytest.raises(ConnectionClosed, match="replaced by a newer connection"):
                    await everything(hangs)
                asked = await room.alice.prompt("You?", "claude")
                await ear.until(lambda said: said.id == asked)


async def everything(socket: ClientConnection) -> None:
    """Hear until the end."""
    while True:
        await socket.recv()


def envelope(id: str, session: str, type: str, payload: Any, sender: str = "olga") -> Any:
    """What one sends without a client."""
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
async def test_on_trust_a_seat_is_taken_once(open_hall: ServerProcess) -> None:
    url = open_hall.url
    async with Client(url, id="alice", retry=SOON) as alice:
        session = await alice.create()
        async with Client(url, id="alice", retry=SOON) as thief:
            with pytest.raises(ServerRefused, match="taken once") as no:
                await thief.join(session.id)
            assert no.value.code == "UNAUTHORIZED"
        async with Ear(session) as ear:
            await session.presence("idle")
            await ear.until(lambda said: said.type == "presence.update")
    async with Client(url, id="alice", retry=SOON) as herself, Ear(session) as ear:
        assert (await herself.join(session.id)).id == session.id


async def test_a_token_that_is_revoked_ends_the_connection_for_good(
    server: ServerProcess,
) -> None:
    async with client(server, "alice") as alice:
        session = await alice.create()
        tokens = server.admin("GET", "/admin/tokens")["tokens"]
        (jti,) = [each["jti"] for each in tokens if each["id"] == "alice"]
        server.admin("DELETE", f"/admin/tokens/{jti}")

        with pytest.raises(SignedOut, match="revoked"):
            async for _ in session.messages():
                pass
    with pytest.raises(SignedOut, match="revoked"):
        async with alice:
            pass


async def test_a_token_that_is_none_is_not_taken(hall: ServerProcess) -> None:
    with pytest.raises(SignedOut, match="Tokens are signed"):
        async with Client(hall.url, token="e30.e30.e30", id="alice"):
            pass


@proves("OPEN-30")
async def test_a_joiner_hears_who_is_there_then_what_was_then_its_own_coming(
    hall: ServerProcess,
) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt("Before you came", "claude")
        async with client(hall, "olga") as guest, Ear(await guest.join(room.alice.id)) as ear:
            await ear.until(lambda said: is_announcement(said, "olga"))
            await room.his.until(lambda said: is_announcement(said, "olga"))

            places = {said.id: place for place, said in enumerate(ear.heard)}
            announced = [said for said in ear.heard if isinstance(said.body, ParticipantAnnounce)]
            assert [said.body.id for said in announced] == ["alice", "bob", "claude", "olga"]  # type: ignore[attr-defined]
            assert places[announced[2].id] < places[asked] < places[announced[3].id]


def is_announcement(said: Envelope, who: str) -> bool:
    """Whether this says who somebody is."""
    return isinstance(said.body, ParticipantAnnounce) and said.body.id == who


@proves("OPEN-30")
async def test_any_number_of_sessions_on_one_connection(server: ServerProcess) -> None:
    async with client(server, "alice") as alice:
        sessions = [await alice.create(name=str(number)) for number in range(20)]
        ears = [Ear(session) for session in sessions]
        sent = await asyncio.gather(*(session.presence("idle") for session in sessions))
        await asyncio.to_thread(server.restart)
        await asyncio.gather(*(session.presence("active") for session in sessions))

        for ear, accepted in zip(ears, sent, strict=True):
            await ear.until(lambda said, id=accepted.id: said.id == id)  # type: ignore[misc]
            assert {said.session for said in ear.heard} == {ear.session.id}
            ear.check_once_in_order()
        for ear in ears:
            await ear.__aexit__(None, None, None)
