"""Draft prompts, amendments and thinking."""

import pytest

from accord.client import ServerRefused
from accord.core.room.conversation.prompts import PromptAmend, PromptDraft, PromptSubmit
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from tests.helpers.clients.three_member_session import open_session
from tests.helpers.servers.server_process import ServerProcess


async def test_two_members_write_one_draft_and_submit_it(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        alice_draft = room.alice.draft("claude")
        first = await alice_draft.write("Fix")
        assert (first.seq, first.echo is not None, alice_draft.id) == (0, True, first.id)
        await room.bob_listener.wait_for(lambda item: item.id == first.id)

        bob_draft = room.bob.draft("claude", contributors=["alice"], id=alice_draft.id)
        second = await bob_draft.write("Fix the parser")
        prompt = await bob_draft.submit(context_keys=["none"])
        message = await room.claude_listener.wait_for(lambda item: item.id == prompt)

        received = [
            item for item in room.claude_listener.received if isinstance(item.body, PromptDraft)
        ]
        assert [(item.id, item.ref) for item in received] == [
            (first.id, None),
            (second.id, first.id),
        ]
        assert message.ref == first.id
        assert isinstance(message.body, PromptSubmit)
        assert message.body.contributors == ("bob", "alice")
        with pytest.raises(ServerRefused, match="PARTICIPANT_NOT_FOUND"):
            await room.alice.draft("nobody").write("Hm")
        with pytest.raises(ValueError, match="Name the agent"):
            await room.alice.draft().submit()


async def test_draft_continues_after_a_server_restart(server: ServerProcess) -> None:
    async with open_session(server) as room:
        draft = room.alice.draft("claude")
        first = await draft.write("Fix")
        server.restart()
        second = await draft.write("Fix the parser")
        prompt = await draft.submit()
        message = await room.claude_listener.wait_for(lambda item: item.id == prompt)

    assert second.id != first.id
    assert message.ref == second.id


async def test_prompt_can_be_amended_until_its_response_ends(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("Fix the parser", "claude")
        await room.alice.amend(prompt, "And the lexer", "It is broken, too")
        message = await room.claude_listener.wait_for(
            lambda item: isinstance(item.body, PromptAmend)
        )
        async with room.claude.respond(prompt) as out:
            await out.write("Done")

        assert message.body == PromptAmend(prompt, "And the lexer", "It is broken, too")
        assert message.ref == prompt
        with pytest.raises(ServerRefused, match="INVALID_STATE"):
            await room.alice.amend(prompt, "And the docs")


async def test_thinking_is_sent_only_to_the_members_it_is_visible_to(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        prompt = await room.alice.prompt("Fix the parser", "claude")
        async with room.claude.think(prompt, visible_to=["alice"]) as thoughts:
            await thoughts.write("It is ")
            await thoughts.write("the brackets.")
            thoughts.summary = "Brackets"
        end = await room.alice_listener.wait_for(lambda item: isinstance(item.body, ThinkingEnd))
        await room.alice.end("Done")
        bob_draft = await room.bob_listener.wait_for_end()

    assert isinstance(end.body, ThinkingEnd)
    assert (end.body.summary, end.ref) == ("Brackets", thoughts.id)
    chunks = [
        item.body for item in room.alice_listener.received if isinstance(item.body, ThinkingChunk)
    ]
    assert [chunk.text for chunk in chunks] == ["It is ", "the brackets."]
    seen = (ThinkingStart, ThinkingChunk, ThinkingEnd)
    assert not any(isinstance(item.body, seen) for item in bob_draft)
