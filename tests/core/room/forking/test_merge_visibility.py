"""What is restricted stays so through a merge."""

import pytest

from accord.core.kernel.refusal import Reason
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergeExecute, MergeExecuted
from tests.helpers.room.logged_room import (
    LoggedRoom,
    context_add,
    context_update,
    member_ids,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.merge_scenarios import room_of_five, room_with_fork, with_conflict
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    expect_refusal,
    gate_approve,
)
from tests.spec import proves


@proves("OPEN-48", "UNI-12")
def test_what_is_restricted_stays_so() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_add("ours", to=["claude"]), fork="aside")
    talk.send(BOB, context_add("a", "again", to=["claude"]), fork="aside")

    talk.merge("aside")

    assert talk.context_items()["ours"].visible_to == member_ids("claude")
    assert talk.context_items()["a"].visible_to == member_ids("claude")


@proves("OPEN-39", "OPEN-48")
@pytest.mark.parametrize("strategy", [MergeStrategy.APPEND, MergeStrategy.REPLACE])
def test_a_copy_comes_back_to_all_whom_its_original_was_for(strategy: MergeStrategy) -> None:
    talk = room_of_five()
    talk.send(BOB, context_add("some", "old", to=["bob", "codex", "claude"]))
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.send(BOB, context_update("some", "new"), fork=fork)
    talk.send(BOB, merge_propose(fork, strategy=strategy), id="m")
    if strategy is MergeStrategy.REPLACE:
        talk.send(CAROL, gate_approve(CAROL, "m"))

    talk.send(BOB, merge_execute("m"))

    assert talk.context()["some"] == "new"
    assert talk.context_items()["some"].visible_to == member_ids("bob", "codex", "claude")


@proves("OPEN-48", "UNI-12")
def test_how_restricted_items_were_settled_is_not_told_to_all() -> None:
    talk = with_conflict(with_private())
    merge = talk.propose_merge("aside", by=BOB)
    body = merge_execute(merge, {"a": "use_source", "private": ["both"]})

    facts = talk.send(BOB, body)

    (executed,) = (each for each in facts.records if isinstance(each.event, MergeExecuted))
    assert isinstance(executed.said, MergeExecute)
    assert executed.said.resolved_conflicts == (MergeResolution("a", "use_source"),)
    assert talk.context()["private"] == "both"
    assert talk.context_items()["private"].visible_to == member_ids("bob", "claude", "codex")
    assert body.is_retry_of(executed.said)


@proves("OPEN-48", "UNI-12")
def test_that_a_restricted_item_has_a_value_nobody_approved_is_not_told_to_all() -> None:
    talk = with_conflict(with_private())
    talk.send(CLAUDE, merge_propose("aside"), id="m")
    talk.send(BOB, gate_approve(BOB, "m"))

    facts = talk.send(BOB, merge_execute("m", {"a": ["mine"], "private": ["both"]}))

    (executed,) = (each for each in facts.records if isinstance(each.event, MergeExecuted))
    assert isinstance(executed.said, MergeExecute)
    assert executed.said.not_approved == ("a",)


def with_private() -> LoggedRoom:
    """`a` is for all, `private` for Bob and the agents; the latter changed on both sides."""
    talk = room_of_five()
    talk.send(BOB, context_add("a", "old"))
    talk.send(BOB, context_add("private", "old", to=["claude", "codex", "bob"]))
    talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.send(CLAUDE, context_update("private", "ours"), fork="aside")
    talk.send(CODEX, context_update("private", "theirs"))
    return talk


@proves("OPEN-48", "UNI-12")
def test_whoever_cannot_see_a_conflict_does_not_learn_of_it() -> None:
    talk = with_private()
    merge = talk.propose_merge("aside", by=ALICE)

    with expect_refusal(
        Reason.FORBIDDEN,
        "^Some conflicts are about context items that you cannot read;"
        " a member who can must execute the merge$",
    ):
        talk.decide(ALICE, merge_execute(merge))
    assert talk.allows(BOB, merge_execute(merge, {"private": "use_target"}))


@proves("OPEN-48")
def test_a_value_of_ones_own_is_for_those_who_could_see_both() -> None:
    talk = room_of_five()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(BOB, context_add("notes", "1", to=["bob", "claude"]), fork=fork)
    talk.send(CAROL, context_add("notes", "2", to=["bob", "codex"]))

    talk.merge(fork, by=BOB, answers={"notes": ["3"]})

    assert talk.context_items()["notes"].visible_to == member_ids("bob")


@proves("OPEN-36")
def test_a_merge_done_again_is_the_same_whatever_was_taken_out() -> None:
    sent = merge_execute("m", {"a": "use_source", "b": ["both"]})

    assert sent.is_retry_of(sent)
    assert sent.is_retry_of(merge_execute("m", {"a": "use_source"}))
    assert sent.is_retry_of(merge_execute("m"))
    assert not merge_execute("m").is_retry_of(sent)
    assert not sent.is_retry_of(merge_execute("other"))
    assert not sent.is_retry_of(merge_propose("aside"))
