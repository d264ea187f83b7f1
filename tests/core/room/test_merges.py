"""Merges: what was learnt in a fork comes back, and nothing is deleted."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Record, Say, fold
from accord.core.kernel.refusal import Why
from accord.core.room import CONTEXT
from accord.core.room.conflicts import Resolution
from accord.core.room.gates import GateOpened
from accord.core.room.interrupts import InterruptRaise
from accord.core.room.merges import MergeExecute, MergeExecuted, MergeProposed
from accord.core.room.state import House, Strategy, Urgency
from accord.core.room.state import Resolution as Timeout
from accord.core.room.votes import GatePassed, Rejected
from tests.helpers.forks import (
    Talk,
    adds,
    executes_merge,
    failures,
    forks,
    merges,
    removes,
    seats,
    updates,
)
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after_seconds,
    approves,
    executes,
    finishes,
    gate_on,
    joined,
    kinds,
    left,
    prompts,
    proposes,
    refused,
    rejects,
    requests,
)
from tests.spec import proves

R, S = Role, Strategy
ALL = {"alice", "bob", "carol", "claude", "codex"}
PLAIN = [S.APPEND, S.INTERLEAVE, S.MANUAL]


def a_talk(**config: Any) -> Talk:
    """Alice is admin, Bob and Carol drive and approve; two agents."""
    return Talk.of(
        (BOB, R.ADVERSARY), (CAROL, R.ADVERSARY), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER), **config
    )


def aside(**config: Any) -> Talk:
    """Alice, Bob and Claude are in the fork `aside`, with a copy of `a` and `b`."""
    talk = a_talk(**config)
    for key in ("a", "b"):
        talk.says(BOB, adds(key, "old"))
    talk.fork("Aside", BOB, CLAUDE, copy=True)
    return talk


def changed(talk: Talk, source: str = "aside") -> Talk:
    """`a` was changed on both sides."""
    talk.says(BOB, updates("a", "ours"), fork=source)
    talk.says(CAROL, updates("a", "theirs"))
    return talk


# Proposing


@proves("PVP-16.3-1", "PVP-16.3-2", "PVP-4.3-14")
@pytest.mark.parametrize("strategy", PLAIN)
def test_a_person_proposes_a_merge(strategy: Strategy) -> None:
    talk = aside()
    body = merges("aside", strategy=strategy)

    facts = talk.says(BOB, body, id="m")

    assert facts == [MergeProposed(said=body, target=None, gated=False)]
    assert talk.readers("m") == ALL
    assert talk.room.merges["m"].source == "aside"


@proves("OPEN-46")
@pytest.mark.parametrize("trunk", ["main", "trunk", ""])
def test_the_trunk_has_several_names(trunk: str) -> None:
    talk = aside()

    talk.merges("aside", trunk)

    assert talk.room.forks["aside"].into is None
    assert talk.room.forks["aside"].merged


@proves("OPEN-48")
def test_a_merge_of_two_forks_is_told_to_both() -> None:
    talk = aside()
    talk.fork("Other", CODEX)

    merge = talk.proposes_merge("aside", "other")
    facts = talk.says(ALICE, executes_merge(merge))

    assert talk.readers(merge) == {"alice", "bob", "claude", "codex"}
    assert talk.hear(facts) == {"alice", "bob", "claude", "codex"}
    assert talk.room.forks["aside"].into == "other"


@proves("OPEN-48")
@pytest.mark.parametrize(
    ("source", "target", "detail"),
    [
        ("aside", "aside", "A fork cannot be merged into itself"),
        ("main", "aside", "The trunk can be merged into nothing"),
        ("trunk", "main", "The trunk can be merged into nothing"),
    ],
)
def test_a_merge_has_two_ends(source: str, target: str, detail: str) -> None:
    with refused(Why.MALFORMED, detail):
        aside().tries(ALICE, merges(source, target))


def test_both_ends_are_forks_of_the_proposer() -> None:
    talk = aside()
    talk.fork("Other", CAROL, by=CAROL)

    for source, target in (("aside", "other"), ("other", "aside")):
        with refused(Why.UNKNOWN, "There is no fork other for you here"):
            talk.tries(BOB, merges(source, target))
    for source, target in (("none", "main"), ("aside", "none")):
        with refused(Why.UNKNOWN, "There is no fork none"):
            talk.tries(BOB, merges(source, target))


def test_a_fork_is_merged_once_at_a_time_and_only_once() -> None:
    talk = aside()
    talk.fork("Other", BOB)
    merge = talk.proposes_merge("aside")
    with refused(Why.WRONG_STATE, "A merge of aside is proposed already"):
        talk.tries(BOB, merges("aside", "other"))

    talk.says(BOB, executes_merge(merge))

    with refused(Why.WRONG_STATE, "The fork aside was merged"):
        talk.tries(BOB, merges("aside"))
    with refused(Why.WRONG_STATE, "The fork aside was merged"):
        talk.tries(BOB, merges("other", "aside"))
    with refused(Why.WRONG_STATE, f"The merge {merge} is over: executed"):
        talk.tries(BOB, executes_merge(merge))


def test_without_the_right_to_fork_nobody_merges() -> None:
    talk = Talk.of((BOB, R.APPROVER), (CLAUDE, R.DRIVER))
    fork = talk.fork("Aside", BOB)

    with refused(Why.FORBIDDEN, "right to fork"):
        talk.tries(BOB, merges(fork))
    merge = talk.proposes_merge(fork)
    with refused(Why.FORBIDDEN, "right to fork"):
        talk.tries(BOB, executes_merge(merge))


# Approval


@proves("OPEN-26", "PVP-14.1-2")
@pytest.mark.parametrize(
    ("who", "strategy"), [(CLAUDE, S.APPEND), (CLAUDE, S.REPLACE), (BOB, S.REPLACE)]
)
def test_agents_and_replacing_need_approval(who: Actor, strategy: Strategy) -> None:
    talk = aside()

    facts = talk.says(who, merges("aside", strategy=strategy), id="m")

    gate = gate_on(talk.room, "m")
    assert kinds(facts) == [MergeProposed, GateOpened]
    assert (gate.action_type, gate.initiator, gate.fork) == ("merge", who.seat, None)
    assert f"{who.seat} wants to merge aside into main ({strategy}): It works" == gate.message
    with refused(Why.WRONG_STATE, "The merge m is not approved yet"):
        talk.tries(who, executes_merge("m"))

    assert GatePassed in kinds(talk.says(CAROL, approves(CAROL, "m")))
    assert MergeExecuted in kinds(talk.says(who, executes_merge("m")))


@proves("OPEN-26", "OPEN-47")
def test_the_members_of_the_target_approve() -> None:
    talk = aside()
    talk.fork("Other", CAROL, CLAUDE)

    facts = talk.says(CLAUDE, merges("aside", "other"), id="m")

    assert talk.audience(facts.records[1]) == {"alice", "carol", "claude"}
    assert "into other" in gate_on(talk.room, "m").message
    with refused(Why.UNKNOWN):
        talk.tries(BOB, approves(BOB, "m"))
    talk.says(CAROL, approves(CAROL, "m"))
    assert not talk.room.merges["m"].gated


@proves("OPEN-25")
def test_a_rejected_merge_is_dead() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")

    facts = talk.says(CAROL, rejects(CAROL, "m"))

    assert [bad.related_to for bad, _ in failures(facts)] == ["m"]
    with refused(Why.GATE_FAILED, "The merge m was rejected"):
        talk.tries(CLAUDE, executes_merge("m"))
    assert talk.allows(CLAUDE, merges("aside"))


@proves("OPEN-23", "OPEN-25")
def test_silence_never_merges() -> None:
    talk = aside()
    house = House(on_gate_timeout=Timeout.AUTO_APPROVED)
    talk.says(CLAUDE, merges("aside"), id="m", house=house)

    talk.passes(after_seconds(300))

    with refused(Why.GATE_FAILED, "The merge m was timed out"):
        talk.tries(CLAUDE, executes_merge("m"))


@proves("OPEN-26")
def test_a_gate_that_its_proposer_asked_for_counts() -> None:
    talk = aside()
    talk.says(BOB, merges("aside"), id="m")
    talk.says(BOB, requests("m", action_type="merge"), id="g")

    with refused(Why.WRONG_STATE, "not approved yet"):
        talk.tries(BOB, executes_merge("m"))
    talk.says(CAROL, approves(CAROL, "g"))
    assert talk.allows(BOB, executes_merge("m"))


def test_there_is_no_merge_that_was_not_proposed() -> None:
    with refused(Why.UNKNOWN, "There is no merge m"):
        aside().tries(BOB, executes_merge("m"))


def test_whoever_is_not_in_both_cannot_do_it() -> None:
    talk = aside()
    merge = talk.proposes_merge("aside")

    with refused(Why.UNKNOWN, "There is no fork aside for you here"):
        talk.tries(CAROL, executes_merge(merge))
    assert talk.allows(BOB, executes_merge(merge))


@proves("OPEN-45")
def test_a_stopped_agent_merges_nothing() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")
    talk.says(CAROL, approves(CAROL, "m"))
    talk.says(BOB, InterruptRaise(Urgency.STOP, "Wait", "claude"))

    for body in (executes_merge("m"), merges("aside")):
        with refused(Why.WRONG_STATE, "claude was told to stop"):
            talk.tries(CLAUDE, body)
    assert talk.allows(BOB, executes_merge("m"))


@proves("PVP-15.1-4")
def test_an_emergency_ends_the_merge_that_an_agent_waits_for() -> None:
    talk = aside()
    talk.says(CLAUDE, merges("aside"), id="m")

    talk.says(BOB, InterruptRaise(Urgency.EMERGENCY, "Wait", "claude"))

    assert not talk.room.merges


@proves("PVP-16.3-2")
def test_a_manual_merge_is_done_by_a_person() -> None:
    talk = aside()
    merge = talk.proposes_merge("aside", strategy=S.MANUAL)

    with refused(Why.FORBIDDEN, "A manual merge is for a person"):
        talk.tries(CLAUDE, executes_merge(merge))
    assert talk.allows(BOB, executes_merge(merge))


# Context


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
    talk.says(BOB, merges("aside", strategy=S.REPLACE), id="m")
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


# What is restricted


@proves("OPEN-48", "UNI-12")
def test_what_is_restricted_stays_so() -> None:
    talk = aside()
    talk.says(BOB, adds("ours", to=["claude"]), fork="aside")
    talk.says(BOB, adds("a", "again", to=["claude"]), fork="aside")

    talk.merges("aside")

    assert talk.items()["ours"].visible_to == seats("claude")
    assert talk.items()["a"].visible_to == seats("claude")


@proves("OPEN-39", "OPEN-48")
@pytest.mark.parametrize("strategy", [S.APPEND, S.REPLACE])
def test_a_copy_comes_back_to_all_whom_its_original_was_for(strategy: Strategy) -> None:
    talk = a_talk()
    talk.says(BOB, adds("some", "old", to=["bob", "codex", "claude"]))
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.says(BOB, updates("some", "new"), fork=fork)
    talk.says(BOB, merges(fork, strategy=strategy), id="m")
    if strategy is S.REPLACE:
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


# Which past is shared


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


@pytest.mark.parametrize("strategy", [S.APPEND, S.REPLACE])
def test_what_one_merge_removed_or_changed_is_a_change_for_the_next(strategy: Strategy) -> None:
    talk = aside()
    talk.fork("Other", BOB, copy=True)
    talk.says(BOB, updates("a", "aside"), fork="aside")
    talk.says(BOB, removes("b"), fork="aside")
    for key in ("a", "b"):
        talk.says(BOB, updates(key, "other"), fork="other")
    talk.says(ALICE, merges("aside", strategy=strategy), id="m")
    if strategy is S.REPLACE:
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
    talk.says(ALICE, merges("aside", strategy=S.REPLACE), id="m")
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


# Afterwards


@proves("OPEN-48", "UNI-12", "PVP-16.1-3")
def test_the_sources_messages_become_readable_for_the_targets_members() -> None:
    talk = aside()
    talk.says(CLAUDE, proposes(), id="p", fork="aside")
    talk.says(BOB, adds("private", to=["claude"]), id="c", fork="aside")
    assert talk.readers("p") == {"alice", "bob", "claude"}

    talk.merges("aside")

    assert talk.readers("p") == ALL
    assert talk.readers("c") == {"bob", "claude"}


@proves("OPEN-48")
def test_what_went_into_another_fork_is_readable_there_only() -> None:
    talk = aside()
    talk.fork("Other", CODEX)
    talk.says(CLAUDE, proposes(), id="p", fork="aside")

    talk.merges("aside", "other")

    assert talk.readers("p") == {"alice", "bob", "claude", "codex"}


@proves("OPEN-48")
def test_who_comes_later_reads_what_was_merged_as_they_read_the_trunk() -> None:
    talk = aside()
    zoe = Actor("zoe", BOB.kind)
    talk.says(CLAUDE, proposes(), id="p", fork="aside")
    other = talk.fork("Other", BOB)
    talk.merges("aside", other)
    assert "carol" not in talk.readers("p")

    talk.merges(other)
    talk.says(*joined(zoe, R.DRIVER)[:2])

    assert talk.readers("p") == {*ALL, "zoe"}


@proves("OPEN-48")
def test_who_left_before_a_merge_does_not_learn_what_it_shows() -> None:
    talk = aside()
    talk.says(CLAUDE, proposes(), id="p", fork="aside")
    talk.says(*left(CODEX)[:2])

    talk.merges("aside")

    assert not talk.sees("codex", talk.record("p"))
    talk.says(*left(CAROL)[:2])
    assert talk.sees("carol", talk.record("p"))


def test_nobody_reads_what_was_said_in_a_fork_that_does_not_exist() -> None:
    assert a_talk().room.readers("other") == frozenset()


@proves("OPEN-48")
def test_nothing_is_deleted() -> None:
    talk = aside()
    talk.says(BOB, prompts(), id="q", fork="aside")
    log, before = list(talk.log), talk.shelf("aside")

    talk.merges("aside")

    assert talk.log[: len(log)] == log
    assert talk.shelf("aside") == before
    assert "aside" in talk.room.forks


@proves("OPEN-48")
def test_nothing_stays_open_in_the_source() -> None:
    talk = aside(require_approval_for=("shell_execute",))
    talk.says(CLAUDE, proposes(), id="asked", fork="aside")
    talk.says(CLAUDE, proposes(), id="running", fork="aside")
    talk.says(BOB, approves(BOB, "running"))
    talk.says(CLAUDE, executes("running"))
    talk.says(CLAUDE, proposes(), id="trunk's")

    facts = talk.merges("aside")

    assert kinds(facts) == [Rejected, Say, MergeExecuted]
    assert facts.records[0].sender == "system"
    assert [to for _, to in failures(facts)] == [seats("alice", "bob", "claude")]
    assert set(talk.room.tools) == {"trunk's"}
    assert [gate.action for gate in talk.room.gates.values()] == ["trunk's"]
    with refused(Why.WRONG_STATE, "running is over: ended with its fork"):
        talk.tries(CLAUDE, finishes("running"))


def test_a_merge_into_a_fork_that_was_merged_is_over_and_may_be_proposed_anew() -> None:
    talk = aside()
    talk.fork("Other", BOB)
    lost = talk.proposes_merge("other", "aside")
    talk.merges("aside")

    with refused(Why.WRONG_STATE, f"The merge {lost} is over: without a target"):
        talk.tries(BOB, executes_merge(lost))
    assert talk.allows(BOB, merges("other"))


def test_a_gated_merge_into_a_fork_that_was_merged_is_rejected() -> None:
    talk = aside()
    talk.fork("Other", CLAUDE)
    talk.says(CLAUDE, merges("other", "aside"), id="m")

    talk.merges("aside")

    assert (talk.room.merges, talk.room.gates) == ({}, {})
    with refused(Why.GATE_FAILED, "The merge m was rejected"):
        talk.tries(CLAUDE, executes_merge("m"))


def test_a_merge_that_is_refused_changes_nothing() -> None:
    talk = changed(aside())
    merge = talk.proposes_merge("aside")
    before = talk.room

    with refused(Why.WRONG_STATE):
        talk.says(BOB, executes_merge(merge))

    assert talk.room is before
    assert talk.allows(BOB, forks("Inner"), fork="aside")


def test_a_record_of_a_merge_of_nothing_changes_nothing() -> None:
    talk = aside()
    proposed = talk.tries(BOB, merges("aside"), id="m").records[0]
    event = replace(proposed.event, said=merges("none"))
    executed = MergeExecuted(said=executes_merge("m"))
    strange: list[Record] = [replace(proposed, event=event), replace(proposed, event=executed)]

    assert fold(CONTEXT, talk.room, strange) == talk.room
