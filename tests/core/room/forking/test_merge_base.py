"""Since when two forks have changed: which past they share."""

import pytest

from accord.core.kernel.refusal import Reason
from accord.core.room.forking.fork_state import MergeStrategy
from tests.helpers.room.logged_room import (
    LoggedRoom,
    context_remove,
    context_update,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.merge_scenarios import room_with_fork, with_conflict
from tests.helpers.room.scenario import ALICE, BOB, CAROL, expect_refusal, gate_approve


def test_a_nested_fork_brings_home_all_that_its_branch_has_learnt() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_update("a", "outer"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.send(BOB, context_update("b", "inner"), fork=inner)

    talk.merge(inner)

    assert talk.context() == {"a": "outer", "b": "inner"}


def test_what_the_trunk_did_meanwhile_is_seen_from_a_nested_fork() -> None:
    talk = room_with_fork()
    with_conflict(talk)
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    merge = talk.propose_merge(inner)

    with expect_refusal(Reason.WRONG_STATE, "Unresolved conflicts: a"):
        talk.decide(BOB, merge_execute(merge))


def test_a_nested_fork_goes_back_to_where_it_left() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_update("a", "outer"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.send(BOB, context_update("a", "inner"), fork=inner)

    talk.merge(inner, "aside")

    assert talk.context("aside")["a"] == "inner"
    assert talk.context()["a"] == "old"


def test_a_fork_may_go_on_in_one_that_left_it() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_update("a", "before"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.send(BOB, context_update("b", "after"), fork="aside")

    talk.merge("aside", inner)

    assert talk.context(inner) == {"a": "before", "b": "after"}


def test_forks_side_by_side_share_the_past_of_the_older() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_update("a", "aside"), fork="aside")
    talk.send(CAROL, context_update("a", "trunk"))
    other = talk.fork("Other", BOB, copy=True)

    for source, target in (("aside", other), (other, "aside")):
        merge = merge_execute("m")
        trial = LoggedRoom(talk.room)
        trial.log, trial.version = list(talk.log), talk.version
        trial.send(ALICE, merge_propose(source, target), id="m")
        with expect_refusal(Reason.WRONG_STATE, "Unresolved conflicts: a"):
            trial.decide(ALICE, merge)


@pytest.mark.parametrize("strategy", [MergeStrategy.APPEND, MergeStrategy.REPLACE])
def test_what_one_merge_removed_or_changed_is_a_change_for_the_next(
    strategy: MergeStrategy,
) -> None:
    talk = room_with_fork()
    talk.fork("Other", BOB, copy=True)
    talk.send(BOB, context_update("a", "aside"), fork="aside")
    talk.send(BOB, context_remove("b"), fork="aside")
    for key in ("a", "b"):
        talk.send(BOB, context_update(key, "other"), fork="other")
    talk.send(ALICE, merge_propose("aside", strategy=strategy), id="m")
    if strategy is MergeStrategy.REPLACE:
        talk.send(CAROL, gate_approve(CAROL, "m"))
    talk.send(ALICE, merge_execute("m"))

    merge = talk.propose_merge("other")

    with expect_refusal(Reason.WRONG_STATE, "Unresolved conflicts: a, b"):
        talk.decide(ALICE, merge_execute(merge))


def test_what_replacing_took_back_is_a_change_for_the_next() -> None:
    talk = room_with_fork()
    talk.send(CAROL, context_update("a", "later"))
    talk.fork("Other", BOB, copy=True)
    talk.send(BOB, context_update("a", "other"), fork="other")
    talk.send(ALICE, merge_propose("aside", strategy=MergeStrategy.REPLACE), id="m")
    talk.send(CAROL, gate_approve(CAROL, "m"))
    talk.send(ALICE, merge_execute("m"))
    assert talk.context()["a"] == "old"

    merge = talk.propose_merge("other")

    with expect_refusal(Reason.WRONG_STATE, "Unresolved conflicts: a"):
        talk.decide(ALICE, merge_execute(merge))


def test_what_a_merge_left_alone_is_no_change() -> None:
    talk = room_with_fork()
    talk.fork("Other", BOB, copy=True)
    talk.send(BOB, context_update("a", "aside"), fork="aside")
    talk.send(BOB, context_update("b", "other"), fork="other")
    talk.merge("aside")

    talk.merge("other")

    assert talk.context() == {"a": "aside", "b": "other"}
