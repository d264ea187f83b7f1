"""What changed on both sides of a merge, and how it is settled."""

from typing import Any

import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Why
from accord.core.room.conflicts import Resolution
from accord.core.room.merges import MergeExecute, MergeExecuted
from accord.core.room.state import House, Strategy
from tests.helpers.forks import adds, executes_merge, merges, removes, updates
from tests.helpers.merging import PLAIN, a_talk, aside, changed
from tests.helpers.room import BOB, CAROL, approves, kinds, refused
from tests.spec import proves


@proves("PVP-16.3-2", "PVP-16.3-3", "OPEN-48")
@pytest.mark.parametrize("strategy", PLAIN)
def test_what_changed_in_the_source_is_taken_over(strategy: Strategy) -> None:
    talk = aside()
    talk.says(BOB, updates("a", "new"), fork="aside")
    talk.says(BOB, removes("b"), fork="aside")
    talk.says(BOB, adds("c", "added"), fork="aside")
    talk.says(CAROL, adds("d", "meanwhile"))

    facts = talk.merges("aside", strategy=strategy)

    assert kinds(facts) == [MergeExecuted]
    assert talk.shelf() == {"a": "new", "c": "added", "d": "meanwhile"}
    assert talk.shelf("aside") == {"a": "new", "c": "added"}
    assert talk.room.forks["aside"].strategy is strategy


@proves("PVP-16.3-2", "OPEN-48")
def test_replace_takes_the_sources_context_and_asks_nobody() -> None:
    talk = changed(aside())
    talk.says(CAROL, adds("hers", to=["codex"]))
    talk.says(CAROL, adds("gone"))
    talk.says(BOB, merges("aside", strategy=Strategy.REPLACE), id="m")
    talk.says(CAROL, approves(CAROL, "m"))

    talk.says(BOB, executes_merge("m"))

    assert talk.shelf() == {"a": "ours", "b": "old", "hers": "text"}
    assert not talk.room.removed[""], "no open fork will ask"


@proves("OPEN-48")
@pytest.mark.parametrize("strategy", PLAIN)
@pytest.mark.parametrize(
    ("ours", "theirs", "results"),
    [
        (updates("a", "1"), updates("a", "2"), {"use_source": "1", "use_target": "2"}),
        (updates("a", "1"), removes("a"), {"use_source": "1", "use_target": None}),
        (removes("a"), updates("a", "2"), {"use_source": None, "use_target": "2"}),
        (adds("new", "1"), adds("new", "2"), {"use_source": "1", "use_target": "2"}),
    ],
)
def test_a_key_that_changed_on_both_sides_needs_an_answer(
    strategy: Strategy, ours: Any, theirs: Any, results: dict[str, str | None]
) -> None:
    for answer, result in results.items():
        talk = aside()
        talk.says(BOB, ours, fork="aside")
        talk.says(CAROL, theirs)
        merge = talk.proposes_merge("aside", strategy=strategy)
        with refused(Why.WRONG_STATE, f"Unresolved: {ours.key}"):
            talk.tries(BOB, executes_merge(merge))

        talk.says(BOB, executes_merge(merge, {ours.key: answer}))

        assert talk.shelf().get(ours.key) == result


@proves("OPEN-48")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(updates("a", "1"), updates("a", "2")), (removes("a"), updates("a", "2"))],
)
def test_a_conflict_may_be_settled_by_a_value_of_ones_own(ours: Any, theirs: Any) -> None:
    talk = aside()
    talk.says(BOB, ours, fork="aside")
    talk.says(CAROL, theirs)

    facts = talk.merges("aside", answers={"a": ["both"]})

    assert talk.shelf()["a"] == "both"
    executed = next(record for record in facts.records if record.said)
    assert executed.said == executes_merge(executed.ref or "", {"a": ["both"]})


@proves("OPEN-48")
def test_the_refusal_lists_every_conflict() -> None:
    talk = changed(aside())
    talk.says(BOB, removes("b"), fork="aside")
    talk.says(CAROL, updates("b", "2"))
    merge = talk.proposes_merge("aside")

    with pytest.raises(Exception, match="Unresolved: a, b") as no:
        talk.tries(BOB, executes_merge(merge))
    assert no.value.details == {"conflicts": ["a", "b"]}  # type: ignore[attr-defined]


def test_what_was_removed_on_both_sides_is_no_conflict() -> None:
    talk = aside()
    talk.says(BOB, removes("a"), fork="aside")
    talk.says(CAROL, removes("a"))

    talk.merges("aside")

    assert talk.shelf() == {"b": "old"}


@proves("OPEN-48")
@pytest.mark.parametrize(
    "answers",
    [
        (Resolution("a", "use_source"), Resolution("b", "use_source")),
        (Resolution("a", "use_source"), Resolution("a", "use_target")),
    ],
)
def test_only_conflicts_are_answered_and_each_once(answers: tuple[Resolution, ...]) -> None:
    talk = changed(aside())
    merge = talk.proposes_merge("aside")

    with refused(Why.MALFORMED, "No such conflict, or twice"):
        talk.tries(BOB, MergeExecute(merge, answers))


def test_a_value_of_ones_own_is_context_like_any_other() -> None:
    talk = changed(aside())
    merge = talk.proposes_merge("aside")

    with refused(Why.MALFORMED, "custom_value is needed for a"):
        talk.tries(BOB, MergeExecute(merge, (Resolution("a", "custom"),)))
    with refused(Why.TOO_LARGE):
        talk.tries(BOB, executes_merge(merge, {"a": ["x" * (1 << 20) + "x"]}))


@proves("OPEN-48")
def test_two_items_of_one_name_that_were_never_one_are_a_conflict() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("notes", "hers"))
    fork = talk.fork("Aside", BOB)
    talk.says(BOB, adds("notes", "his"), fork=fork)
    merge = talk.proposes_merge(fork)

    with refused(Why.WRONG_STATE, "Unresolved: notes"):
        talk.tries(BOB, executes_merge(merge))


@proves("OPEN-48")
def test_to_remove_ones_own_in_a_fork_removes_nobody_elses() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("notes", "hers", to=["carol"]))
    fork = talk.fork("Aside", BOB)
    talk.says(BOB, adds("notes", "his"), fork=fork)
    talk.says(BOB, removes("notes"), fork=fork)

    talk.merges(fork)

    assert talk.shelf()["notes"] == "hers"


def test_what_lies_in_a_merged_fork_takes_no_room_any_more() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB)
    talk.says(BOB, adds("large", "x" * 600), fork=fork)
    talk.merges(fork)

    house = House(limits=Limits(context=1000))
    assert talk.allows(BOB, adds("more", "x" * 200), house=house)
    with refused(Why.TOO_LARGE):
        talk.tries(BOB, adds("more", "x" * 400), house=house)
    kept = House(limits=Limits(context=1000, context_kept=1000))
    with refused(Why.TOO_LARGE):
        talk.tries(BOB, adds("more", "x" * 200), house=kept)


def test_who_does_not_see_both_sides_settles_nothing() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("notes", "hers", to=["carol"]))
    fork = talk.fork("Aside", BOB)
    talk.says(BOB, adds("notes", "his"), fork=fork)
    merge = talk.proposes_merge(fork)

    with refused(Why.FORBIDDEN, "cannot see"):
        talk.tries(BOB, executes_merge(merge, {"notes": "use_source"}))


def test_an_author_may_say_it_anew_in_a_fork() -> None:
    talk = aside()
    talk.says(BOB, adds("a", "again"), fork="aside")

    talk.merges("aside")

    assert talk.shelf()["a"] == "again"
