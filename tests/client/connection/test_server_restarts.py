"""A killed, stopped or slow server delays messages but loses none."""

import asyncio
from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection

from accord.client import Client, GateCard, ServerRefused
from accord.client.connection import reconnect
from accord.client.connection.backoff import RetryPolicy
from accord.client.connection.websocket import open_websocket
from accord.client.identity import Identity, ServerAddress
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves


def prompt(content: str) -> PromptSubmit:
    return PromptSubmit(content, "claude", ("alice",), ())


def prompts(listener: RecordingListener) -> list[str]:
    """The contents of the prompts that a listener received, in order."""
    return [item.body.content for item in listener.received if isinstance(item.body, PromptSubmit)]


@proves("PVP-19.1-2", "PVP-19.1-3", "PVP-19.5-1", "PVP-19.5-2", "OPEN-36")
@pytest.mark.parametrize("killed_at", [0, 1, 150, 299])
async def test_killed_server_loses_and_repeats_no_message_in_flight(
    server: ServerProcess, killed_at: int
) -> None:
    wanted = [str(number) for number in range(300)]
    async with open_session(server) as room:
        answers = [room.alice.say(prompt(text)) for text in wanted]
        await answers[killed_at]
        await asyncio.to_thread(server.restart)
        accepted = await asyncio.gather(*answers)

        assert [item.seq for item in accepted] == sorted({item.seq for item in accepted})
        for listener in (room.alice_listener, room.bob_listener, room.claude_listener):
            await listener.wait_for_seq(accepted[-1].seq)
            assert prompts(listener) == wanted


async def test_messages_survive_repeated_server_kills(server: ServerProcess) -> None:
    wanted = [str(number) for number in range(500)]
    async with open_session(server) as room:
        answers = [room.alice.say(prompt(text)) for text in wanted]
        for _ in range(4):
            await asyncio.to_thread(server.restart)
        last = (await asyncio.gather(*answers))[-1].seq

        for listener in (room.alice_listener, room.bob_listener, room.claude_listener):
            await listener.wait_for_seq(last)
            assert prompts(listener) == wanted


@proves("PVP-19.1-3")
async def test_response_continues_after_the_server_is_killed(server: ServerProcess) -> None:
    bits = [f"{number} " for number in range(400)]
    async with open_session(server) as room:
        asked = await room.alice.prompt("Count", "claude")
        async with room.claude.respond(asked) as out:
            for bit in bits[:200]:
                await out.write(bit)
            restarting = asyncio.create_task(asyncio.to_thread(server.restart))
            for bit in bits[200:]:
                await out.write(bit)
            await restarting
        end = await room.alice_listener.wait_for(lambda message: message.type == "response.end")

        text = [
            item.body.text
            for item in room.alice_listener.received
            if isinstance(item.body, ResponseChunk)
        ]
        assert "".join(text) == "".join(bits)
        assert end.ref == out.id


async def test_response_continues_after_the_server_is_stopped(server: ServerProcess) -> None:
    """Messages that the stopping server no longer accepts are sent to the next one, in order."""
    bits = [f"{number} " for number in range(2000)]

    def stop_and_start() -> None:
        server.stop()
        server.start()

    async with open_session(server) as room:
        asked = await room.alice.prompt("Count", "claude")
        async with room.claude.respond(asked) as out:
            stopping = asyncio.create_task(asyncio.to_thread(stop_and_start))
            for bit in bits:
                await out.write(bit)
            await stopping
        await room.alice_listener.wait_for(lambda message: message.type == "response.end")

        text = [
            item.body.text
            for item in room.alice_listener.received
            if isinstance(item.body, ResponseChunk)
        ]
        assert "".join(text) == "".join(bits)


async def test_client_reports_a_stopped_server_and_reconnects(server: ServerProcess) -> None:
    async with open_session(server) as room:
        await asyncio.to_thread(server.stop)
        lost = await room.alice_listener.wait_for(lambda message: message.type == "error")
        sending = asyncio.create_task(room.alice.prompt("Still there?", "claude"))
        await asyncio.to_thread(server.start)

        await room.claude_listener.wait_for(lambda message: isinstance(message.body, PromptSubmit))
        assert "the server is stopping" in lost.body.message  # type: ignore[attr-defined]
        assert await sending in {message.id for message in room.alice_listener.received}


@proves("OPEN-31")
def without_presence(gates: Iterable[GateCard]) -> list[GateCard]:
    """Gates without who is connected, which a restart changes."""
    return [replace(gate, presences={}) for gate in gates]


async def test_open_gates_and_members_survive_a_server_kill(server: ServerProcess) -> None:
    async with open_session(server) as room:
        proposal = await room.claude.propose("sh", {"command": ["ls"]}, category="shell_execute")
        async with make_client(server, "bob") as reader:
            before = (await reader.session(room.alice.id)).gates
            await asyncio.to_thread(server.restart)
            after = await reader.session(room.alice.id)
        assert without_presence(after.gates) == without_presence(before)
        assert {member.id for member in after.members} == {"alice", "bob", "claude"}

        await room.bob.approve(proposal)

        assert (await room.claude.decision(proposal)).approved_by == ("bob",)


# The newest connection of each runtime.
OPEN_SOCKETS: dict[str, ClientConnection] = {}


@pytest.fixture(autouse=True)
def record_open_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_and_record(
        address: ServerAddress, identity: Identity, runtime: str
    ) -> ClientConnection:
        OPEN_SOCKETS[runtime] = await open_websocket(address, identity, runtime)
        return OPEN_SOCKETS[runtime]

    monkeypatch.setattr(reconnect, "open_websocket", open_and_record)


class DisconnectDuringSleep:
    """A retry policy's sleep that keeps a client offline until the test sets `back`."""

    def __init__(self) -> None:
        self.back = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self.back.wait()

    async def go(self, client: Client) -> None:
        """Abort the client's connection."""
        socket = OPEN_SOCKETS[client.runtime]
        socket.transport.abort()
        await socket.wait_closed()


@proves("PVP-19.1-3", "OPEN-37")
@pytest.mark.parametrize("missed", [10, 1500])
async def test_reconnected_client_catches_up_while_others_keep_sending(
    server: ServerProcess, missed: int
) -> None:
    """1500 messages exceed the server's cache; others keep sending while it reads the log."""
    away = DisconnectDuringSleep()
    async with open_session(server) as room:
        client = make_client(server, "olga", retry=RetryPolicy(sleep=away.sleep))
        async with client, RecordingListener(await client.join(room.alice.id)) as listener:
            await away.go(client)
            before = [room.alice.say(prompt(f"away {number}")) for number in range(missed)]
            await asyncio.gather(*before)
            at = PresenceUpdate("olga", Presence.IDLE, "2026-01-30T20:00:00.000Z")
            mine = [listener.session.say(at) for _ in range(50)]
            after = [room.alice.say(prompt(f"back {number}")) for number in range(300)]
            away.back.set()
            last = max(item.seq for item in await asyncio.gather(*mine, *after))

            for item in (listener, room.alice_listener):
                await item.wait_for_seq(last)
            listener.check_once_in_order()
            assert prompts(listener) == prompts(room.alice_listener)
            assert len(prompts(listener)) == missed + 300


@proves("OPEN-37")
async def test_rejoin_works_when_the_last_seen_message_is_an_old_gate(
    server: ServerProcess,
) -> None:
    away = DisconnectDuringSleep()
    async with open_session(server) as room:
        client = make_client(server, "olga", retry=RetryPolicy(sleep=away.sleep))
        async with client, RecordingListener(await client.join(room.alice.id)) as listener:
            await room.claude.propose("sh", {"command": ["ls"]}, category="shell_execute")
            await listener.wait_for(lambda message: message.type == "gate.request")
            await away.go(client)
            missed = [room.alice.say(prompt(str(number))) for number in range(1500)]
            last = (await asyncio.gather(*missed))[-1].seq
            away.back.set()

            await listener.wait_for_seq(last)
            listener.check_once_in_order()
            assert prompts(listener) == prompts(room.alice_listener)


async def test_session_that_ended_while_offline_is_read_to_its_end(server: ServerProcess) -> None:
    away = DisconnectDuringSleep()
    async with open_session(server) as room:
        client = make_client(server, "olga", retry=RetryPolicy(sleep=away.sleep))
        async with client, RecordingListener(await client.join(room.alice.id)) as listener:
            await away.go(client)
            await room.alice.prompt("Are you there?", "claude")
            await room.alice.end("Nobody was")
            away.back.set()

            received = await listener.wait_for_end()
            listener.check_once_in_order()
            assert received[-1].type == "session.end"
            assert prompts(listener) == ["Are you there?"]


@proves("OPEN-51")
async def test_slow_reader_is_disconnected_and_misses_nothing(server: ServerProcess) -> None:
    """OPEN-51: 24 MiB is more than the server's queue for a reader plus the socket buffers."""
    text = "x" * (1 << 16)
    async with open_session(server) as room:
        client = make_client(server, "olga", inbox=4)
        async with client:
            slow = await client.join(room.alice.id)
            asked = await room.alice.prompt("Much, please", "claude")
            async with room.claude.respond(asked) as out:
                for _ in range(384):
                    await out.write(text)
            await room.alice_listener.wait_for(lambda message: message.type == "response.end")

            async with RecordingListener(slow) as listener:
                await listener.wait_for(lambda message: message.type == "response.end")
                listener.check_once_in_order()
                chunks = [
                    item for item in listener.received if isinstance(item.body, ResponseChunk)
                ]
                assert len(chunks) == 384
    assert '"event": "reader.cut_off", "principal": "olga"' in server.log


async def test_rejoining_a_deleted_session_raises(server: ServerProcess) -> None:
    async with make_client(server, "alice") as alice:
        session = await alice.create()
        await asyncio.to_thread(server.kill)
        for file in server.home.glob("accord.db*"):
            file.unlink()
        await asyncio.to_thread(server.start)

        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND"):
            async for _ in session.messages():
                pass
