"""Clients answer heartbeats by themselves, and the server notices silence."""

from accord.client import Envelope, default_config
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.scripted_websocket_server import (
    ScriptedConnection,
    make_fast_client,
    run_scripted_server,
)
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

# The gap between the two must exceed any stall of a busy machine, or no member is seen idle.
FAST = {"heartbeat_interval_seconds": 1, "idle_timeout_seconds": 3, "away_timeout_seconds": 9}
END = {"reason": "Done", "final_state": "completed"}


def changes(received: list[Envelope]) -> list[tuple[str, Presence]]:
    """The presence changes in these messages, as (member, presence)."""
    bodies = (item.body for item in received)
    return [(b.participant, b.status) for b in bodies if isinstance(b, PresenceUpdate)]


@proves("PVP-8.1-2")
async def test_ping_is_answered_and_hidden_from_readers() -> None:
    answers = []

    async def script(connection: ScriptedConnection) -> None:
        await connection.accept_join()
        await connection.send(id="ping-1", type="heartbeat.ping", payload={})
        answers.append(await connection.receive())
        await connection.send(id="end", seq=2, type="session.end", payload=END)

    async with run_scripted_server(script) as url, make_fast_client(url) as client:
        session = await client.join("s")
        received = [item.type async for item in session.messages()]

    [pong] = answers
    assert (pong["type"], pong["payload"], pong["ref"]) == ("heartbeat.pong", {}, "ping-1")
    assert received == ["session.join", "session.end"]


async def test_ping_returns_after_the_pong(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        assert 0 < await room.bob.ping() < 30
        await room.alice.end("Done")
        received = await room.bob_listener.wait_for_end()

    assert not any(isinstance(item.body, HeartbeatPing | HeartbeatPong) for item in received)


@proves("PVP-8.1-1", "PVP-8.1-2")
async def test_member_without_heartbeats_becomes_idle_then_away(
    shared_server: ServerProcess,
) -> None:
    async with make_client(shared_server, "alice") as hers:
        alice = await hers.create(default_config(**FAST))
        token = shared_server.issue_token("bob", "human", ("driver",))
        silent = await WebSocketClient.open(shared_server.ws_url, "bob", token)
        async with RecordingListener(alice) as listener:
            await silent.join(alice.id)
            pings = [await silent.receive_until("heartbeat.ping") for _ in range(2)]
            await listener.wait_for(lambda item: ("bob", Presence.AWAY) in changes([item]))
            await silent.send("heartbeat.pong", alice.id, {})
            back = await listener.wait_for(lambda item: ("bob", Presence.ACTIVE) in changes([item]))
            received = listener.received[: listener.received.index(back) + 1]
        await silent.socket.close()

    assert [ping["payload"] for ping in pings] == [{}, {}]
    assert pings[0]["id"] != pings[1]["id"]
    assert ("alice", Presence.AWAY) not in changes(received)
    assert [change for change in changes(received) if change[0] == "bob"] == [
        ("bob", Presence.IDLE),
        ("bob", Presence.AWAY),
        ("bob", Presence.ACTIVE),
    ]
