"""What is restricted stays so through a merge."""

import pytest

from accord.core.kernel.refusal import Why
from accord.core.room.conflicts import Resolution
from accord.core.room.merges import MergeExecute, MergeExecuted
from accord.core.room.state import Strategy
from tests.helpers.forks import Talk, adds, executes_merge, merges, seats, updates
from tests.helpers.merging import a_talk, aside, changed
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, CODEX, approves, refused
from tests.spec import proves


@proves("OPEN-48", "UNI-12")
def test_what_is_restricted_stays_so() -> None:
    talk = aside()
    talk.says(BOB, adds("ours", to=["claude"]), fork="aside")
    talk.says(BOB, adds("a", "again", to=["claude"]), fork="aside")

    talk.merges("aside")

    assert talk.items()["ours"].visible_to == seats("claude")
    assert talk.items()["a"].visible_to == seats("claude")


@proves("OPEN-39", "OPEN-48")
@pytest.mark.parametrize("strategy", [Strategy.APPEND, Strategy.REPLACE])
def test_a_copy_comes_back_to_all_whom_its_original_was_for(strategy: Strategy) -> None:
    talk = a_talk()
    talk.says(BOB, adds("some", "old", to=["bob", "codex", "claude"]))
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.says(BOB, updates("some", "new"), fork=fork)
    talk.says(BOB, merges(fork, strategy=strategy), id="m")
    if strategy is Strategy.REPLACE:
        talk.says(CAROL, approves(CAROL, "m"))

    talk.says(BOB, executes_merge("m"))

    assert talk.shelf()["some"] == "new"
    assert talk.items()["some"].visible_to == seats("bob", "codex", "claude")


@proves("OPEN-48", "UNI-12")
def test_how_restricted_items_were_settled_is_not_told_to_all() -> None:
    talk = changed(with_private())
    merge = talk.proposes_merge("aside", by=BOB)
    body = executes_merge(merge, {"a": "use_source", "private": ["both"]})

    facts = talk.says(BOB, body)

    (executed,) = (each for each in facts.records if isinstance(each.event, MergeExecuted))
    assert isinstance(executed.said, MergeExecute)
    assert executed.said.resolved_conflicts == (Resolution("a", "use_source"),)
    assert talk.shelf()["private"] == "both"
    assert talk.items()["private"].visible_to == seats("bob", "claude", "codex")
    assert body.repeats(executed.said)


def with_private() -> Talk:
    """`a` is for all, `private` for Bob and the agents; the latter changed on both sides."""
    talk = a_talk()
    talk.says(BOB, adds("a", "old"))
    talk.says(BOB, adds("private", "old", to=["claude", "codex", "bob"]))
    talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.says(CLAUDE, updates("private", "ours"), fork="aside")
    talk.says(CODEX, updates("private", "theirs"))
    return talk


@proves("OPEN-48", "UNI-12")
def test_whoever_cannot_see_a_conflict_does_not_learn_of_it() -> None:
    talk = with_private()
    merge = talk.proposes_merge("aside", by=ALICE)

    with refused(Why.FORBIDDEN, "^There are conflicts about context that you cannot see$"):
        talk.tries(ALICE, executes_merge(merge))
    assert talk.allows(BOB, executes_merge(merge, {"private": "use_target"}))


@proves("OPEN-48")
def test_a_value_of_ones_own_is_for_those_who_could_see_both() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.says(BOB, adds("notes", "1", to=["bob", "claude"]), fork=fork)
    talk.says(CAROL, adds("notes", "2", to=["bob", "codex"]))

    talk.merges(fork, by=BOB, answers={"notes": ["3"]})

    assert talk.items()["notes"].visible_to == seats("bob")


@proves("OPEN-36")
def test_a_merge_done_again_is_the_same_whatever_was_taken_out() -> None:
    sent = executes_merge("m", {"a": "use_source", "b": ["both"]})

    assert sent.repeats(sent)
    assert sent.repeats(executes_merge("m", {"a": "use_source"}))
    assert sent.repeats(executes_merge("m"))
    assert not executes_merge("m").repeats(sent)
    assert not sent.repeats(executes_merge("other"))
    assert not sent.repeats(merges("aside"))
