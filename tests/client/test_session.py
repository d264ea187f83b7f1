"""Everything one can say in a session, typed, against a real server."""

import asyncio

import pytest

from accord.client import ClientError, Rejected, SessionOver, usual_config
from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf
from accord.core.room.gates import GateRequest
from accord.core.room.lifecycle import SessionConfigUpdate
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.prompts import PromptConfig
from accord.core.room.roles import ParticipantRoleChange
from accord.core.room.state import Category
from accord.core.room.streams import ResponseChunk, ResponseEnd, UsageStats
from accord.core.room.tools import ToolApprove, ToolOutput, ToolPropose, ToolResult
from tests.client.people import a_room, client
from tests.helpers.server import ServerProcess


async def test_a_prompt_is_answered_bit_by_bit(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt(
            "Say hello", "claude", contributors=["alice", "bob"], config=PromptConfig(max_tokens=9)
        )
        async with room.claude.respond(asked) as out:
            for bit in ("Hel", "lo"):
                await out.write(bit)
            out.usage = UsageStats(3, 2, model="scripted")
            out.finish_reason = "max_tokens"

        end = await room.hers.until(lambda said: isinstance(said.body, ResponseEnd))
        assert end.body == ResponseEnd("max_tokens", UsageStats(3, 2, model="scripted"))
        chunks = [said for said in room.hers.heard if isinstance(said.body, ResponseChunk)]
        assert [(said.body, said.ref) for said in chunks] == [
            (ResponseChunk("Hel"), out.id),
            (ResponseChunk("lo"), out.id),
        ]


async def test_an_answer_that_fails_ends_for_everybody(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt("Divide by zero", "claude")
        with pytest.raises(ZeroDivisionError):
            async with room.claude.respond(asked) as out:
                await out.write(str(1 // 0))

        end = await room.hers.until(lambda said: isinstance(said.body, ResponseEnd))
        assert end.body == ResponseEnd("error")
        assert end.ref == out.id


async def test_an_answer_that_is_stopped_ends_for_everybody(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt("Go on for ever", "claude")
        started = asyncio.Event()

        async def answer() -> None:
            async with room.claude.respond(asked) as out:
                await out.write("…")
                started.set()
                await asyncio.Event().wait()

        answering = asyncio.create_task(answer())
        await started.wait()
        answering.cancel()

        end = await room.hers.until(lambda said: isinstance(said.body, ResponseEnd))
        assert end.body == ResponseEnd("interrupted")
        with pytest.raises(asyncio.CancelledError):
            await answering


async def test_two_answers_at_once_do_not_mix(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = [await room.alice.prompt(text, "claude") for text in "ab"]
        async with room.claude.respond(asked[0]) as one, room.claude.respond(asked[1]) as two:
            for number in range(20):
                await one.write(f"a{number} ")
                await two.write(f"b{number} ")
        last = await room.hers.until(
            lambda said: said.type == "response.end" and said.ref == one.id
        )
        await room.hers.until_seq(last.seq)

        texts = {one.id: "", two.id: ""}
        for said in room.hers.heard:
            if isinstance(said.body, ResponseChunk):
                texts[said.ref or ""] += said.body.text
        assert texts[one.id] == "".join(f"a{number} " for number in range(20))
        assert texts[two.id] == "".join(f"b{number} " for number in range(20))


async def test_a_tool_from_proposal_to_result(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt("List the files", "claude")
        proposal = await room.claude.propose(
            "shell",
            {"command": ["ls"]},
            category=Category.SHELL_EXECUTE,
            risk="high",
            description="List",
            suggested_approvers=["bob"],
            prompt=asked,
        )
        await room.his.until(lambda said: said.id == proposal)
        await room.bob.approve(proposal, "Fine")
        granted = await room.claude.decision(proposal)
        await room.claude.execute(granted)
        await room.claude.output(granted, "a b\n")
        await room.claude.output(granted, "", "stderr", complete=True)
        done = await room.claude.result(granted, success=True, duration_ms=5, result={"files": 2})
        await room.hers.until_seq(done.seq)

        said = {type(each.body): each for each in room.hers.heard}
        assert said[ToolPropose].ref == asked
        assert said[ToolPropose].body.requires_approval  # type: ignore[attr-defined]
        assert said[ToolApprove].body == ToolApprove(proposal, "bob", "Fine")
        assert said[ToolOutput].ref == proposal
        assert said[ToolResult].body.result == {"files": 2}  # type: ignore[attr-defined]
        assert granted.grant is not None
        assert granted.approved_by == ("bob",)
        # Asked again, it answers the same, as long as one listens.
        assert await room.claude.decision(proposal) == granted
        assert await room.hers.session.decision(proposal) == granted


async def test_what_needs_no_approval_is_granted_at_once(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        proposal = await room.claude.propose("cat", {"path": "x"}, category="file_read")

        assert (await room.claude.decision(proposal)).approved_by == ()


async def test_who_waits_is_told_that_the_session_ended_first(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        waiting = asyncio.create_task(room.claude.decision(proposal))
        await room.alice.end("Out of time")

        with pytest.raises(Rejected, match="The session ended first") as no:
            await waiting
        assert no.value.by == "system"


async def test_a_gate_for_something_one_has_said(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        asked = await room.alice.prompt("Deploy?", "claude")
        gate = await room.alice.request_gate(asked, "deploy", AnyOf(1), message="Shall we?")
        heard = await room.his.until(lambda said: isinstance(said.body, GateRequest))
        assert (heard.id, heard.ref) == (gate, asked)

        vote = await room.bob.approve(gate)

        assert (await room.hers.until_seq(vote.seq)).type == "gate.approve"


async def test_members_and_rules_change(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        await room.bob.announce("Robert", metadata={"pronouns": "he"})
        await room.alice.change_roles("bob", ["approver", "driver"], [Role.OBSERVER], "Holiday")
        await room.bob.presence("away")
        last = await room.alice.configure("Fewer", max_participants=4)
        await room.its.until_seq(last.seq)

        kept = [each.body for each in room.its.kept]
        names = [each.name for each in kept if isinstance(each, ParticipantAnnounce)]
        assert names[-1] == "Robert"
        (change,) = [each for each in kept if isinstance(each, ParticipantRoleChange)]
        assert (change.participant, change.new_roles) == ("bob", (Role.OBSERVER,))
        assert kept[-1] == SessionConfigUpdate({"max_participants": 4}, "Fewer")
        async with client(hall, "alice") as reader:
            assert (await reader.session(room.alice.id)).config.max_participants == 4


async def test_a_creator_may_join_for_more_roles(hall: ServerProcess) -> None:
    async with client(hall, "alice") as alice:
        session = await alice.create()
        same = await alice.join(session.id, roles=["driver"], name="Alice A.")
        (member,) = (await alice.session(session.id)).members

        assert same.id == session.id
        assert (member.name, member.roles) == ("Alice A.", ("admin", "driver"))


async def test_a_creator_is_an_admin_and_nothing_else_after_a_restart(
    server: ServerProcess,
) -> None:
    async with client(server, "alice") as alice:
        session = await alice.create()
        await asyncio.to_thread(server.restart)
        await session.presence("active")
        (member,) = (await alice.session(session.id)).members

        assert member.roles == ("admin",)


async def test_after_the_end_there_is_nothing_to_hear_or_say(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        await room.alice.end("Done", "aborted")
        for ear in (room.hers, room.his, room.its):
            assert (await ear.end())[-1].type == "session.end"

        with pytest.raises(SessionOver):
            await room.bob.prompt("Hello?", "claude")
        with pytest.raises(ClientError):
            await room.claude.decision("p")


def test_the_usual_rules_gate_everything_but_reading() -> None:
    rules = usual_config(max_participants=3)

    assert rules.max_participants == 3
    assert set(Category) - set(rules.require_approval_for) == {Category.FILE_READ, Category.ALL}
