"""Retention beside a server that runs: by its own setting, and by the command."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

from accord.client import Client, Session
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.session_lifecycle import SessionEnd
from tests.helpers.clients.cli import CommandRun, run_accord
from tests.helpers.servers.server_process import ServerProcess, run_server

LOOK_S = 0.05


async def talk(session: Session, count: int = 40) -> None:
    words = [PromptSubmit(f"Words {n}", "claude", ("alice",), ()) for n in range(count)]
    await asyncio.gather(*(session.say(each) for each in words))


def transcript(server: ServerProcess, token: str, session: str, after: int = 0) -> tuple[int, Any]:
    url = f"{server.url}/sessions/{session}/transcript?after={after}"
    request = Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    try:
        with urlopen(request) as answer:  # noqa: S310 - our own address
            return answer.status, msgspec.json.decode(answer.read())
    except HTTPError as no:
        with no:
            return no.code, msgspec.json.decode(no.read())


def polled(server: ServerProcess, token: str, session: str) -> list[str]:
    """What the server still tells who reads from the beginning, by type."""
    url = f"{server.url}/sessions/{session}/messages"
    request = Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urlopen(request) as answer:  # noqa: S310 - our own address
        return [each["type"] for each in msgspec.json.decode(answer.read())["messages"]]


async def ended(server: ServerProcess, token: str) -> str:
    """A session in which something was said, and which is over."""
    agent = server.issue_token("claude", "agent")
    async with Client(server.url, token=token) as alice, Client(server.url, token=agent) as claude:
        room = await alice.create(name="Over")
        await claude.join(room.id, listen=False)
        await talk(room)
        await room.send(SessionEnd("Done", "completed"))
        return room.id


@pytest.mark.timeout(120)
async def test_a_server_removes_what_is_due_and_says_so_to_who_asks(tmp_path: Path) -> None:
    with run_server(tmp_path / "server", "token", "--keep-ended-days", "0") as server:
        token = server.issue_token("alice", roles=("admin", "driver"))
        session = await ended(server, token)
        server.restart()  # what is due is looked for at the start, then every hour

        code, said = transcript(server, token, session)
        while code == 200:
            await asyncio.sleep(LOOK_S)
            code, said = transcript(server, token, session)

        assert code == 410
        assert "removed by retention" in said["error"]["message"]
        code, rest = transcript(server, token, session, said["error"]["details"]["after"])
        assert (code, [each["type"] for each in rest["messages"]]) == (200, ["session.end"])
        shown = run_accord("session", "show", session, ACCORD_URL=server.url, ACCORD_TOKEN=token)
        assert shown.code == 0, shown
        assert "completed" in shown.out
        server.stop()
    told = run_accord("verify", "--data-dir", str(server.home))
    assert told.code == 0, told
    assert "by system (0 days after the end), signed" in told.out


@pytest.mark.timeout(120)
async def test_the_command_works_beside_a_server_that_writes(tmp_path: Path) -> None:
    with run_server(tmp_path / "server") as server:
        token = server.issue_token("alice", roles=("admin", "driver"))
        session = await ended(server, token)
        agent = server.issue_token("claude", "agent")
        async with (
            Client(server.url, token=token) as alice,
            Client(server.url, token=agent) as claude,
        ):
            room = await alice.create()
            await claude.join(room.id, listen=False)
            words = ("compact", "--session", session, "--data-dir", str(server.home), "--json")
            work: asyncio.Future[CommandRun] | None = None
            while work is None or not work.done():
                await talk(room)  # before it begins, all the while, and beyond its end
                work = work or asyncio.create_task(asyncio.to_thread(run_accord, *words))
            ran = await work
            assert ran.code == 0, ran
            assert ran.json["removed"][0]["records"] > 40
            read = [each.seq async for each in alice.history(room.id)]
            assert read == list(range(1, len(read) + 1))
        assert transcript(server, token, session)[0] == 410
        assert polled(server, token, session) == ["session.end"]
        during = run_accord("verify", "--data-dir", str(server.home))
        assert during.code == 0, during
        server.restart()
        assert transcript(server, token, session)[0] == 410
        copy = tmp_path / "copy"
        assert run_accord("backup", str(copy), "--data-dir", str(server.home)).code == 0
        server.stop()
    assert run_accord("restore", str(copy), "--data-dir", str(tmp_path / "elsewhere")).code == 0
    told = run_accord("verify", "--data-dir", str(tmp_path / "elsewhere"))
    assert (told.code, "removed on" in told.out) == (0, True), told
