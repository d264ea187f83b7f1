"""Merges: what was learnt in a fork comes back, and nothing is deleted."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Record, Say, fold
from accord.core.kernel.refusal import Why
from accord.core.room import CONTEXT
from accord.core.room.merges import MergeExecuted, MergeProposed
from accord.core.room.state import Strategy
from accord.core.room.votes import Rejected
from tests.helpers.forks import Talk, adds, executes_merge, failures, forks, merges, seats
from tests.helpers.merging import ALL, PLAIN, a_talk, aside, changed
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    approves,
    executes,
    finishes,
    joined,
    kinds,
    left,
    prompts,
    proposes,
    refused,
)
from tests.spec import proves

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
    talk = Talk.of((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Aside", BOB)

    with refused(Why.FORBIDDEN, "right to fork"):
        talk.tries(BOB, merges(fork))
    merge = talk.proposes_merge(fork)
    with refused(Why.FORBIDDEN, "right to fork"):
        talk.tries(BOB, executes_merge(merge))


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
    talk.says(*joined(zoe, Role.DRIVER)[:2])

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
