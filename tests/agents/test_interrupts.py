"""An agent that is told to stop, to wait, or something else; and asked in a fork."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from accord.agents.script import Reply, Script, Step
from accord.client import Client, Detail
from accord.core.room.gates import GateRequest
from accord.core.room.interrupts import InterruptAcknowledge
from accord.core.room.shelf import ContextAdd
from accord.core.room.state import Urgency
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.tools import ToolOutput, ToolPropose, ToolResult
from tests.agents.test_loop import Stage, agent, exists, stage, touch
from tests.helpers.engine import turns
from tests.helpers.server import ServerProcess
from tests.spec import proves

LONG_S = 60
ENDLESS = Step(
    propose="shell",
    arguments={"argv": ["tail", "-f", "notes.txt"]},
    granted=(Step(say="It came to its end."),),
)


async def agree(room: Stage, number: int = 1) -> str:
    """Alice approves the proposal of that number."""
    await room.until(GateRequest, number)
    gates = [each.id for each in room.heard if isinstance(each.body, GateRequest)]
    await room.alice.approve(gates[number - 1])
    return gates[number - 1]


def words(room: Stage) -> str:
    return "".join(each.body.text for each in room.heard if isinstance(each.body, ResponseChunk))


@proves("PVP-15.2-3")
async def test_a_stop_kills_what_runs_and_is_acknowledged(
    server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("one\n")
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, ENDLESS):
        await room.alice.prompt("Go", "claude")
        await agree(room)
        await room.until(ToolOutput)
        began = time.monotonic()
        stop = await room.alice.interrupt("stop", "That never ends", "claude")
        result: ToolResult = await room.until(ToolResult)
        answer: InterruptAcknowledge = await room.until(InterruptAcknowledge)
        took = time.monotonic() - began
        halted = (await detail(server, room)).halted

    assert took < LONG_S / 2
    assert not result.success
    assert result.error == "stopped by an interrupt"
    assert answer == InterruptAcknowledge(stop, "claude", "stopped")
    assert halted == {"claude": Urgency.STOP}
    assert room.count(ResponseStart) == 0


@contextmanager
def a_pipe(path: Path) -> Iterator[FileIO]:
    """Whoever reads it comes to its end when this is over."""
    os.mkfifo(path)
    with FileIO(os.open(path, os.O_RDWR), "w") as pipe:
        yield pipe


async def detail(server: ServerProcess, room: Stage) -> Detail:
    token = server.issue("alice", roles=["admin"])
    return await Client(server.url, token=token).session(room.alice.id)


async def test_an_emergency_ends_the_wait_for_a_gate_and_a_new_prompt_begins_anew(
    server: ServerProcess, tmp_path: Path
) -> None:
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, touch("mark")):
        await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        await room.alice.interrupt("emergency", "Everybody stop")
        answer: InterruptAcknowledge = await room.until(InterruptAcknowledge)
        assert (answer.action_taken, exists(tmp_path / "mark")) == ("stopped", False)

        await room.alice.prompt("Now do", "claude")
        await agree(room, 2)
        await room.until(ToolResult)

    assert exists(tmp_path / "mark")
    assert room.count(ToolPropose) == 2


@proves("PVP-15.1-2")
async def test_a_pause_waits_for_the_tool_and_a_prompt_ends_it(
    server: ServerProcess, tmp_path: Path
) -> None:
    look = Step(propose="shell", arguments={"argv": ["cat", "pipe"]})
    steps = (look, Step(say="And on we go."))
    async with (
        stage(server) as room,
        agent(server, room.alice.id, tmp_path, *steps) as it,
    ):
        with a_pipe(tmp_path / "pipe") as pipe:
            pipe.write(b"one\n")
            await room.alice.prompt("Go", "claude")
            await agree(room)
            await room.until(ToolOutput)
            await room.alice.interrupt("pause", "One moment", "claude")
            while it._free.is_set():  # until it has heard of that
                await turns(1)
            assert room.count(InterruptAcknowledge) == 0
        answer: InterruptAcknowledge = await room.until(InterruptAcknowledge)
        types = [each.type for each in room.heard]
        assert answer.action_taken == "paused"
        assert types.index("tool.result") < types.index("interrupt.acknowledge")
        assert room.count(ResponseStart) == 0

        await room.alice.prompt("Go on", "claude")
        await room.until(ResponseEnd)

    assert words(room).startswith("And on we go.")


@proves("PVP-11.3-3")
async def test_an_amendment_changes_the_rest_of_an_answer(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script(
        (
            Reply((Step(say="The lexer, then."),), when="lexer"),
            Reply((touch("mark"), Step(say="The parser it is."))),
        )
    )
    async with (
        stage(server) as room,
        agent(server, room.alice.id, tmp_path, script=script),
    ):
        prompt = await room.alice.prompt("Fix the parser", "claude")
        await room.until(GateRequest)
        await room.alice.amend(prompt, "Better the LEXER first", "It breaks the parser")
        await agree(room)
        await room.until(ResponseEnd)

    assert words(room) == "The lexer, then."
    assert exists(tmp_path / "mark")


async def test_a_stopped_prompt_that_is_amended_is_taken_up_again(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script(
        (Reply((Step(say="Carefully."),), when="careful"), Reply((touch("mark"),))),
    )
    async with (
        stage(server) as room,
        agent(server, room.alice.id, tmp_path, script=script),
    ):
        prompt = await room.alice.prompt("Go", "claude")
        await room.until(GateRequest)
        await room.alice.interrupt("stop", "Wait")
        await room.until(InterruptAcknowledge)
        await room.alice.amend(prompt, "But be careful")
        await room.until(ResponseEnd)

    assert words(room) == "Carefully."
    assert not exists(tmp_path / "mark")


async def test_what_is_asked_in_a_fork_is_answered_and_done_there(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = (
        Step(say="Let me see."),
        touch("mark"),
        Step(share="finding", text="It works"),
        Step(say="It works."),
    )
    async with stage(server) as room, agent(server, room.alice.id, tmp_path, *steps):
        fork = await room.alice.fork("Try it", ["claude"])
        await room.alice.within(fork).prompt("Does it work?", "claude")
        await agree(room)
        await room.until(ResponseEnd, 2)

    mine = [each for each in room.heard if each.sender == "claude" and each.type != "session.join"]
    assert {each.fork for each in mine} == {fork}
    assert any(isinstance(each.body, ContextAdd) for each in mine)
    assert exists(tmp_path / "mark")


async def test_who_was_stopped_while_away_does_not_begin_when_back(
    server: ServerProcess, tmp_path: Path
) -> None:
    async with stage(server) as room:
        async with agent(server, room.alice.id, tmp_path, Step(say="Here.")):
            await room.alice.prompt("First", "claude")
            await room.until(ResponseEnd)
        await room.alice.prompt("While away", "claude")
        await room.alice.interrupt("stop", "No, leave it", "claude")
        async with agent(server, room.alice.id, tmp_path, Step(say="Back.")):
            answer: InterruptAcknowledge = await room.until(InterruptAcknowledge)
            await room.alice.prompt("And now", "claude")
            await room.until(ResponseEnd, 2)

    assert answer.action_taken == "stopped"
    assert words(room) == "Here.Back."
