"""What the decision behind a commit tells of a merge."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.merges import MergeExecute
from accord.core.views.commit_decision.decision_builder import CommitRange, records_in_range
from accord.core.views.commit_decision.draft_decision import draft_decision
from tests.helpers.room.commit_decisions import (
    decision_of,
    records_with_seq,
    room_with_approver_and_agent,
)
from tests.helpers.room.logged_room import context_add, context_update, fork_create, merge_propose
from tests.helpers.room.scenario import BOB, CAROL, CLAUDE, gate_approve, tool_reject
from tests.spec import proves


@proves("GIT-MAP-2", "PVP-18.5-1")
def test_a_merge_tells_which_fork_came_back_and_how_conflicts_were_settled() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, context_add("plan", "one"), id="c")
    talk.send(CAROL, fork_create("Try it", BOB, CLAUDE, copy=True), id="f")
    first = decision_of(talk)
    talk.send(CAROL, context_update("plan", "two"), fork="try-it")
    talk.send(CAROL, context_update("plan", "three"))
    talk.send(CAROL, merge_propose("try-it"), id="m")
    waiting = decision_of(talk, first.until)
    settled = (MergeResolution("plan", "use_source"),)
    talk.send(CAROL, MergeExecute("m", settled), id="x")
    made = decision_of(talk, first.until)
    alone = decision_of(talk, waiting.until)

    (asked,), (back,) = waiting.merges, made.merges
    assert (asked.fork, asked.branch, asked.done) == ("try-it", "pvp/try-it", False)
    assert (back.id, back.strategy, back.summary, back.done) == ("m", "append", "It works", True)
    assert back.by == ("human:carol",)
    assert [(each.key, each.resolution) for each in back.settled] == [("plan", "use_source")]
    assert alone.merges == made.merges
    assert "human:carol" in alone.decided_by
    assert made.alternatives_considered == waiting.alternatives_considered == ()
    assert "m" in made.pvp_messages
    assert "x" in made.pvp_messages


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"not_chosen": {"bucket": "It refills too early", "other": 7}}, "It refills too early"),
        ({"not_chosen": {"bucket": 7}}, ""),
        ({"not_chosen": ["bucket"]}, ""),
        ({}, ""),
    ],
)
def test_fork_that_was_not_chosen_has_the_reason_given_with_the_merge(
    metadata: dict[str, Any], reason: str
) -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Bucket", BOB, CLAUDE), id="f")
    talk.send(CAROL, fork_create("Window", BOB, CLAUDE), id="g")
    talk.send(CAROL, replace(merge_propose("window"), metadata=metadata), id="m")
    talk.send(CAROL, MergeExecute("m"), id="x")

    (other,) = decision_of(talk).alternatives_considered
    assert (other.kind, other.id, other.reason) == ("fork", "bucket", reason)


def test_a_merge_that_was_refused_is_no_merge() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    talk.send(CLAUDE, merge_propose("try"), id="m")
    talk.send(BOB, tool_reject(BOB, "m", "Not yet"), id="no")

    assert decision_of(talk).merges == ()


def test_a_merge_whose_proposal_is_not_for_all_is_not_told() -> None:
    talk = room_with_approver_and_agent()
    talk.send(CAROL, fork_create("Try", BOB, CLAUDE), id="f")
    talk.send(CAROL, merge_propose("try"), id="m")
    talk.send(CAROL, MergeExecute("m"), id="x")
    records = [each for each in records_with_seq(talk) if each.id != "m"]
    stretch = CommitRange(talk.room, "repo")

    found = draft_decision(stretch, records_in_range(stretch, records), {})

    assert found is not None
    assert found.decision.merges == ()
    assert "x" not in found.decision.pvp_messages


@proves("OPEN-48")
def test_a_value_that_the_gate_did_not_show_is_marked_in_the_record() -> None:
    talk = room_with_approver_and_agent()
    for key in ("plan", "other"):
        talk.send(CAROL, context_add(key, "one"))
    talk.send(CAROL, fork_create("Try it", BOB, CLAUDE, copy=True), id="f")
    for key in ("plan", "other"):
        talk.send(CAROL, context_update(key, "two"), fork="try-it")
        talk.send(CAROL, context_update(key, "three"))
    talk.send(CLAUDE, merge_propose("try-it"), id="m")
    talk.send(BOB, gate_approve(BOB, "m"))
    own = MergeResolution("plan", "custom", "four")
    talk.send(CAROL, MergeExecute("m", (own, MergeResolution("other", "use_source"))))

    (merge,) = decision_of(talk).merges

    marks = [(each.key, each.resolution, each.not_approved) for each in merge.settled]
    assert marks == [("plan", "custom", True), ("other", "use_source", False)]
