"""Every common refusal has a code for programs and a message for people."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from accord.client import Client, Rejected, ServerRefused
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.votes import GateApprove
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseStart
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.state import Presence
from tests.helpers.clients.three_member_session import (
    FAST_RETRY,
    ThreeMemberSession,
    make_client,
    open_session,
)
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

Deed = Callable[[ThreeMemberSession], Awaitable[object]]
UNKNOWN_ID = "01HX7K9P4QZCVD3N8MYW6R5T2B"
PASS = GateApprove(UNKNOWN_ID, "bob")
PRESENT = PresenceUpdate("alice", Presence.ACTIVE, "2026-01-30T20:00:00.000Z")


async def dead_tool(room: ThreeMemberSession) -> object:
    """Execute a proposal that was rejected."""
    proposal = await room.claude.propose("sh", {}, category="shell_execute")
    await room.bob.reject(proposal, "Not today")
    return await room.claude.output(ToolExecute(proposal, ()), "x")


async def used_twice(room: ThreeMemberSession) -> object:
    """Use the same grant twice."""
    proposal = await room.claude.propose("cat", {}, category="file_read")
    granted = await room.claude.decision(proposal)
    await room.claude.execute(granted)
    return await room.claude.execute(granted)


REFUSALS: dict[str, tuple[str, str, Deed]] = {
    "no such agent": (
        "PARTICIPANT_NOT_FOUND",
        "gpt is not an agent",
        lambda room: room.alice.prompt("Hi", "gpt"),
    ),
    "a human is no agent": (
        "PARTICIPANT_NOT_FOUND",
        "bob is not an agent",
        lambda room: room.alice.prompt("Hi", "bob"),
    ),
    "an agent cannot approve": (
        "UNAUTHORIZED",
        "claude may not send gate.approve",
        lambda room: room.claude.approve(UNKNOWN_ID),
    ),
    "a person cannot propose": (
        "UNAUTHORIZED",
        "bob may not send tool.propose",
        lambda room: room.bob.propose("sh", {}, category="shell_execute"),
    ),
    "only an admin configures": (
        "UNAUTHORIZED",
        "bob may not send session.config_update",
        lambda room: room.bob.configure("Why not", max_participants=3),
    ),
    "nobody speaks for another": (
        "UNAUTHORIZED",
        "the payload names gpt",
        lambda room: room.claude.send(ResponseStart("gpt", UNKNOWN_ID)),
    ),
    "no such gate": (
        "INVALID_STATE",
        "There is no open gate",
        lambda room: room.bob.send(PASS),
    ),
    "a wrong reference": (
        "INVALID_MESSAGE",
        "No such message here",
        lambda room: room.alice.send(PromptSubmit("Hi", "claude", ("alice",), ()), UNKNOWN_ID),
    ),
    "an answer to no prompt": (
        "INVALID_MESSAGE",
        "No such message here",
        lambda room: room.claude.respond(UNKNOWN_ID).__aenter__(),
    ),
    "bad rules": (
        "INVALID_MESSAGE",
        "Invalid setting",
        lambda room: room.alice.configure("Why not", max_participants=0),
    ),
    "too large": (
        "CONTEXT_TOO_LARGE",
        "A message may have",
        lambda room: room.alice.prompt("x" * (2 << 20), "claude"),
    ),
    "rejected": ("GATE_FAILED", "was rejected", dead_tool),
    "used twice": ("INVALID_STATE", "was already used", used_twice),
    "the wrong old roles": (
        "INVALID_STATE",
        "not old_roles",
        lambda room: room.alice.change_roles("bob", ["observer"], ["driver"]),
    ),
}


@proves("PVP-17-12", "PVP-17-13")
@pytest.mark.parametrize("case", REFUSALS)
async def test_refusal_has_a_code_and_message_and_leaves_the_session_usable(
    shared_server: ServerProcess, case: str
) -> None:
    code, sentence, deed = REFUSALS[case]
    async with open_session(shared_server) as room:
        with pytest.raises(ServerRefused, match=sentence) as refusal:
            await deed(room)

        assert refusal.value.code == code
        assert (await room.alice.presence("active")).seq > 0


async def test_joining_an_unknown_session_is_refused(shared_server: ServerProcess) -> None:
    async with make_client(shared_server, "alice") as alice:
        with pytest.raises(ServerRefused, match="There is no session nowhere") as refusal:
            await alice.join("nowhere")
        assert (refusal.value.code, refusal.value.recoverable) == ("SESSION_NOT_FOUND", False)

        session = await alice.create(id="here")
        assert session.id == "here"
        with pytest.raises(ServerRefused, match="is taken"):
            await alice.create(id="here")
        with pytest.raises(ServerRefused, match="A session id has"):
            await alice.create(id="not here")


async def test_joining_an_ended_session_is_refused(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room, make_client(shared_server, "bob") as bob:
        await room.alice.end("Done")

        with pytest.raises(ServerRefused, match="The session has ended") as refusal:
            await bob.post(room.alice.id, PromptSubmit("Hello?", "claude", ("bob",), ()))
        assert (refusal.value.code, refusal.value.recoverable) == ("INVALID_STATE", False)
        with pytest.raises(ServerRefused, match="its history stays readable"):
            await bob.join(room.alice.id)


async def test_joining_with_a_role_beyond_the_token_is_refused(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room, make_client(shared_server, "olga") as olga:
        with pytest.raises(ServerRefused, match="olga may not join as approver") as refusal:
            await olga.join(room.alice.id, roles=["approver"])
        assert refusal.value.code == "UNAUTHORIZED"

        session = await olga.join(room.alice.id)
        with pytest.raises(ServerRefused, match="needs the right to prompt"):
            await session.prompt("Hi", "claude")


async def test_joining_a_full_session_is_refused(shared_server: ServerProcess) -> None:
    async with (
        open_session(shared_server, max_participants=3) as room,
        make_client(shared_server, "olga") as olga,
    ):
        with pytest.raises(ServerRefused, match="The session is full") as refusal:
            await olga.join(room.alice.id)

        assert refusal.value.details == {"reason": "max_participants", "limit": 3, "absent": []}


async def test_sending_too_fast_is_rate_limited(tmp_path: Path) -> None:
    with run_server(tmp_path, "open", "--rate-limit", "5") as server:
        async with Client(server.url, id="alice", retry=FAST_RETRY) as alice:
            session = await alice.create()
            answers = [session.say(PRESENT) for _ in range(100)]
            message = await asyncio.gather(*answers, return_exceptions=True)

    refused = [item for item in message if isinstance(item, ServerRefused)]
    assert {item.code for item in refused} == {"RATE_LIMITED"}
    assert all(item.details["retry_after_ms"] > 0 for item in refused)
    assert len(refused) < len(message)


@proves("OPEN-49")
async def test_gate_errors_reach_all_members_and_other_errors_only_the_sender(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        with pytest.raises(ServerRefused):
            await room.claude.approve(proposal)
        await room.bob.reject(proposal, "Not today", "Tomorrow")

        for listener in (room.alice_listener, room.bob_listener, room.claude_listener):
            news = await listener.wait_for(lambda message: message.type == "error")
            assert news.body.code == "GATE_FAILED"  # type: ignore[attr-defined]
            assert news.body.related_to == proposal  # type: ignore[attr-defined]
            assert len([message for message in listener.received if message.type == "error"]) == 1


@pytest.mark.parametrize("by_gate", [True, False])
async def test_rejected_names_the_member_and_the_reason(
    shared_server: ServerProcess, by_gate: bool
) -> None:
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        gate = await room.bob_listener.wait_for(lambda message: message.type == "gate.request")
        await room.bob.reject(gate.id if by_gate else proposal, "Not today")

        with pytest.raises(Rejected, match="Not today") as refusal:
            await room.claude.decision(proposal)
        assert (refusal.value.by, refusal.value.proposal) == ("bob", proposal)


async def test_proposal_is_rejected_when_its_agent_leaves(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        waiting = asyncio.create_task(room.alice.decision(proposal))
        await room.claude.leave("Out of tokens")

        with pytest.raises(Rejected, match="claude left"):
            await waiting
