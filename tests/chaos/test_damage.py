"""Changed bytes of one session on disk: that session is refused, all others keep working."""

import json
import re
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from accord.client import Client, ServerRefused
from accord.core.room.conversation.prompts import PromptSubmit
from tests.chaos.load_clients import people
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.servers.server_process import run_server

FEW, MANY = 30, 1600
HELP = ("accord verify", "accord restore")


async def told(who: dict[str, Client], count: int, word: str) -> str:
    """A room in which much was said; returns its name."""
    session = await who["alice"].create(listen=False)
    await who["claude"].join(session.id, listen=False)
    bodies = (PromptSubmit(f"{word}-{n}", "claude", ("alice",), ()) for n in range(count))
    for answer in [session.say(body) for body in bodies]:
        await answer
    return session.id


def spoil(home: Path, word: bytes) -> int:
    """Change a word wherever it stands in the database; returns how often it did."""
    file = home / "accord.db"
    places = [found.start() for found in re.finditer(re.escape(word), file.read_bytes())]
    with file.open("r+b", buffering=0) as bytes_:  # what else is there may be written meanwhile
        for place in places:
            bytes_.seek(place)
            bytes_.write(word[::-1])
    return len(places)


def verified(home: Path) -> subprocess.CompletedProcess[str]:
    """`accord verify`."""
    command = [sys.executable, "-m", "accord", "verify", "--json", "--data-dir", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


async def refused(client: Client, session: str) -> str:
    """Why one cannot come in, and why one cannot read it either."""
    with pytest.raises(ServerRefused) as no:
        await client.join(session)
    with pytest.raises(ServerRefused) as unread:
        await client.transcript(session)
    assert not no.value.recoverable
    assert no.value.code == unread.value.code == "INTERNAL_ERROR"
    assert f"room/{session}" in unread.value.message
    return no.value.message


def helps(sentence: str, session: str, home: Path) -> None:
    """It says which room, what to do, and nothing of the machine."""
    assert f"room/{session}" in sentence
    assert all(word in sentence for word in HELP)
    assert str(home) not in sentence


async def test_damaged_session_is_refused_and_others_keep_working(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        async with people(server) as who:
            bad, good = await told(who, FEW, "spoilt"), await told(who, FEW, "sound")
        server.stop()
        assert spoil(server.home, b"spoilt-17") == 1

        server.start()
        async with people(server) as who:
            alice = who["alice"]
            helps(await refused(alice, bad), bad, server.home)
            session = await alice.join(good)
            assert await session.prompt("still here", "claude")
            assert [each.id for each in await alice.sessions()] == [good]
        server.stop()

    found = verified(server.home)
    assert found.returncode == 5
    broken = [each for each in json.loads(found.stdout)["streams"] if each["problem"]]
    assert [each["stream"] for each in broken] == [f"room/{bad}"]


async def test_records_damaged_at_runtime_are_not_delivered(tmp_path: Path) -> None:
    """The room is at hand and goes on; who wants its old pages is told that they are damaged."""
    with run_server(tmp_path) as server:
        async with people(server) as who:
            bad, good = await told(who, MANY, "spoilt"), await told(who, FEW, "sound")
        server.stop()
        server.start()
        async with people(server) as who, AsyncExitStack() as stack:
            alice, bob = who["alice"], who["bob"]
            here, there = await alice.join(good), await alice.join(bad)
            ears = [
                await stack.enter_async_context(RecordingListener(each)) for each in (here, there)
            ]
            await ears[1].wait_for(lambda each: each.seq > MANY)
            assert spoil(server.home, b'spoilt-17"') == 1

            with pytest.raises(ServerRefused) as no:
                await alice.transcript(bad)
            helps(no.value.message, bad, server.home)
            assert (await alice.transcript(bad, after=MANY // 2)).messages
            other = await bob.join(good)
            id = await other.prompt("still here", "claude")
            await ears[0].wait_for(lambda each: each.id == id)
            assert await there.prompt("and here too", "claude")
