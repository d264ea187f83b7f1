"""Drafts and thinking: what is relayed and forgotten, and what is for some only."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.prompts import PromptDraft
from accord.core.room.streams import ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.engine.cell import MOST_SIGNALS
from tests.engine.conftest import Make
from tests.helpers.engine import Stage
from tests.helpers.forks import START, forks
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, STREAM, changes_roles, joins, prompts
from tests.helpers.room import refused as refusing
from tests.spec import proves


def drafts(*who: Actor, text: str = "Ple") -> PromptDraft:
    return PromptDraft(content=text, contributors=tuple(each.seat for each in who))


def drafted(stage: Stage, seat: str) -> list[dict[str, Any]]:
    """The drafts somebody saw."""
    return [each for each in stage.ears[seat].heard if each["type"] == "prompt.draft"]


@proves("PVP-11.1-2", "OPEN-43")
async def test_a_draft_is_relayed_and_echoed_and_not_kept(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    before = await stage.ids()
    await stage.say(BOB, drafts(BOB), "d")

    for seat in ("alice", "bob", "claude"):
        (seen,) = drafted(stage, seat)
        assert (seen["id"], seen["sender"], seen["payload"]["content"]) == ("d", "bob", "Ple")
        assert "seq" not in seen
    assert await stage.ids() == before


@proves("OPEN-43")
async def test_later_drafts_refer_to_the_first_however_many_there_are(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, drafts(ALICE, BOB), "first")
    for turn in range(MOST_SIGNALS + 10):
        who = (ALICE, BOB)[turn % 2]
        await stage.say(who, drafts(ALICE, BOB, text=f"{turn}"), ref="first")

    assert {each["ref"] for each in drafted(stage, "claude")[1:]} == {"first"}
    assert len(stage.engine.cells[STREAM].signals) == MOST_SIGNALS
    await stage.say(ALICE, prompts(), ref="first")


@proves("OPEN-43", "OPEN-35")
async def test_nobody_refers_to_a_draft_that_never_was(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    with refusing(Why.MALFORMED):
        await stage.say(BOB, drafts(BOB), ref="never")


@proves("OPEN-43", "OPEN-44")
async def test_a_draft_is_no_prompt_to_answer(stage: Stage) -> None:
    await stage.open(BOB, CLAUDE)
    await stage.say(BOB, drafts(BOB), "d")
    with refusing(Why.MALFORMED):
        await stage.say(CLAUDE, ResponseStart("claude", "d"))


@proves("PVP-3.2-1", "OPEN-47", "UNI-12")
async def test_a_draft_in_a_fork_is_seen_and_cited_there_alone(stage: Stage) -> None:
    await stage.open(BOB, CAROL, CLAUDE)
    await stage.say(ALICE, prompts(), START)
    await stage.say(ALICE, forks("Aside", BOB))
    await stage.say(BOB, drafts(BOB), "d", fork="aside")
    await stage.say(ALICE, drafts(ALICE), ref="d", fork="aside")

    assert len(drafted(stage, "alice")) == len(drafted(stage, "bob")) == 2
    assert drafted(stage, "carol") == drafted(stage, "claude") == []
    for body in (drafts(CAROL), prompts()):
        with refusing(Why.MALFORMED):
            await stage.say(CAROL, body, ref="d")


# Thinking


async def thinks(stage: Stage, visible_to: Any) -> None:
    """Claude thinks for some to see; Bob may approve, Carol may not."""
    await stage.open(CAROL, CLAUDE)
    await stage.say(BOB, joins(BOB, Role.APPROVER))
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ThinkingStart("claude", "p", visible_to), "t")
    await stage.say(CLAUDE, ThinkingChunk("hm"), "c", "t")
    await stage.say(CLAUDE, ThinkingEnd("so"), "e", "t")


@proves("OPEN-44", "UNI-12", "PVP-12.1-2")
@pytest.mark.parametrize(
    ("visible_to", "readers"),
    [
        ("all", {"alice", "bob", "carol", "claude"}),
        ("approvers_only", {"alice", "bob", "claude"}),
        (("carol",), {"carol", "claude"}),
    ],
)
async def test_thinking_is_for_whom_it_says_live_and_replayed(
    make: Make, visible_to: Any, readers: set[str]
) -> None:
    stage = make(window=50)
    await thinks(stage, visible_to)
    live = {seat for seat, ear in stage.ears.items() if "hm" in str(ear.heard)}
    assert live == readers

    for who in (ALICE, BOB, CAROL, CLAUDE):
        ear = stage.connect(who)
        await stage.say(who, joins(who, Role.DRIVER))
        assert [id in ear.ids for id in ("t", "c", "e")] == [who.seat in readers] * 3


@proves("OPEN-44")
async def test_approvers_are_those_who_may_approve_when_it_is_said(stage: Stage) -> None:
    await stage.open(CAROL, CLAUDE)
    await stage.say(BOB, joins(BOB, Role.APPROVER))
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ThinkingStart("claude", "p", "approvers_only"), "t")
    await stage.say(ALICE, changes_roles(ALICE, BOB, (Role.APPROVER,), (Role.DRIVER,)))
    await stage.say(ALICE, changes_roles(ALICE, CAROL, (Role.DRIVER,), (Role.NAVIGATOR,)))
    await stage.say(CLAUDE, ThinkingChunk("hm"), "c", "t")

    assert "c" not in stage.ears["bob"].ids
    assert "c" in stage.ears["carol"].ids
    assert "t" not in stage.ears["carol"].ids


@proves("OPEN-35", "UNI-12")
async def test_nobody_refers_to_thinking_they_cannot_see(stage: Stage) -> None:
    await stage.open(CAROL, CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, ThinkingStart("claude", "p", ("alice",)), "t")

    await stage.say(ALICE, prompts(), ref="t")
    for id in ("t", "never"):
        with pytest.raises(Refused, match=f"^No such message here: {id}$"):
            await stage.say(CAROL, prompts(), ref=id)
