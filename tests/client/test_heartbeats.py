"""Signs of life: the client gives them by itself, and silence is noticed."""

from accord.client import Envelope, usual_config
from accord.core.room.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.client.people import a_room, client
from tests.client.scripted import Guest, guest, scripted
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess
from tests.helpers.wire import Wire
from tests.spec import proves

# A server that is held up for longer than from one to the other finds nobody idle.
FAST = {"heartbeat_interval_seconds": 1, "idle_timeout_seconds": 3, "away_timeout_seconds": 9}
END = {"reason": "Done", "final_state": "completed"}


def changes(heard: list[Envelope]) -> list[tuple[str, Presence]]:
    """Who became what."""
    bodies = (each.body for each in heard)
    return [(b.participant, b.status) for b in bodies if isinstance(b, PresenceUpdate)]


@proves("PVP-8.1-2")
async def test_a_ping_is_answered_at_once_and_no_reader_hears_of_it() -> None:
    answers = []

    async def script(guest: Guest) -> None:
        await guest.let_in()
        await guest.say(id="ping-1", type="heartbeat.ping", payload={})
        answers.append(await guest.hear())
        await guest.say(id="end", seq=2, type="session.end", payload=END)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        heard = [each.type async for each in session.messages()]

    [pong] = answers
    assert (pong["type"], pong["payload"], pong["ref"]) == ("heartbeat.pong", {}, "ping-1")
    assert heard == ["session.join", "session.end"]


async def test_a_ping_of_ones_own_waits_for_the_pong(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        assert 0 < await room.bob.ping() < 30
        await room.alice.end("Done")
        heard = await room.his.end()

    assert not any(isinstance(each.body, HeartbeatPing | HeartbeatPong) for each in heard)


@proves("PVP-8.1-1", "PVP-8.1-2")
async def test_who_answers_stays_and_who_is_silent_becomes_idle_then_away(
    hall: ServerProcess,
) -> None:
    async with client(hall, "alice") as hers:
        alice = await hers.create(usual_config(**FAST))
        token = hall.issue("bob", "human", ("driver",))
        silent = await Wire.open(hall.ws_url, "bob", token)
        async with Ear(alice) as ear:
            await silent.join(alice.id)
            pings = [await silent.hear_until("heartbeat.ping") for _ in range(2)]
            await ear.until(lambda each: ("bob", Presence.AWAY) in changes([each]))
            await silent.say("heartbeat.pong", alice.id, {})
            back = await ear.until(lambda each: ("bob", Presence.ACTIVE) in changes([each]))
            heard = ear.heard[: ear.heard.index(back) + 1]
        await silent.socket.close()

    assert [ping["payload"] for ping in pings] == [{}, {}]
    assert pings[0]["id"] != pings[1]["id"]
    assert ("alice", Presence.AWAY) not in changes(heard)
    assert [change for change in changes(heard) if change[0] == "bob"] == [
        ("bob", Presence.IDLE),
        ("bob", Presence.AWAY),
        ("bob", Presence.ACTIVE),
    ]
