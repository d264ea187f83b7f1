"""Prompts that grow before everybody's eyes, change, and are thought about."""

import pytest

from accord.client import ServerRefused
from accord.core.room.prompts import PromptAmend, PromptDraft, PromptSubmit
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from tests.client.people import a_room
from tests.helpers.server import ServerProcess


async def test_two_write_one_draft_and_submit_it(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        hers = room.alice.draft("claude")
        first = await hers.write("Fix")
        assert (first.seq, first.echo is not None, hers.id) == (0, True, first.id)
        await room.his.until(lambda each: each.id == first.id)

        his = room.bob.draft("claude", contributors=["alice"], id=hers.id)
        second = await his.write("Fix the parser")
        prompt = await his.submit(context_keys=["none"])
        said = await room.its.until(lambda each: each.id == prompt)

        heard = [each for each in room.its.heard if isinstance(each.body, PromptDraft)]
        assert [(each.id, each.ref) for each in heard] == [(first.id, None), (second.id, first.id)]
        assert said.ref == first.id
        assert isinstance(said.body, PromptSubmit)
        assert said.body.contributors == ("bob", "alice")
        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await room.alice.draft("nobody").write("Hm")
        with pytest.raises(ValueError, match="which agent"):
            await room.alice.draft().submit()


async def test_a_draft_outlives_a_restart_of_the_server(server: ServerProcess) -> None:
    async with a_room(server) as room:
        draft = room.alice.draft("claude")
        first = await draft.write("Fix")
        server.restart()
        second = await draft.write("Fix the parser")
        prompt = await draft.submit()
        said = await room.its.until(lambda each: each.id == prompt)

    assert second.id != first.id
    assert said.ref == second.id


async def test_a_prompt_can_be_amended_until_it_is_answered(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        prompt = await room.alice.prompt("Fix the parser", "claude")
        await room.alice.amend(prompt, "And the lexer", "It is broken, too")
        said = await room.its.until(lambda each: isinstance(each.body, PromptAmend))
        async with room.claude.respond(prompt) as out:
            await out.write("Done")

        assert said.body == PromptAmend(prompt, "And the lexer", "It is broken, too")
        assert said.ref == prompt
        with pytest.raises(ServerRefused, match="INVALID_STATE"):
            await room.alice.amend(prompt, "And the docs")


async def test_thinking_is_for_whom_it_is_for(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        prompt = await room.alice.prompt("Fix the parser", "claude")
        async with room.claude.think(prompt, visible_to=["alice"]) as mind:
            await mind.write("It is ")
            await mind.write("the brackets.")
            mind.summary = "Brackets"
        end = await room.hers.until(lambda each: isinstance(each.body, ThinkingEnd))
        await room.alice.end("Done")
        his = await room.his.end()

    assert isinstance(end.body, ThinkingEnd)
    assert (end.body.summary, end.ref) == ("Brackets", mind.id)
    chunks = [each.body for each in room.hers.heard if isinstance(each.body, ThinkingChunk)]
    assert [chunk.text for chunk in chunks] == ["It is ", "the brackets."]
    seen = (ThinkingStart, ThinkingChunk, ThinkingEnd)
    assert not any(isinstance(each.body, seen) for each in his)
