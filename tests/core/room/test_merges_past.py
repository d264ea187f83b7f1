"""Since when two forks have changed: which past they share."""

import pytest

from accord.core.kernel.refusal import Why
from accord.core.room.state import Strategy
from tests.helpers.forks import Talk, executes_merge, merges, removes, updates
from tests.helpers.merging import aside, changed
from tests.helpers.room import ALICE, BOB, CAROL, approves, refused


def test_a_nested_fork_brings_home_all_that_its_branch_has_learnt() -> None:
    talk = aside()
    talk.says(BOB, updates("a", "outer"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.says(BOB, updates("b", "inner"), fork=inner)

    talk.merges(inner)

    assert talk.shelf() == {"a": "outer", "b": "inner"}


def test_what_the_trunk_did_meanwhile_is_seen_from_a_nested_fork() -> None:
    talk = aside()
    changed(talk)
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    merge = talk.proposes_merge(inner)

    with refused(Why.WRONG_STATE, "Unresolved: a"):
        talk.tries(BOB, executes_merge(merge))


def test_a_nested_fork_goes_back_to_where_it_left() -> None:
    talk = aside()
    talk.says(BOB, updates("a", "outer"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.says(BOB, updates("a", "inner"), fork=inner)

    talk.merges(inner, "aside")

    assert talk.shelf("aside")["a"] == "inner"
    assert talk.shelf()["a"] == "old"


def test_a_fork_may_go_on_in_one_that_left_it() -> None:
    talk = aside()
    talk.says(BOB, updates("a", "before"), fork="aside")
    inner = talk.fork("Inner", BOB, copy=True, fork="aside")
    talk.says(BOB, updates("b", "after"), fork="aside")

    talk.merges("aside", inner)

    assert talk.shelf(inner) == {"a": "before", "b": "after"}


def test_forks_side_by_side_share_the_past_of_the_older() -> None:
    talk = aside()
    talk.says(BOB, updates("a", "aside"), fork="aside")
    talk.says(CAROL, updates("a", "trunk"))
    other = talk.fork("Other", BOB, copy=True)

    for source, target in (("aside", other), (other, "aside")):
        merge = executes_merge("m")
        trial = Talk(talk.room)
        trial.log, trial.version = list(talk.log), talk.version
        trial.says(ALICE, merges(source, target), id="m")
        with refused(Why.WRONG_STATE, "Unresolved: a"):
            trial.tries(ALICE, merge)


@pytest.mark.parametrize("strategy", [Strategy.APPEND, Strategy.REPLACE])
def test_what_one_merge_removed_or_changed_is_a_change_for_the_next(strategy: Strategy) -> None:
    talk = aside()
    talk.fork("Other", BOB, copy=True)
    talk.says(BOB, updates("a", "aside"), fork="aside")
    talk.says(BOB, removes("b"), fork="aside")
    for key in ("a", "b"):
        talk.says(BOB, updates(key, "other"), fork="other")
    talk.says(ALICE, merges("aside", strategy=strategy), id="m")
    if strategy is Strategy.REPLACE:
        talk.says(CAROL, approves(CAROL, "m"))
    talk.says(ALICE, executes_merge("m"))

    merge = talk.proposes_merge("other")

    with refused(Why.WRONG_STATE, "Unresolved: a, b"):
        talk.tries(ALICE, executes_merge(merge))


def test_what_replacing_took_back_is_a_change_for_the_next() -> None:
    talk = aside()
    talk.says(CAROL, updates("a", "later"))
    talk.fork("Other", BOB, copy=True)
    talk.says(BOB, updates("a", "other"), fork="other")
    talk.says(ALICE, merges("aside", strategy=Strategy.REPLACE), id="m")
    talk.says(CAROL, approves(CAROL, "m"))
    talk.says(ALICE, executes_merge("m"))
    assert talk.shelf()["a"] == "old"

    merge = talk.proposes_merge("other")

    with refused(Why.WRONG_STATE, "Unresolved: a"):
        talk.tries(ALICE, executes_merge(merge))


def test_what_a_merge_left_alone_is_no_change() -> None:
    talk = aside()
    talk.fork("Other", BOB, copy=True)
    talk.says(BOB, updates("a", "aside"), fork="aside")
    talk.says(BOB, updates("b", "other"), fork="other")
    talk.merges("aside")

    talk.merges("other")

    assert talk.shelf() == {"a": "aside", "b": "other"}
