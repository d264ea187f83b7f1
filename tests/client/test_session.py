"""Every method of a session, against a real server."""

import asyncio

import pytest

from accord.client import ClientError, Rejected, SessionOver, default_config
from accord.core.kernel.ballot import AnyOf
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import (
    ToolApprove,
    ToolOutput,
    ToolPropose,
    ToolResult,
)
from accord.core.room.conversation.prompts import PromptConfig
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, UsageStats
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.role_assignment import ParticipantRoleChange
from accord.core.room.room_settings import Category
from accord.core.room.session_lifecycle import SessionConfigUpdate
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.servers.server_process import ServerProcess


async def test_response_chunks_arrive_in_order_with_usage_and_finish_reason(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt(
            "Say hello", "claude", contributors=["alice", "bob"], config=PromptConfig(max_tokens=9)
        )
        async with room.claude.respond(prompt) as out:
            for bit in ("Hel", "lo"):
                await out.write(bit)
            out.usage = UsageStats(3, 2, model="scripted")
            out.finish_reason = "max_tokens"

        end = await room.alice_listener.wait_for(
            lambda message: isinstance(message.body, ResponseEnd)
        )
        assert end.body == ResponseEnd("max_tokens", UsageStats(3, 2, model="scripted"))
        chunks = [
            message
            for message in room.alice_listener.received
            if isinstance(message.body, ResponseChunk)
        ]
        assert [(message.body, message.ref) for message in chunks] == [
            (ResponseChunk("Hel"), out.id),
            (ResponseChunk("lo"), out.id),
        ]


async def test_response_ends_with_error_when_the_agent_raises(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("Divide by zero", "claude")
        with pytest.raises(ZeroDivisionError):
            async with room.claude.respond(prompt) as out:
                await out.write(str(1 // 0))

        end = await room.alice_listener.wait_for(
            lambda message: isinstance(message.body, ResponseEnd)
        )
        assert end.body == ResponseEnd("error")
        assert end.ref == out.id


async def test_response_ends_with_interrupted_when_the_agent_is_cancelled(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("Go on for ever", "claude")
        started = asyncio.Event()

        async def answer() -> None:
            async with room.claude.respond(prompt) as out:
                await out.write("…")
                started.set()
                await asyncio.Event().wait()

        answering = asyncio.create_task(answer())
        await started.wait()
        answering.cancel()

        end = await room.alice_listener.wait_for(
            lambda message: isinstance(message.body, ResponseEnd)
        )
        assert end.body == ResponseEnd("interrupted")
        with pytest.raises(asyncio.CancelledError):
            await answering


async def test_two_concurrent_responses_keep_their_chunks_apart(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        prompt = [await room.alice.prompt(text, "claude") for text in "ab"]
        async with room.claude.respond(prompt[0]) as one, room.claude.respond(prompt[1]) as two:
            for number in range(20):
                await one.write(f"a{number} ")
                await two.write(f"b{number} ")
        last = await room.alice_listener.wait_for(
            lambda message: message.type == "response.end" and message.ref == one.id
        )
        await room.alice_listener.wait_for_seq(last.seq)

        texts = {one.id: "", two.id: ""}
        for message in room.alice_listener.received:
            if isinstance(message.body, ResponseChunk):
                texts[message.ref or ""] += message.body.text
        assert texts[one.id] == "".join(f"a{number} " for number in range(20))
        assert texts[two.id] == "".join(f"b{number} " for number in range(20))


async def test_tool_is_proposed_approved_executed_and_reported(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("List the files", "claude")
        proposal = await room.claude.propose(
            "shell",
            {"command": ["ls"]},
            category=Category.SHELL_EXECUTE,
            risk="high",
            description="List",
            suggested_approvers=["bob"],
            prompt=prompt,
        )
        await room.bob_listener.wait_for(lambda message: message.id == proposal)
        await room.bob.approve(proposal, "Fine")
        granted = await room.claude.decision(proposal)
        await room.claude.execute(granted)
        await room.claude.output(granted, "a b\n")
        await room.claude.output(granted, "", "stderr", complete=True)
        done = await room.claude.result(granted, success=True, duration_ms=5, result={"files": 2})
        await room.alice_listener.wait_for_seq(done.seq)

        message = {type(item.body): item for item in room.alice_listener.received}
        assert message[ToolPropose].ref == prompt
        assert message[ToolPropose].body.requires_approval  # type: ignore[attr-defined]
        assert message[ToolApprove].body == ToolApprove(proposal, "bob", "Fine")
        assert message[ToolOutput].ref == proposal
        assert message[ToolResult].body.result == {"files": 2}  # type: ignore[attr-defined]
        assert granted.grant is not None
        assert granted.approved_by == ("bob",)
        # Later calls return the same grant, on any listening client.
        assert await room.claude.decision(proposal) == granted
        assert await room.alice_listener.session.decision(proposal) == granted


async def test_proposal_that_needs_no_approval_is_granted_at_once(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("cat", {"path": "x"}, category="file_read")

        assert (await room.claude.decision(proposal)).approved_by == ()


async def test_waiting_for_a_decision_raises_rejected_when_the_session_ends(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        waiting = asyncio.create_task(room.claude.decision(proposal))
        await room.alice.end("Out of time")

        with pytest.raises(Rejected, match="The session ended before it was approved") as refusal:
            await waiting
        assert refusal.value.by == "system"


async def test_gate_can_be_requested_for_a_prompt(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("Deploy?", "claude")
        gate = await room.alice.request_gate(prompt, "deploy", AnyOf(1), message="Shall we?")
        received = await room.bob_listener.wait_for(
            lambda message: isinstance(message.body, GateRequest)
        )
        assert (received.id, received.ref) == (gate, prompt)

        vote = await room.bob.approve(gate)

        assert (await room.alice_listener.wait_for_seq(vote.seq)).type == "gate.approve"


async def test_names_roles_presence_and_config_can_be_changed(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        await room.bob.announce("Robert", metadata={"pronouns": "he"})
        await room.alice.change_roles("bob", ["approver", "driver"], [Role.OBSERVER], "Holiday")
        await room.bob.presence("away")
        last = await room.alice.configure("Fewer", max_participants=4)
        await room.claude_listener.wait_for_seq(last.seq)

        kept = [item.body for item in room.claude_listener.sequenced]
        names = [item.name for item in kept if isinstance(item, ParticipantAnnounce)]
        assert names[-1] == "Robert"
        (change,) = [item for item in kept if isinstance(item, ParticipantRoleChange)]
        assert (change.participant, change.new_roles) == ("bob", (Role.OBSERVER,))
        assert kept[-1] == SessionConfigUpdate({"max_participants": 4}, "Fewer")
        async with make_client(shared_server, "alice") as reader:
            assert (await reader.session(room.alice.id)).config.max_participants == 4


async def test_creator_can_join_again_with_more_roles(shared_server: ServerProcess) -> None:
    async with make_client(shared_server, "alice") as alice:
        session = await alice.create()
        same = await alice.join(session.id, roles=["driver"], name="Alice A.")
        (member,) = (await alice.session(session.id)).members

        assert same.id == session.id
        assert (member.name, member.roles) == ("Alice A.", ("admin", "driver"))


async def test_creator_is_still_only_admin_after_a_server_restart(
    server: ServerProcess,
) -> None:
    async with make_client(server, "alice") as alice:
        session = await alice.create()
        await asyncio.to_thread(server.restart)
        await session.presence("active")
        (member,) = (await alice.session(session.id)).members

        assert member.roles == ("admin",)


async def test_after_the_end_messages_stop_and_sending_raises_session_over(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        await room.alice.end("Done", "aborted")
        for listener in (room.alice_listener, room.bob_listener, room.claude_listener):
            assert (await listener.wait_for_end())[-1].type == "session.end"

        with pytest.raises(SessionOver):
            await room.bob.prompt("Hello?", "claude")
        with pytest.raises(ClientError):
            await room.claude.decision("p")


def test_default_config_requires_approval_for_everything_but_reading() -> None:
    rules = default_config(max_participants=3)

    assert rules.max_participants == 3
    assert set(Category) - set(rules.require_approval_for) == {Category.FILE_READ, Category.ALL}
