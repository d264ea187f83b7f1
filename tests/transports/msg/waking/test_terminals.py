"""The port to terminals: what a supervisor is asked for, and what happens while a person types."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.api import threads as api
from accord.core.attention.runtimes import HumanInput
from accord.core.attention.state import Seat
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.prompt import MARK
from accord.core.attention.waking.waker_port import WakeReport, WakeTarget
from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.conversation.prompts import PromptDraft
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.room_settings import SessionConfig
from accord.core.room.session_lifecycle import SessionCreate
from accord.server.app import Server
from accord.transports.msg import method_table
from tests.helpers.clients.mcp_requests import in_process_server
from tests.helpers.clients.websocket_client import SESSION_CONFIG
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
DRIVER = CredentialRights(frozenset({Role.DRIVER}))
ALICE = Actor("alice", Kind.HUMAN, "S3", credential=CredentialRights(frozenset({Role.ADMIN})))
AGENT_CODER = Actor("coder", Kind.AGENT, "S4", credential=DRIVER)
CONFIG = msgspec.convert(SESSION_CONFIG, SessionConfig)


class Terminal:
    """What a connected supervisor sees and does."""

    def __init__(self) -> None:
        self.human = FREE
        self.pasted: list[str] = []
        self.fails = False

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        return {"S2": self.human} if target.agent == "coder" else {}

    async def deliver(
        self, target: WakeTarget, session_id: str, wake: str, prompt: str
    ) -> WakeReport:
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
    method = method_table.METHODS[name]
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


async def send(server: Server, actor: Actor, session: str, body: Body) -> None:
    """Send a message to a session; it must be accepted."""
    engine = server.engine
    now = to_iso(engine.clock.now())
    message = Message(engine.new_id(), now, session, actor.principal, body)
    await engine.handle(message, actor)


async def session_of_two(server: Server) -> str:
    """A session of alice and the agent."""
    await send(server, ALICE, "ses_1", SessionCreate(CONFIG))
    for actor, roles in ((ALICE, (Role.ADMIN, Role.DRIVER)), (AGENT_CODER, (Role.DRIVER,))):
        announced = ParticipantAnnounce(
            actor.principal,
            actor.principal,
            "human" if actor.kind is Kind.HUMAN else "agent",
            roles,
            "http",
        )
        await send(server, actor, "ses_1", SessionJoin(announced, (1,)))
    return "ses_1"


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


@proves("UNI-24")
async def test_a_prompt_that_a_person_drafts_for_the_agent_defers_its_wake(
    server: Server,
) -> None:
    terminal, thread = await managed(server)
    session = await session_of_two(server)
    await send(server, ALICE, session, PromptDraft("go o", ("alice",), "coder"))
    answer = await trigger(server, thread)
    assert (answer.result, answer.defer_reason) == ("deferred", "human_input_busy")
    assert terminal.pasted == []


async def test_drafts_of_agents_and_for_others_defer_nothing(server: Server) -> None:
    terminal, thread = await managed(server)
    session = await session_of_two(server)
    await send(server, ALICE, session, PromptDraft("go o", ("alice",)))
    await send(server, AGENT_CODER, session, PromptDraft("me", ("coder",), "coder"))
    assert (await trigger(server, thread)).result == "delivered"
    assert terminal.pasted


@proves("MSG-6-9")
async def test_a_terminal_that_takes_nothing_is_a_failed_wake(server: Server) -> None:
    terminal, thread = await managed(server)
    terminal.fails = True
    with pytest.raises(Refused) as refused:
        await trigger(server, thread)
    assert refused.value.reason is Reason.WAKE_FAILED
    terminal.fails = False
    assert (await trigger(server, thread)).result == "delivered"


async def test_a_report_that_the_end_of_its_supervisor_overtook_does_not_hold_the_runtime(
    server: Server,
) -> None:
    said = {"runtime": "codex_cli", "management_mode": "managed", "line_empty": True}
    first, second = said | {"instance_id": "first"}, said | {"instance_id": "second"}
    await call(server, SUPERVISOR, "take_wakes", **first, status="idle")
    await call(server, SUPERVISOR, "take_wakes", **first, status="offline")
    with pytest.raises(Refused) as refused:
        await call(server, SUPERVISOR, "take_wakes", **first, status="idle")
    assert refused.value.reason is Reason.WRONG_STATE
    await call(server, SUPERVISOR, "take_wakes", **second, status="idle")
