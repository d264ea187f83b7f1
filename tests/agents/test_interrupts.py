"""Interrupts and amendments of a running agent, and prompts in a fork."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from accord.agents.script import Reply, Script, ScriptStep
from accord.client import Client, SessionDetail
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolOutput, ToolPropose, ToolResult
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Urgency
from tests.agents.test_loop import ObservedSession, file_exists, open_session, run_agent, touch_step
from tests.helpers.engine.harness import yield_to_loop
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

LONG_RUN_S = 60
ENDLESS_STEP = ScriptStep(
    propose="shell",
    arguments={"argv": ["tail", "-f", "notes.txt"]},
    granted=(ScriptStep(say="It came to its end."),),
)


async def approve_proposal(room: ObservedSession, number: int = 1) -> str:
    """Alice approves the n-th proposal; returns its id."""
    await room.wait_for(GateRequest, number)
    gates = [item.id for item in room.received if isinstance(item.body, GateRequest)]
    await room.alice.approve(gates[number - 1])
    return gates[number - 1]


def response_text(room: ObservedSession) -> str:
    return "".join(item.body.text for item in room.received if isinstance(item.body, ResponseChunk))


@proves("PVP-15.2-3")
async def test_stop_kills_the_running_tool_and_is_acknowledged(
    server: ServerProcess, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("one\n")
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, ENDLESS_STEP),
    ):
        await room.alice.prompt("Go", "claude")
        await approve_proposal(room)
        await room.wait_for(ToolOutput)
        began = time.monotonic()
        stop = await room.alice.interrupt("stop", "That never ends", "claude")
        result: ToolResult = await room.wait_for(ToolResult)
        answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)
        took = time.monotonic() - began
        halted = (await detail(server, room)).halted

    assert took < LONG_RUN_S / 2
    assert not result.success
    assert result.error == "stopped by an interrupt"
    assert answer == InterruptAcknowledge(stop, "claude", "stopped")
    assert halted == {"claude": Urgency.STOP}
    assert room.count(ResponseStart) == 0


@contextmanager
def open_pipe(path: Path) -> Iterator[FileIO]:
    """A named pipe; its reader sees end-of-file when the context ends."""
    os.mkfifo(path)
    with FileIO(os.open(path, os.O_RDWR), "w") as pipe:
        yield pipe


async def detail(server: ServerProcess, room: ObservedSession) -> SessionDetail:
    token = server.issue_token("alice", roles=["admin"])
    return await Client(server.url, token=token).session(room.alice.id)


async def test_emergency_cancels_waiting_for_a_gate_until_the_next_prompt(
    server: ServerProcess, tmp_path: Path
) -> None:
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, touch_step("mark")),
    ):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        await room.alice.interrupt("emergency", "Everybody stop")
        answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)
        assert (answer.action_taken, file_exists(tmp_path / "mark")) == ("stopped", False)

        await room.alice.prompt("Now do", "claude")
        await approve_proposal(room, 2)
        await room.wait_for(ToolResult)

    assert file_exists(tmp_path / "mark")
    assert room.count(ToolPropose) == 2


@proves("PVP-15.1-2")
async def test_pause_takes_effect_after_the_tool_and_ends_with_a_prompt(
    server: ServerProcess, tmp_path: Path
) -> None:
    look = ScriptStep(propose="shell", arguments={"argv": ["cat", "pipe"]})
    steps = (look, ScriptStep(say="And on we go."))
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, *steps) as it,
    ):
        with open_pipe(tmp_path / "pipe") as pipe:
            pipe.write(b"one\n")
            await room.alice.prompt("Go", "claude")
            await approve_proposal(room)
            await room.wait_for(ToolOutput)
            await room.alice.interrupt("pause", "One moment", "claude")
            while it._unpaused.is_set():  # until it has received the interrupt
                await yield_to_loop(1)
            assert room.count(InterruptAcknowledge) == 0
        answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)
        types = [item.type for item in room.received]
        assert answer.action_taken == "paused"
        assert types.index("tool.result") < types.index("interrupt.acknowledge")
        assert room.count(ResponseStart) == 0

        await room.alice.prompt("Go on", "claude")
        await room.wait_for(ResponseEnd)

    assert response_text(room).startswith("And on we go.")


@proves("PVP-11.3-3")
async def test_amendment_changes_the_remaining_steps(server: ServerProcess, tmp_path: Path) -> None:
    script = Script(
        (
            Reply((ScriptStep(say="The lexer, then."),), when="lexer"),
            Reply((touch_step("mark"), ScriptStep(say="The parser it is."))),
        )
    )
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, script=script),
    ):
        prompt = await room.alice.prompt("Fix the parser", "claude")
        await room.wait_for(GateRequest)
        await room.alice.amend(prompt, "Better the LEXER first", "It breaks the parser")
        await approve_proposal(room)
        await room.wait_for(ResponseEnd)

    assert response_text(room) == "The lexer, then."
    assert file_exists(tmp_path / "mark")


async def test_stopped_prompt_resumes_after_an_amendment(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script(
        (Reply((ScriptStep(say="Carefully."),), when="careful"), Reply((touch_step("mark"),))),
    )
    async with (
        open_session(server) as room,
        run_agent(server, room.alice.id, tmp_path, script=script),
    ):
        prompt = await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        await room.alice.interrupt("stop", "Wait")
        await room.wait_for(InterruptAcknowledge)
        await room.alice.amend(prompt, "But be careful")
        await room.wait_for(ResponseEnd)

    assert response_text(room) == "Carefully."
    assert not file_exists(tmp_path / "mark")


async def test_prompt_in_a_fork_is_answered_and_executed_in_the_fork(
    server: ServerProcess, tmp_path: Path
) -> None:
    steps = (
        ScriptStep(say="Let me see."),
        touch_step("mark"),
        ScriptStep(share="finding", text="It works"),
        ScriptStep(say="It works."),
    )
    async with open_session(server) as room, run_agent(server, room.alice.id, tmp_path, *steps):
        fork = await room.alice.fork("Try it", ["claude"])
        await room.alice.within(fork).prompt("Does it work?", "claude")
        await approve_proposal(room)
        await room.wait_for(ResponseEnd, 2)

    mine = [
        item for item in room.received if item.sender == "claude" and item.type != "session.join"
    ]
    assert {item.fork for item in mine} == {fork}
    assert any(isinstance(item.body, ContextAdd) for item in mine)
    assert file_exists(tmp_path / "mark")


async def test_agent_stopped_while_offline_does_not_start_on_return(
    server: ServerProcess, tmp_path: Path
) -> None:
    async with open_session(server) as room:
        async with run_agent(server, room.alice.id, tmp_path, ScriptStep(say="Here.")):
            await room.alice.prompt("First", "claude")
            await room.wait_for(ResponseEnd)
        await room.alice.prompt("While away", "claude")
        await room.alice.interrupt("stop", "No, leave it", "claude")
        async with run_agent(server, room.alice.id, tmp_path, ScriptStep(say="Back.")):
            answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)
            await room.alice.prompt("And now", "claude")
            await room.wait_for(ResponseEnd, 2)

    assert answer.action_taken == "stopped"
    assert response_text(room) == "Here.Back."
