"""Forks, merges and interrupts, from Python."""

import pytest

from accord.client import Envelope, ServerRefused
from accord.core.room.approval.gates import GateRequest
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.forking.merges import MergeExecute
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.servers.server_process import ServerProcess


def inside(received: list[Envelope], fork: str) -> list[str]:
    """The types of the messages in a fork, without its creation."""
    return [item.type for item in received if item.fork == fork and item.type != "fork.create"]


async def test_fork_is_visible_only_to_its_members_until_merged(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        await room.alice.add_context("plan", "Rewrite it")
        fork = await room.alice.fork("Try a grammar", ["claude"], reason="Could be shorter")
        aside = room.alice.within(fork)
        prompt = await aside.prompt("Would a grammar do?", "claude")
        await room.claude_listener.wait_for(lambda item: item.id == prompt)
        branch = room.claude.within(fork)
        async with branch.respond(prompt) as out:
            await out.write("Yes.")
        await branch.add_context("finding", "A grammar of 12 rules will do")
        await room.alice.within(fork).switch(fork)

        assert (fork, aside.fork_id, aside.id) == ("try-a-grammar", fork, room.alice.id)
        with pytest.raises(ServerRefused, match="no fork"):
            await room.bob.within(fork).prompt("What is this?", "claude")
        quiet = list(room.bob_listener.received)

        merge = await room.alice.propose_merge(fork, "It does")
        await room.alice.execute_merge(merge)
        await room.bob_listener.wait_for(lambda item: isinstance(item.body, MergeExecute))
        await room.alice.within(None).update_context("finding", "A grammar will do")
        with pytest.raises(ServerRefused, match="was merged"):
            await aside.prompt("And now?", "claude")
        async with make_client(shared_server, "bob") as reader:
            read = [item async for item in reader.history(room.alice.id)]

    assert inside(quiet, fork) == []
    assert any(
        isinstance(item.body, ForkCreate) and item.fork == fork
        for item in room.bob_listener.received
    )
    assert "prompt.submit" in inside(room.claude_listener.received, fork)
    assert any(isinstance(item.body, ForkSwitch) for item in room.bob_listener.received)
    assert [item.body.text for item in read if isinstance(item.body, ResponseChunk)] == ["Yes."]


async def test_transcript_over_http_hides_forks_of_others(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        fork = await room.alice.fork("Aside", ["claude"])
        prompt = await room.alice.within(fork).prompt("Between us", "claude")
        async with (
            make_client(shared_server, "bob") as reader,
            make_client(shared_server, "claude") as member,
        ):
            his = [item async for item in reader.history(room.alice.id)]
            its = [item async for item in member.history(room.alice.id)]

    assert inside(his, fork) == []
    assert [item.id for item in its if isinstance(item.body, PromptSubmit)] == [prompt]


async def test_merge_with_conflicts_is_refused_until_they_are_resolved(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        for key in ("a", "b", "c"):
            await room.alice.add_context(key, "before")
        fork = await room.alice.fork("Both", ["claude"])
        for key in ("a", "b", "c"):
            await room.alice.update_context(key, "trunk")
            await room.alice.within(fork).update_context(key, "fork")
        merge = await room.alice.propose_merge(fork, "Both changed", strategy="manual")

        with pytest.raises(ServerRefused, match="Unresolved") as refusal:
            await room.alice.execute_merge(merge)
        assert refusal.value.details["conflicts"] == ["a", "b", "c"]
        done = await room.alice.execute_merge(
            merge, use_source=["a"], use_target=["b"], custom={"c": "both"}
        )

    assert done.echo is not None
    assert isinstance(done.echo.body, MergeExecute)
    answers = done.echo.body.resolved_conflicts or ()
    assert [(item.conflict_id, item.resolution, item.custom_value) for item in answers] == [
        *(("a", "use_source", None), ("b", "use_target", None), ("c", "custom", "both")),
    ]


async def test_merge_proposed_by_an_agent_needs_approval(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        fork = await room.alice.fork("Agent", ["claude"])
        merge = await room.claude.propose_merge(fork, "Take it", head="c" * 40)
        gate = await room.alice_listener.wait_for(lambda item: isinstance(item.body, GateRequest))
        assert isinstance(gate.body, GateRequest)
        assert f"{fork} at commit cccccccccccc into" in (gate.body.message or "")
        with pytest.raises(ServerRefused, match="not approved"):
            await room.claude.execute_merge(merge)
        await room.alice.approve(gate.id)
        await room.claude.execute_merge(merge)


async def test_stopped_agent_is_refused_until_the_next_prompt(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        await room.alice.prompt("Go", "claude")
        stop = await room.bob.interrupt("stop", "Wait", "claude", inject="The branch is wrong")
        message = await room.claude_listener.wait_for(
            lambda item: isinstance(item.body, InterruptRaise)
        )
        with pytest.raises(ServerRefused, match="INVALID_STATE"):
            await room.claude.propose("shell", {"argv": ["ls"]}, category="shell_execute")
        with pytest.raises(ServerRefused, match="cannot be ignored"):
            await room.claude.acknowledge(stop, "ignored", "Busy")
        await room.claude.acknowledge(stop, "stopped")
        answer = await room.bob_listener.wait_for(
            lambda item: isinstance(item.body, InterruptAcknowledge)
        )
        await room.alice.prompt("Go on", "claude")
        await room.claude.propose("shell", {"argv": ["ls"]}, category="shell_execute")

    assert isinstance(message.body, InterruptRaise)
    assert message.body.inject_context == "The branch is wrong"
    assert (answer.ref, answer.sender) == (stop, "claude")
