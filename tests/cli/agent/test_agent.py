"""`accord agent` as a process: who it is, what it refuses, and how it ends."""

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolOutput, ToolPropose, ToolResult
from accord.core.room.conversation.responses import ResponseEnd
from accord.core.room.membership.announcements import ParticipantAnnounce
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import ObservedSession, open_session
from tests.helpers.clients.agent_process import agent_process
from tests.helpers.clients.cli import run_accord
from tests.helpers.hosts.connecting_shell import ConnectingShell
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.servers.server_process import ServerProcess

SCRIPT = """
[[reply]]
when = "wait"
[[reply.steps]]
propose = "shell"
arguments = { argv = ["tail", "-f", "notes.txt"] }
[[reply]]
[[reply.steps]]
say = "Here I am."
"""
KEY = "sk-key-that-stays-in-the-environment"


def agent_env(server: ServerProcess, home: Path, id: str = "helper") -> dict[str, str]:
    """The environment of an agent with a token."""
    token = server.issue_token(id, "agent", ["driver"])
    config = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    return {"ACCORD_URL": server.url, "ACCORD_TOKEN": token, **config}


def programs_in(directory: Path) -> list[str]:
    """The programs that run in this directory."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(directory):
                found.append(process.name())
    return found


async def joined(room: ObservedSession, id: str) -> None:
    """Wait until this agent is in the session."""

    def is_there() -> bool:
        announced: list[Any] = [each.body for each in room.messages_of(ParticipantAnnounce)]
        return any(each.id == id for each in announced)

    async with asyncio.timeout(60), room.changed:
        await room.changed.wait_for(is_there)


async def test_scripted_agent_answers_and_its_command_dies_with_it(
    server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "script.toml").write_text(SCRIPT)
    (tmp_path / "notes.txt").write_text("one\n")
    words = ("--provider", "scripted", "--script", "script.toml")
    env = agent_env(server, tmp_path / "home")
    async with open_session(server) as room:
        with agent_process(room.alice.id, *words, cwd=tmp_path, log=tmp_path / "log", env=env) as p:
            await joined(room, "helper")
            await room.alice.prompt("Hello", "helper")
            await room.wait_for(ResponseEnd)
            await room.alice.prompt("Now wait", "helper")
            await room.wait_for(GateRequest)
            await room.alice.approve(room.messages_of(ToolPropose)[0].id)
            await room.wait_for(ToolOutput)
            second = await asyncio.to_thread(
                run_accord, "agent", room.alice.id, *words, cwd=tmp_path, **env
            )
            p.send_signal(signal.SIGTERM)
            result: ToolResult = await room.wait_for(ToolResult)
            assert await asyncio.to_thread(p.wait, 60) == 0

    assert response_text(room) == "Here I am."
    assert result.error == "stopped by an interrupt"
    assert second.code == 5
    assert "already runs" in second.err
    assert programs_in(tmp_path) == []


async def test_a_person_puts_an_agent_of_their_own_into_a_session(
    server: ServerProcess, tmp_path: Path
) -> None:
    olga = ConnectingShell(server, tmp_path / "olga", "olga", "driver", "approver")
    env = {
        **{name: olga.environment[name] for name in ("HOME", "XDG_CONFIG_HOME")},
        "OPENAI_API_KEY": KEY,
    }
    script = Script(
        {
            "Make": [Step(calls=[Call("write_file", {"path": "a.txt", "content": "one\n"})])],
            "Again": [Step(say="Still me.")],
        }
    )
    with serve(script) as model:
        words = ("--provider", "openai", "--model", "m", "--base-url", f"{model.url}/v1")
        async with open_session(server) as room:
            for prompt in ("Make", "Again"):
                with agent_process(
                    room.alice.id, *words, cwd=olga.repo, log=tmp_path / "log", env=env
                ) as process:
                    await joined(room, "olga-openai")
                    shown = psutil.Process(process.pid).cmdline()
                    await room.alice.prompt(prompt, "olga-openai")
                    if prompt == "Make":
                        await room.wait_for(GateRequest)
                        await room.alice.approve(room.messages_of(ToolPropose)[0].id)
                        await room.wait_for(ToolResult)
                        await room.wait_for(ResponseEnd, 2)
                    else:
                        await room.wait_for(ResponseEnd, 3)
                assert KEY not in " ".join(shown)

    assert (olga.repo / "a.txt").read_text() == "one\n"
    assert KEY.encode() not in server.stored_bytes
    assert KEY not in (tmp_path / "log").read_text()
    records = list((olga.home / ".config/accord/connections").glob("accord-agent-*.json"))
    assert len(records) == 1
    assert KEY not in records[0].read_text()


def test_a_host_that_is_not_installed_is_named(tmp_path: Path) -> None:
    done = run_accord("agent", "ses_1", "--host", "claude", cwd=tmp_path, PATH=str(tmp_path))

    assert done.code == 4
    assert "claude is not installed" in done.err


@pytest.mark.parametrize(
    ("words", "env", "problem"),
    [
        (("--provider", "scripted"), {}, "give --script FILE"),
        (("--provider", "scripted", "--script", "gone.toml"), {}, "gone.toml cannot be read"),
        (("--provider", "anthropic"), {}, "Give --model NAME"),
        (("--provider", "anthropic", "--model", "m"), {}, "set ANTHROPIC_API_KEY"),
        (("--provider", "openai", "--model", "m", "--price", "x"), {}, "is not two prices"),
        (("--provider", "openai", "--model", "m", "--params", "[1]"), {}, "not a JSON object"),
        (("--provider", "openai-compatible", "--model", "m"), {}, "give --base-url"),
        (("--provider", "openai", "--host", "claude"), {}, "not allowed with"),
        ((), {}, "one of the arguments --provider --host --acp"),
        (("--acp", "'"), {}, "not a command"),
        (("--acp", ""), {}, "needs the command"),
        (
            ("--provider", "openai", "--model", "m", "--base-url", "http://models.example/v1"),
            {"OPENAI_API_KEY": KEY},
            "plain HTTP",
        ),
    ],
)
def test_what_is_missing_is_said_before_anything_happens(
    words: tuple[str, ...], env: dict[str, str], problem: str, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    done = run_accord("agent", "ses_1", *words, cwd=tmp_path, **home, **env)

    assert done.code == 2
    assert problem.lower() in done.err.lower()
    assert KEY not in done.err
    assert not (tmp_path / ".config").exists()
