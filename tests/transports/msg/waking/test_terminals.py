"""The port to terminals: what a supervisor is asked for, and what happens while a person types."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from accord.api import threads as api
from accord.core.attention.runtimes import HumanInput
from accord.core.attention.state import Seat
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.port import WakeReport, WakeTarget
from accord.core.attention.waking.prompt import MARK
from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.authority import Capability, Kind
from accord.core.kernel.refusal import Reason, Refused
from accord.server.app import Server
from accord.transports.msg import methods
from tests.helpers.clients.mcp_requests import in_process_server
from tests.spec import proves

PLANNER = Actor("planner", Kind.AGENT, "S1", credential=CredentialRights())
SUPERVISOR = Actor(
    "coder",
    Kind.AGENT,
    "S2",
    credential=CredentialRights(capabilities=frozenset({Capability.SUPERVISE})),
)
SEAT = Seat("default", "coder")
FREE = HumanInput(None, line_empty=True)
DRAFT = HumanInput(None, line_empty=False)


class Terminal:
    """What a connected supervisor sees and does."""

    def __init__(self) -> None:
        self.human = FREE
        self.pasted: list[str] = []
        self.fails = False

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        return {"S2": self.human} if target.agent == "coder" else {}

    async def deliver(self, target: WakeTarget, session_id: str, prompt: str) -> WakeReport:
        action = WakeAction.TRIGGER_RUNTIME
        if self.fails:
            return WakeReport(action, WakeResult.FAILED, WakeCause.NO_FALLBACK)
        self.pasted.append(prompt)
        return WakeReport(action, WakeResult.DELIVERED, WakeCause.UNREAD)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with in_process_server(tmp_path) as server:
        yield server


async def call(server: Server, actor: Actor, name: str, **arguments: Any) -> Any:
    method = methods.METHODS[name]
    return await method.handler(server.threads, actor, method.request(**arguments))


async def managed(server: Server) -> tuple[Terminal, str]:
    """A managed agent with one unread message."""
    terminal = Terminal()
    server.threads.wakes.terminals = terminal
    beat = {"runtime": "codex_cli", "status": "idle", "line_empty": True}
    await call(server, SUPERVISOR, "heartbeat_session", **beat)
    made = await call(
        server, PLANNER, "create_thread", title="t", participants=["planner", "coder"]
    )
    await call(
        server, PLANNER, "post_message", thread_id=made.thread_id, schema_version=1, body="look"
    )
    return terminal, made.thread_id


async def trigger(server: Server, thread: str) -> api.TriggerResult:
    answer: api.TriggerResult = await call(
        server, PLANNER, "trigger_participant", thread_id=thread, target_agent_id="coder"
    )
    return answer


@proves("MSG-3.8-4")
async def test_a_managed_runtime_is_woken_in_its_terminal(server: Server) -> None:
    terminal, thread = await managed(server)
    answer = await trigger(server, thread)
    assert (answer.action, answer.result) == ("trigger_runtime", "delivered")
    assert terminal.pasted[0].startswith(f"{MARK} You have 1 unread message in thread {thread}.")


@proves("MSG-3.8-6", "MSG-3.8-7", "MSG-3.8-9")
async def test_a_draft_defers_the_wake_whose_outcome_is_posted_later(server: Server) -> None:
    terminal, thread = await managed(server)
    terminal.human = DRAFT
    answer = await trigger(server, thread)
    assert (answer.action, answer.result) == ("trigger_runtime", "deferred")
    assert answer.defer_reason == "human_input_busy"
    assert answer.deferred_until is not None
    again = await trigger(server, thread)
    assert (again.result, again.deferred_until) == ("deferred", answer.deferred_until)

    attention = await server.threads.attention_of(*SEAT)
    (wake,) = attention.waking.open
    await server.threads.wakes.look_again(SEAT, wake, thread)
    assert terminal.pasted == []
    terminal.human = FREE
    await server.threads.wakes.look_again(SEAT, wake, thread)
    async with asyncio.timeout(30):
        while True:
            page = await call(server, PLANNER, "read_messages", thread_id=thread)
            told = [m for m in page.messages if m.kind == "system"]
            if told:
                break
            await asyncio.sleep(0.02)
    assert len(terminal.pasted) == 1
    assert told[0].metadata["result"] == "delivered"


@proves("MSG-6-9")
async def test_a_terminal_that_takes_nothing_is_a_failed_wake(server: Server) -> None:
    terminal, thread = await managed(server)
    terminal.fails = True
    with pytest.raises(Refused) as refused:
        await trigger(server, thread)
    assert refused.value.reason is Reason.WAKE_FAILED
    terminal.fails = False
    assert (await trigger(server, thread)).result == "delivered"
