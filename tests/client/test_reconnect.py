"""A server that is killed, stopped or slow costs time, and nothing else."""

import asyncio

import pytest

from accord.client import Client, ServerRefused
from accord.client.backoff import Retry
from accord.core.room.presence import PresenceUpdate
from accord.core.room.prompts import PromptSubmit
from accord.core.room.state import Presence
from accord.core.room.streams import ResponseChunk
from tests.client.people import a_room, client
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess
from tests.spec import proves


def prompt(content: str) -> PromptSubmit:
    return PromptSubmit(content, "claude", ("alice",), ())


def prompts(ear: Ear) -> list[str]:
    """What was asked, as this ear heard it."""
    return [each.body.content for each in ear.heard if isinstance(each.body, PromptSubmit)]


@proves("PVP-19.1-2", "PVP-19.1-3", "PVP-19.5-1", "PVP-19.5-2", "OPEN-36")
@pytest.mark.parametrize("killed_at", [0, 1, 150, 299])
async def test_a_kill_with_messages_in_flight_loses_and_repeats_nothing(
    server: ServerProcess, killed_at: int
) -> None:
    wanted = [str(number) for number in range(300)]
    async with a_room(server) as room:
        answers = [room.alice.say(prompt(text)) for text in wanted]
        await answers[killed_at]
        await asyncio.to_thread(server.restart)
        accepted = await asyncio.gather(*answers)

        assert [each.seq for each in accepted] == sorted({each.seq for each in accepted})
        for ear in (room.hers, room.his, room.its):
            await ear.until_seq(accepted[-1].seq)
            assert prompts(ear) == wanted


async def test_kill_after_kill(server: ServerProcess) -> None:
    wanted = [str(number) for number in range(500)]
    async with a_room(server) as room:
        answers = [room.alice.say(prompt(text)) for text in wanted]
        for _ in range(4):
            await asyncio.to_thread(server.restart)
        last = (await asyncio.gather(*answers))[-1].seq

        for ear in (room.hers, room.his, room.its):
            await ear.until_seq(last)
            assert prompts(ear) == wanted


@proves("PVP-19.1-3")
async def test_a_restart_in_the_middle_of_an_answer(server: ServerProcess) -> None:
    bits = [f"{number} " for number in range(400)]
    async with a_room(server) as room:
        asked = await room.alice.prompt("Count", "claude")
        async with room.claude.respond(asked) as out:
            for bit in bits[:200]:
                await out.write(bit)
            restarting = asyncio.create_task(asyncio.to_thread(server.restart))
            for bit in bits[200:]:
                await out.write(bit)
            await restarting
        end = await room.hers.until(lambda said: said.type == "response.end")

        text = [each.body.text for each in room.hers.heard if isinstance(each.body, ResponseChunk)]
        assert "".join(text) == "".join(bits)
        assert end.ref == out.id


async def test_a_stop_in_the_middle_of_an_answer(server: ServerProcess) -> None:
    """What the stopping server does not take any more is said to the next one, in order."""
    bits = [f"{number} " for number in range(2000)]

    def stop_and_start() -> None:
        server.stop()
        server.start()

    async with a_room(server) as room:
        asked = await room.alice.prompt("Count", "claude")
        async with room.claude.respond(asked) as out:
            stopping = asyncio.create_task(asyncio.to_thread(stop_and_start))
            for bit in bits:
                await out.write(bit)
            await stopping
        await room.hers.until(lambda said: said.type == "response.end")

        text = [each.body.text for each in room.hers.heard if isinstance(each.body, ResponseChunk)]
        assert "".join(text) == "".join(bits)


async def test_a_server_that_is_stopped_says_so_and_is_awaited(server: ServerProcess) -> None:
    async with a_room(server) as room:
        await asyncio.to_thread(server.stop)
        lost = await room.hers.until(lambda said: said.type == "error")
        sending = asyncio.create_task(room.alice.prompt("Still there?", "claude"))
        await asyncio.to_thread(server.start)

        await room.its.until(lambda said: isinstance(said.body, PromptSubmit))
        assert "the server stops" in lost.body.message  # type: ignore[attr-defined]
        assert await sending in {said.id for said in room.hers.heard}


@proves("OPEN-31")
async def test_open_gates_and_members_outlive_a_kill(server: ServerProcess) -> None:
    async with a_room(server) as room:
        proposal = await room.claude.propose("sh", {"command": ["ls"]}, category="shell_execute")
        async with client(server, "bob") as reader:
            before = (await reader.session(room.alice.id)).gates
            await asyncio.to_thread(server.restart)
            after = await reader.session(room.alice.id)
        assert after.gates == before
        assert {member.id for member in after.members} == {"alice", "bob", "claude"}

        await room.bob.approve(proposal)

        assert (await room.claude.decision(proposal)).approved_by == ("bob",)


class Away:
    """A way to be gone until the test says otherwise."""

    def __init__(self) -> None:
        self.back = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self.back.wait()

    async def go(self, client: Client) -> None:
        """Lose the connection."""
        assert client._link is not None
        assert client._link._socket is not None
        client._link._socket.transport.abort()
        await client._link._socket.wait_closed()


@proves("PVP-19.1-3", "OPEN-37")
@pytest.mark.parametrize("missed", [10, 1500])
async def test_who_was_away_hears_it_all_while_the_room_goes_on(
    server: ServerProcess, missed: int
) -> None:
    """1500 are more than the server has at hand; while it reads them, everybody goes on talking."""
    away = Away()
    async with a_room(server) as room:
        guest = client(server, "olga", retry=Retry(sleep=away.sleep))
        async with guest, Ear(await guest.join(room.alice.id)) as ear:
            await away.go(guest)
            before = [room.alice.say(prompt(f"away {number}")) for number in range(missed)]
            await asyncio.gather(*before)
            at = PresenceUpdate("olga", Presence.IDLE, "2026-01-30T20:00:00.000Z")
            mine = [ear.session.say(at) for _ in range(50)]
            after = [room.alice.say(prompt(f"back {number}")) for number in range(300)]
            away.back.set()
            last = max(each.seq for each in await asyncio.gather(*mine, *after))

            for each in (ear, room.hers):
                await each.until_seq(last)
            ear.check_once_in_order()
            assert prompts(ear) == prompts(room.hers)
            assert len(prompts(ear)) == missed + 300


@proves("OPEN-37")
async def test_what_was_seen_last_may_be_an_open_gate_from_long_ago(server: ServerProcess) -> None:
    away = Away()
    async with a_room(server) as room:
        guest = client(server, "olga", retry=Retry(sleep=away.sleep))
        async with guest, Ear(await guest.join(room.alice.id)) as ear:
            await room.claude.propose("sh", {"command": ["ls"]}, category="shell_execute")
            await ear.until(lambda said: said.type == "gate.request")
            await away.go(guest)
            missed = [room.alice.say(prompt(str(number))) for number in range(1500)]
            last = (await asyncio.gather(*missed))[-1].seq
            away.back.set()

            await ear.until_seq(last)
            ear.check_once_in_order()
            assert prompts(ear) == prompts(room.hers)


async def test_a_session_that_ended_meanwhile_is_heard_to_its_end(server: ServerProcess) -> None:
    away = Away()
    async with a_room(server) as room:
        guest = client(server, "olga", retry=Retry(sleep=away.sleep))
        async with guest, Ear(await guest.join(room.alice.id)) as ear:
            await away.go(guest)
            await room.alice.prompt("Are you there?", "claude")
            await room.alice.end("Nobody was")
            away.back.set()

            heard = await ear.end()
            ear.check_once_in_order()
            assert heard[-1].type == "session.end"
            assert prompts(ear) == ["Are you there?"]


@proves("OPEN-51")
async def test_a_slow_reader_is_cut_off_and_misses_nothing(server: ServerProcess) -> None:
    """OPEN-51: 24 MiB is more than the server keeps for one reader and the sockets hold."""
    text = "x" * (1 << 16)
    async with a_room(server) as room:
        guest = client(server, "olga", inbox=4)
        async with guest:
            slow = await guest.join(room.alice.id)
            asked = await room.alice.prompt("Much, please", "claude")
            async with room.claude.respond(asked) as out:
                for _ in range(384):
                    await out.write(text)
            await room.hers.until(lambda said: said.type == "response.end")

            async with Ear(slow) as ear:
                await ear.until(lambda said: said.type == "response.end")
                ear.check_once_in_order()
                chunks = [each for each in ear.heard if isinstance(each.body, ResponseChunk)]
                assert len(chunks) == 384
    assert '"event": "reader.cut_off", "principal": "olga"' in server.log


async def test_a_session_that_is_gone_is_an_error(server: ServerProcess) -> None:
    async with client(server, "alice") as alice:
        session = await alice.create()
        await asyncio.to_thread(server.kill)
        for file in server.home.glob("accord.db*"):
            file.unlink()
        await asyncio.to_thread(server.start)

        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND"):
            async for _ in session.messages():
                pass
