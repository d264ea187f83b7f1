"""The WebSocket binding, against a real server process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.fuzz.websocket_frames import CLOSE
from tests.helpers.attacks.raw_socket import frame, rest, upgraded
from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

MIB = 1 << 20
TOO_BIG = 1009
POLICY = 1008
GOODBYE = 1012


async def refused(wire: WebSocketClient, frame: str | bytes) -> dict[str, Any]:
    """The error that these bytes earn."""
    await wire.socket.send(frame)
    heard = await wire.receive()
    assert heard["type"] == "error", heard
    return heard


def subprotocol(socket: Any) -> str | None:
    """What the server chose."""
    chosen: str | None = socket.subprotocol
    return chosen


# The wire


@proves("PVP-19.1-1", "PVP-1.2-4")
@pytest.mark.parametrize("path", ["/ws", "/"])
async def test_one_envelope_per_text_frame_on_both_addresses(
    trusting: ServerProcess, path: str
) -> None:
    alice = await WebSocketClient.open(trusting.ws_url.removesuffix("/ws") + path, "alice")

    id = await alice.send("session.create", "new", {"config": SESSION_CONFIG})

    created, announced = await alice.receive(), await alice.receive()
    assert (created["type"], created["id"]) == ("session.create", id)
    assert announced["type"] == "participant.announce"
    await alice.socket.close()


@proves("PVP-21-1", "OPEN-51")
async def test_the_subprotocol_is_accepted_and_not_required(trusting: ServerProcess) -> None:
    with_it = await connect(trusting.ws_url, subprotocols=["pvp.v1"])  # type: ignore[list-item]
    without = await connect(trusting.ws_url)

    assert subprotocol(with_it) == "pvp.v1"
    assert subprotocol(without) is None
    await with_it.close()
    await without.close()


@proves("UNI-10", "OPEN-5", "PVP-6.1-2")
async def test_a_session_without_a_name_gets_a_prefixed_ulid(trusting: ServerProcess) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")

    made = await alice.create("")

    prefix, _, body = made.partition("_")
    assert prefix == "ses"
    assert len(body) == 26
    assert set(body) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    await alice.socket.close()


@proves("OPEN-51", "OPEN-49", "PVP-17-12")
@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"\x00\x01", "binary"),
        ("", "Not a PVP envelope"),
        ("null", "Not a PVP envelope"),
        ("{}{}", "Not a PVP envelope"),
        ("[" * 100_000, "Not a PVP envelope"),
        ('{"v":2}', "Not a PVP envelope"),
    ],
)
async def test_nonsense_is_answered_and_the_connection_goes_on(
    trusting: ServerProcess, frame: str | bytes, says: str
) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")

    heard = await refused(alice, frame)

    assert heard["payload"]["code"] == "INVALID_MESSAGE"
    assert says in heard["payload"]["message"]
    assert heard["session"] == ""
    assert "related_to" not in heard["payload"]
    assert await alice.create()
    await alice.socket.close()


@proves("OPEN-51")
async def test_a_message_over_its_limit_is_refused_and_a_frame_over_its_limit_ends_it(
    trusting: ServerProcess,
) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")

    heard = await refused(alice, json.dumps({"text": "x" * (2 * MIB)}))
    await alice.socket.send("x" * (5 * MIB))

    assert heard["payload"]["code"] == "CONTEXT_TOO_LARGE"
    assert (await alice.wait_closed())[0] == TOO_BIG


async def test_a_message_may_come_in_fragments(trusting: ServerProcess) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")
    whole = json.dumps(
        {
            "v": 1,
            "id": "fragmented",
            "ts": "2026-01-30T20:00:00Z",
            "session": "new",
            "sender": "alice",
            "type": "session.create",
            "payload": {"config": SESSION_CONFIG},
        }
    )

    await alice.socket.send([whole[:10], whole[10:200], whole[200:]])

    assert (await alice.receive())["id"] == "fragmented"
    await alice.socket.close()


@pytest.mark.parametrize("keys", ["a", "ab", "abc"])
async def test_the_last_words_before_a_goodbye_are_heard(
    trusting: ServerProcess, keys: str
) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")
    session = await alice.create()
    notes = [{"key": key, "content_type": "text", "content": "Bye"} for key in keys]
    last = [envelope("context.add", session, "bob", each) for each in notes]

    with upgraded(trusting) as bob:
        joins = envelope("session.join", session, "bob", join_payload("bob"))
        bob.sendall(frame(json.dumps(joins).encode()))
        await alice.receive_until("session.join")
        # In one go, as a client does that says the last of it and goes.
        bob.sendall(b"".join(frame(json.dumps(each).encode()) for each in last) + frame(b"", CLOSE))
        heard = [await alice.receive_until("context.add") for _ in notes]
        ended = rest(bob)

    assert [each["payload"]["key"] for each in heard] == list(keys)
    assert ended.endswith(b"\x88\x02\x03\xe8"), "and the goodbye is answered"
    await alice.socket.close()


async def test_other_paths_do_not_speak_pvp(trusting: ServerProcess) -> None:
    with pytest.raises(InvalidStatus, match="404"):
        await connect(trusting.ws_url + "/elsewhere")


@proves("PVP-1.3-1")
async def test_what_tools_are_called_and_take_is_no_affair_of_the_protocol(
    trusting: ServerProcess,
) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")
    session = await alice.create(require_approval_for=[])
    robot = await WebSocketClient.open(trusting.ws_url, "robot")
    await robot.join(session, "agent")
    proposal = {
        "tool_name": "brew-coffee",
        "arguments": {"cups": [1, {"milk": None}], "ünïcode": "☕"},
        "agent": "robot",
        "risk_level": "low",
        "description": "Coffee",
        "requires_approval": False,
        "category": "external_api",
    }

    await robot.send("tool.propose", session, proposal)

    assert (await alice.receive_until("tool.propose"))["payload"] == proposal
    await alice.socket.close()
    await robot.socket.close()


@proves("PVP-3.1-1", "PVP-3.2-1", "PVP-3.2-2", "PVP-4.2-5")
async def test_the_server_owns_sessions_routing_and_gates(trusting: ServerProcess) -> None:
    """What a client claims to have done is nothing until the server says so."""
    alice = await WebSocketClient.open(trusting.ws_url, "alice")
    session, elsewhere = await alice.create(), await alice.create()
    robot = await WebSocketClient.open(trusting.ws_url, "robot")
    await robot.join(session, "agent")
    await robot.receive_until("participant.announce", id="robot")
    stranger = await WebSocketClient.open(trusting.ws_url, "stranger")
    await stranger.join(elsewhere)
    await stranger.receive_until("participant.announce", id="stranger")

    proposal = await robot.send(
        "tool.propose",
        session,
        {
            "tool_name": "shell",
            "arguments": {"command": ["true"]},
            "agent": "robot",
            "risk_level": "low",
            "description": "Nothing",
            "requires_approval": False,
            "category": "shell_execute",
        },
    )
    own_word = {"tool_proposal": proposal, "approved_by": ["alice"]}
    await robot.send("tool.execute", session, own_word)

    gate = await alice.receive_until("gate.request")
    assert (gate["sender"], gate["payload"]["action_ref"]) == ("system", proposal)
    assert (await robot.receive_until("error"))["payload"]["code"] == "INVALID_STATE"
    await stranger.send("session.leave", elsewhere, {})
    heard = [await stranger.receive()]
    assert {each["session"] for each in heard} == {elsewhere}
    for wire in (alice, robot, stranger):
        await wire.socket.close()


# Who is there


@proves("PVP-20.1-1", "OPEN-11")
async def test_a_token_comes_in_the_header_the_subprotocol_or_the_join(
    signed: ServerProcess,
) -> None:
    token = signed.issue_token("alice", roles=["admin"])
    alice = await WebSocketClient.open(signed.ws_url, "alice", token)
    session = await alice.create()
    bob_token = signed.issue_token("bob", roles=["driver"])
    bob = await WebSocketClient.open(
        signed.ws_url, "bob", subprotocols=["pvp.v1", f"bearer.{bob_token}"]
    )
    carol = await WebSocketClient.open(signed.ws_url, "carol")

    await bob.join(session)
    await carol.join(session, token=signed.issue_token("carol", roles=["driver"]))

    assert await bob.receive_until("participant.announce", id="bob")
    assert await carol.receive_until("participant.announce", id="carol")
    assert subprotocol(bob.socket) == "pvp.v1"
    for wire in (alice, bob, carol):
        await wire.socket.close()


@proves("PVP-20.1-1")
@pytest.mark.parametrize("token", ["nonsense", "e30.e30.", "a.b.c"])
async def test_a_bad_token_is_refused_at_the_door(signed: ServerProcess, token: str) -> None:
    with pytest.raises(InvalidStatus, match="401"):
        await WebSocketClient.open(signed.ws_url, "alice", token)


async def test_without_a_token_nothing_but_a_join_with_one_is_heard(
    signed: ServerProcess,
) -> None:
    nobody = await WebSocketClient.open(signed.ws_url, "nobody")

    await nobody.send("session.create", "new", {"config": SESSION_CONFIG})
    heard = await nobody.receive()

    assert heard["payload"]["code"] == "UNAUTHORIZED"
    await nobody.socket.close()


@proves("OPEN-11", "UNI-1")
@pytest.mark.parametrize("pretended", ["bob", "system", "system:timer"])
async def test_nobody_speaks_for_another(signed: ServerProcess, pretended: str) -> None:
    alice = await WebSocketClient.open(
        signed.ws_url, pretended, signed.issue_token("alice", roles=["admin"])
    )

    await alice.send("session.create", "new", {"config": SESSION_CONFIG})
    heard = await alice.receive()

    assert heard["payload"]["code"] == "UNAUTHORIZED"
    assert "alice" in heard["payload"]["message"]
    await alice.socket.close()


async def test_a_revoked_token_ends_its_connections_and_opens_none(
    signed: ServerProcess,
) -> None:
    made = signed.admin_request(
        "POST", "/admin/tokens", {"id": "eve", "type": "human", "roles": ["driver"]}
    )
    eve = await WebSocketClient.open(signed.ws_url, "eve", made["token"])

    signed.admin_request("DELETE", f"/admin/tokens/{made['claims']['jti']}")

    code, reason = await eve.wait_closed()
    assert code == POLICY
    assert "revoked" in reason
    with pytest.raises(InvalidStatus, match="401"):
        await WebSocketClient.open(signed.ws_url, "eve", made["token"])


@proves("OPEN-29")
async def test_on_trust_a_seat_is_taken_once(trusting: ServerProcess) -> None:
    alice = await WebSocketClient.open(trusting.ws_url, "alice")
    session = await alice.create()
    bob = await WebSocketClient.open(trusting.ws_url, "bob")
    await bob.join(session)
    await bob.receive_until("participant.announce", id="bob")
    thief = await WebSocketClient.open(trusting.ws_url, "bob")

    await thief.join(session)
    heard = await thief.receive()
    await bob.socket.close()
    await alice.receive_until("presence.update", participant="bob", status="disconnected")
    await thief.join(session)

    assert heard["payload"]["code"] == "UNAUTHORIZED"
    assert await thief.receive_until("participant.announce", id="bob")
    await alice.socket.close()
    await thief.socket.close()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_page_of_another_site_may_not_connect(trusting: ServerProcess, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        await connect(trusting.ws_url, origin=origin)  # type: ignore[arg-type]


async def test_on_trust_a_foreign_host_name_may_not_connect(trusting: ServerProcess) -> None:
    """A name that an attacker points at this machine (DNS rebinding)."""
    with pytest.raises(InvalidStatus, match="403"):
        await WebSocketClient.open(trusting.ws_url, headers={"Host": "evil.example"})


# Coming to an end


async def test_a_stopping_server_says_goodbye(tmp_path: Path) -> None:
    with run_server(tmp_path, "open") as server:
        alice = await WebSocketClient.open(server.ws_url, "alice")
        await alice.create()

        await asyncio.to_thread(server.stop)

        assert (await alice.wait_closed())[0] == GOODBYE
