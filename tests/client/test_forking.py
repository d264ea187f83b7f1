"""Forks, merges and interrupts, from Python."""

import pytest

from accord.client import Envelope, ServerRefused
from accord.core.room.forks import ForkCreate, ForkSwitch
from accord.core.room.gates import GateRequest
from accord.core.room.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.merges import MergeExecute
from accord.core.room.prompts import PromptSubmit
from accord.core.room.streams import ResponseChunk
from tests.client.people import a_room, client
from tests.helpers.server import ServerProcess


def inside(heard: list[Envelope], fork: str) -> list[str]:
    """What was said in a fork, its creation aside."""
    return [each.type for each in heard if each.fork == fork and each.type != "fork.create"]


async def test_a_fork_is_for_its_members_until_it_comes_back(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        await room.alice.add_context("plan", "Rewrite it")
        fork = await room.alice.fork("Try a grammar", ["claude"], reason="Could be shorter")
        aside = room.alice.within(fork)
        prompt = await aside.prompt("Would a grammar do?", "claude")
        await room.its.until(lambda each: each.id == prompt)
        branch = room.claude.within(fork)
        async with branch.respond(prompt) as out:
            await out.write("Yes.")
        await branch.add_context("finding", "A grammar of 12 rules will do")
        await room.alice.within(fork).switch(fork)

        assert (fork, aside.fork_id, aside.id) == ("try-a-grammar", fork, room.alice.id)
        with pytest.raises(ServerRefused, match="no fork"):
            await room.bob.within(fork).prompt("What is this?", "claude")
        quiet = list(room.his.heard)

        merge = await room.alice.propose_merge(fork, "It does")
        await room.alice.execute_merge(merge)
        await room.his.until(lambda each: isinstance(each.body, MergeExecute))
        await room.alice.within(None).update_context("finding", "A grammar will do")
        with pytest.raises(ServerRefused, match="was merged"):
            await aside.prompt("And now?", "claude")
        async with client(hall, "bob") as reader:
            read = [each async for each in reader.history(room.alice.id)]

    assert inside(quiet, fork) == []
    assert any(isinstance(each.body, ForkCreate) and each.fork == fork for each in room.his.heard)
    assert "prompt.submit" in inside(room.its.heard, fork)
    assert any(isinstance(each.body, ForkSwitch) for each in room.his.heard)
    assert [each.body.text for each in read if isinstance(each.body, ResponseChunk)] == ["Yes."]


async def test_what_is_said_in_a_fork_cannot_be_read_over_http_either(
    hall: ServerProcess,
) -> None:
    async with a_room(hall) as room:
        fork = await room.alice.fork("Aside", ["claude"])
        prompt = await room.alice.within(fork).prompt("Between us", "claude")
        async with client(hall, "bob") as reader, client(hall, "claude") as member:
            his = [each async for each in reader.history(room.alice.id)]
            its = [each async for each in member.history(room.alice.id)]

    assert inside(his, fork) == []
    assert [each.id for each in its if isinstance(each.body, PromptSubmit)] == [prompt]


async def test_a_conflict_waits_for_an_answer(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        for key in ("a", "b", "c"):
            await room.alice.add_context(key, "before")
        fork = await room.alice.fork("Both", ["claude"])
        for key in ("a", "b", "c"):
            await room.alice.update_context(key, "trunk")
            await room.alice.within(fork).update_context(key, "fork")
        merge = await room.alice.propose_merge(fork, "Both changed", strategy="manual")

        with pytest.raises(ServerRefused, match="Unresolved") as no:
            await room.alice.execute_merge(merge)
        assert no.value.details["conflicts"] == ["a", "b", "c"]
        done = await room.alice.execute_merge(
            merge, use_source=["a"], use_target=["b"], custom={"c": "both"}
        )

    assert done.echo is not None
    assert isinstance(done.echo.body, MergeExecute)
    answers = done.echo.body.resolved_conflicts or ()
    assert [(each.conflict_id, each.resolution, each.custom_value) for each in answers] == [
        *(("a", "use_source", None), ("b", "use_target", None), ("c", "custom", "both")),
    ]


async def test_an_agents_merge_is_gated(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        fork = await room.alice.fork("Agent", ["claude"])
        merge = await room.claude.propose_merge(fork, "Take it")
        gate = await room.hers.until(lambda each: isinstance(each.body, GateRequest))
        with pytest.raises(ServerRefused, match="not approved"):
            await room.claude.execute_merge(merge)
        await room.alice.approve(gate.id)
        await room.claude.execute_merge(merge)


async def test_a_stopped_agent_stays_stopped_until_it_is_asked_again(
    hall: ServerProcess,
) -> None:
    async with a_room(hall) as room:
        await room.alice.prompt("Go", "claude")
        stop = await room.bob.interrupt("stop", "Wait", "claude", inject="The branch is wrong")
        said = await room.its.until(lambda each: isinstance(each.body, InterruptRaise))
        with pytest.raises(ServerRefused, match="INVALID_STATE"):
            await room.claude.propose("shell", {"argv": ["ls"]}, category="shell_execute")
        with pytest.raises(ServerRefused, match="cannot be ignored"):
            await room.claude.acknowledge(stop, "ignored", "Busy")
        await room.claude.acknowledge(stop, "stopped")
        answer = await room.his.until(lambda each: isinstance(each.body, InterruptAcknowledge))
        await room.alice.prompt("Go on", "claude")
        await room.claude.propose("shell", {"argv": ["ls"]}, category="shell_execute")

    assert isinstance(said.body, InterruptRaise)
    assert said.body.inject_context == "The branch is wrong"
    assert (answer.ref, answer.sender) == (stop, "claude")
