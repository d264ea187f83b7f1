"""Drafts and thinking: relayed and not stored, some for a part of the members only."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.prompts import PromptDraft
from accord.core.room.conversation.responses import ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.engine.streams.stream import MAX_SIGNALS
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness
from tests.helpers.room.logged_room import START_ID, fork_create
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    STREAM,
    prompt_submit,
    role_change,
    session_join,
)
from tests.helpers.room.scenario import expect_refusal as refusing
from tests.spec import proves


def drafts(*who: Actor, text: str = "Ple") -> PromptDraft:
    return PromptDraft(content=text, contributors=tuple(each.principal for each in who))


def drafted(stage: EngineHarness, seat: str) -> list[dict[str, Any]]:
    """The drafts somebody saw."""
    return [each for each in stage.peers[seat].received if each["type"] == "prompt.draft"]


@proves("PVP-11.1-2", "OPEN-43")
async def test_draft_is_relayed_and_echoed_and_not_stored(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    before = await stage.ids()
    await stage.send(BOB, drafts(BOB), "d")

    for seat in ("alice", "bob", "claude"):
        (seen,) = drafted(stage, seat)
        assert (seen["id"], seen["sender"], seen["payload"]["content"]) == ("d", "bob", "Ple")
        assert "seq" not in seen
    assert await stage.ids() == before


@proves("OPEN-43")
async def test_drafts_can_cite_the_first_of_many(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, drafts(ALICE, BOB), "first")
    for turn in range(MAX_SIGNALS + 10):
        who = (ALICE, BOB)[turn % 2]
        await stage.send(who, drafts(ALICE, BOB, text=f"{turn}"), ref="first")

    assert {each["ref"] for each in drafted(stage, "claude")[1:]} == {"first"}
    assert len(stage.engine.streams[STREAM].signals) == MAX_SIGNALS
    await stage.send(ALICE, prompt_submit(), ref="first")


@proves("OPEN-43", "OPEN-35")
async def test_citing_an_unknown_draft_is_refused(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    with refusing(Reason.MALFORMED):
        await stage.send(BOB, drafts(BOB), ref="never")


@proves("OPEN-43", "OPEN-44")
async def test_draft_cannot_be_answered(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CLAUDE)
    await stage.send(BOB, drafts(BOB), "d")
    with refusing(Reason.MALFORMED):
        await stage.send(CLAUDE, ResponseStart("claude", "d"))


@proves("PVP-3.2-1", "OPEN-47", "UNI-12")
async def test_fork_draft_is_visible_and_citable_in_the_fork_only(stage: EngineHarness) -> None:
    await stage.open_room(BOB, CAROL, CLAUDE)
    await stage.send(ALICE, prompt_submit(), START_ID)
    await stage.send(ALICE, fork_create("Aside", BOB))
    await stage.send(BOB, drafts(BOB), "d", fork="aside")
    await stage.send(ALICE, drafts(ALICE), ref="d", fork="aside")

    assert len(drafted(stage, "alice")) == len(drafted(stage, "bob")) == 2
    assert drafted(stage, "carol") == drafted(stage, "claude") == []
    for body in (drafts(CAROL), prompt_submit()):
        with refusing(Reason.MALFORMED):
            await stage.send(CAROL, body, ref="d")


# Thinking


async def thinks(stage: EngineHarness, visible_to: Any) -> None:
    """Claude thinks for some to see; Bob may approve, Carol may not."""
    await stage.open_room(CAROL, CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.APPROVER))
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ThinkingStart("claude", "p", visible_to), "t")
    await stage.send(CLAUDE, ThinkingChunk("hm"), "c", "t")
    await stage.send(CLAUDE, ThinkingEnd("so"), "e", "t")


@proves("OPEN-44", "UNI-12", "PVP-12.1-2")
@pytest.mark.parametrize(
    ("visible_to", "readers"),
    [
        ("all", {"alice", "bob", "carol", "claude"}),
        ("approvers_only", {"alice", "bob", "claude"}),
        (("carol",), {"carol", "claude"}),
    ],
)
async def test_thinking_reaches_its_audience_live_and_replayed(
    make: Make, visible_to: Any, readers: set[str]
) -> None:
    stage = make(window=50)
    await thinks(stage, visible_to)
    live = {seat for seat, ear in stage.peers.items() if "hm" in str(ear.received)}
    assert live == readers

    for who in (ALICE, BOB, CAROL, CLAUDE):
        ear = stage.connect(who)
        await stage.send(who, session_join(who, Role.DRIVER))
        assert [id in ear.ids for id in ("t", "c", "e")] == [who.principal in readers] * 3


@proves("OPEN-44")
async def test_thinking_for_approvers_uses_rights_at_the_time(stage: EngineHarness) -> None:
    await stage.open_room(CAROL, CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.APPROVER))
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t")
    await stage.send(ALICE, role_change(ALICE, BOB, (Role.APPROVER,), (Role.DRIVER,)))
    await stage.send(ALICE, role_change(ALICE, CAROL, (Role.DRIVER,), (Role.NAVIGATOR,)))
    await stage.send(CLAUDE, ThinkingChunk("hm"), "c", "t")

    assert "c" not in stage.peers["bob"].ids
    assert "c" in stage.peers["carol"].ids
    assert "t" not in stage.peers["carol"].ids


@proves("OPEN-35", "UNI-12")
async def test_citing_invisible_thinking_is_refused(stage: EngineHarness) -> None:
    await stage.open_room(CAROL, CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, ThinkingStart("claude", "p", ("alice",)), "t")

    await stage.send(ALICE, prompt_submit(), ref="t")
    for id in ("t", "never"):
        with pytest.raises(Refused, match=f"^No such message here: {id}$"):
            await stage.send(CAROL, prompt_submit(), ref=id)
