"""What changed on both sides of a merge, and how it is settled."""

from typing import Any

import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergeExecute, MergeExecuted
from accord.core.room.room_settings import ServerPolicy
from tests.helpers.room.logged_room import (
    context_add,
    context_remove,
    context_update,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.merge_scenarios import (
    UNGATED_STRATEGIES,
    room_of_five,
    room_with_fork,
    with_conflict,
)
from tests.helpers.room.scenario import BOB, CAROL, expect_refusal, gate_approve, types_of
from tests.spec import proves


@proves("PVP-16.3-2", "PVP-16.3-3", "OPEN-48")
@pytest.mark.parametrize("strategy", UNGATED_STRATEGIES)
def test_what_changed_in_the_source_is_taken_over(strategy: MergeStrategy) -> None:
    talk = room_with_fork()
    talk.send(BOB, context_update("a", "new"), fork="aside")
    talk.send(BOB, context_remove("b"), fork="aside")
    talk.send(BOB, context_add("c", "added"), fork="aside")
    talk.send(CAROL, context_add("d", "meanwhile"))

    facts = talk.merge("aside", strategy=strategy)

    assert types_of(facts) == [MergeExecuted]
    assert talk.context() == {"a": "new", "c": "added", "d": "meanwhile"}
    assert talk.context("aside") == {"a": "new", "c": "added"}
    assert talk.room.forks["aside"].strategy is strategy


@proves("PVP-16.3-2", "OPEN-48")
def test_replace_takes_the_sources_context_and_asks_nobody() -> None:
    talk = with_conflict(room_with_fork())
    talk.send(CAROL, context_add("hers", to=["codex"]))
    talk.send(CAROL, context_add("gone"))
    talk.send(BOB, merge_propose("aside", strategy=MergeStrategy.REPLACE), id="m")
    talk.send(CAROL, gate_approve(CAROL, "m"))

    talk.send(BOB, merge_execute("m"))

    assert talk.context() == {"a": "ours", "b": "old", "hers": "text"}
    assert not talk.room.removed[""], "no open fork will ask"


@proves("OPEN-48")
@pytest.mark.parametrize("strategy", UNGATED_STRATEGIES)
@pytest.mark.parametrize(
    ("ours", "theirs", "results"),
    [
        (
            context_update("a", "1"),
            context_update("a", "2"),
            {"use_source": "1", "use_target": "2"},
        ),
        (context_update("a", "1"), context_remove("a"), {"use_source": "1", "use_target": None}),
        (context_remove("a"), context_update("a", "2"), {"use_source": None, "use_target": "2"}),
        (context_add("new", "1"), context_add("new", "2"), {"use_source": "1", "use_target": "2"}),
    ],
)
def test_a_key_that_changed_on_both_sides_needs_an_answer(
    strategy: MergeStrategy, ours: Any, theirs: Any, results: dict[str, str | None]
) -> None:
    for answer, result in results.items():
        talk = room_with_fork()
        talk.send(BOB, ours, fork="aside")
        talk.send(CAROL, theirs)
        merge = talk.propose_merge("aside", strategy=strategy)
        with expect_refusal(Reason.WRONG_STATE, f"Unresolved conflicts: {ours.key}"):
            talk.decide(BOB, merge_execute(merge))

        talk.send(BOB, merge_execute(merge, {ours.key: answer}))

        assert talk.context().get(ours.key) == result


@proves("OPEN-48")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (context_update("a", "1"), context_update("a", "2")),
        (context_remove("a"), context_update("a", "2")),
    ],
)
def test_a_conflict_may_be_settled_by_a_value_of_ones_own(ours: Any, theirs: Any) -> None:
    talk = room_with_fork()
    talk.send(BOB, ours, fork="aside")
    talk.send(CAROL, theirs)

    facts = talk.merge("aside", answers={"a": ["both"]})

    assert talk.context()["a"] == "both"
    executed = next(record for record in facts.records if record.said)
    assert executed.said == merge_execute(executed.ref or "", {"a": ["both"]})


@proves("OPEN-48")
def test_the_refusal_lists_every_conflict() -> None:
    talk = with_conflict(room_with_fork())
    talk.send(BOB, context_remove("b"), fork="aside")
    talk.send(CAROL, context_update("b", "2"))
    merge = talk.propose_merge("aside")

    with pytest.raises(Exception, match="Unresolved conflicts: a, b") as no:
        talk.decide(BOB, merge_execute(merge))
    assert no.value.details == {"conflicts": ["a", "b"]}  # type: ignore[attr-defined]


def test_what_was_removed_on_both_sides_is_no_conflict() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_remove("a"), fork="aside")
    talk.send(CAROL, context_remove("a"))

    talk.merge("aside")

    assert talk.context() == {"b": "old"}


@proves("OPEN-48")
@pytest.mark.parametrize(
    "answers",
    [
        (MergeResolution("a", "use_source"), MergeResolution("b", "use_source")),
        (MergeResolution("a", "use_source"), MergeResolution("a", "use_target")),
    ],
)
def test_only_conflicts_are_answered_and_each_once(answers: tuple[MergeResolution, ...]) -> None:
    talk = with_conflict(room_with_fork())
    merge = talk.propose_merge("aside")

    with expect_refusal(Reason.MALFORMED, "Not in conflict|Resolved more than once"):
        talk.decide(BOB, MergeExecute(merge, answers))


def test_a_value_of_ones_own_is_context_like_any_other() -> None:
    talk = with_conflict(room_with_fork())
    merge = talk.propose_merge("aside")

    with expect_refusal(Reason.MALFORMED, "a needs a custom_value"):
        talk.decide(BOB, MergeExecute(merge, (MergeResolution("a", "custom"),)))
    with expect_refusal(Reason.TOO_LARGE):
        talk.decide(BOB, merge_execute(merge, {"a": ["x" * (1 << 20) + "x"]}))


@proves("OPEN-48")
def test_two_items_of_one_name_that_were_never_one_are_a_conflict() -> None:
    talk = room_of_five()
    talk.send(CAROL, context_add("notes", "hers"))
    fork = talk.fork("Aside", BOB)
    talk.send(BOB, context_add("notes", "his"), fork=fork)
    merge = talk.propose_merge(fork)

    with expect_refusal(Reason.WRONG_STATE, "Unresolved conflicts: notes"):
        talk.decide(BOB, merge_execute(merge))


@proves("OPEN-48")
def test_to_remove_ones_own_in_a_fork_removes_nobody_elses() -> None:
    talk = room_of_five()
    talk.send(CAROL, context_add("notes", "hers", to=["carol"]))
    fork = talk.fork("Aside", BOB)
    talk.send(BOB, context_add("notes", "his"), fork=fork)
    talk.send(BOB, context_remove("notes"), fork=fork)

    talk.merge(fork)

    assert talk.context()["notes"] == "hers"


def test_what_lies_in_a_merged_fork_takes_no_room_any_more() -> None:
    talk = room_of_five()
    fork = talk.fork("Aside", BOB)
    talk.send(BOB, context_add("large", "x" * 600), fork=fork)
    talk.merge(fork)

    house = ServerPolicy(limits=Limits(context=1000))
    assert talk.allows(BOB, context_add("more", "x" * 200), house=house)
    with expect_refusal(Reason.TOO_LARGE):
        talk.decide(BOB, context_add("more", "x" * 400), house=house)
    kept = ServerPolicy(limits=Limits(context=1000, context_kept=1000))
    with expect_refusal(Reason.TOO_LARGE):
        talk.decide(BOB, context_add("more", "x" * 200), house=kept)


def test_who_does_not_see_both_sides_settles_nothing() -> None:
    talk = room_of_five()
    talk.send(CAROL, context_add("notes", "hers", to=["carol"]))
    fork = talk.fork("Aside", BOB)
    talk.send(BOB, context_add("notes", "his"), fork=fork)
    merge = talk.propose_merge(fork)

    with expect_refusal(Reason.FORBIDDEN, "you cannot read"):
        talk.decide(BOB, merge_execute(merge, {"notes": "use_source"}))


def test_an_author_may_say_it_anew_in_a_fork() -> None:
    talk = room_with_fork()
    talk.send(BOB, context_add("a", "again"), fork="aside")

    talk.merge("aside")

    assert talk.context()["a"] == "again"
