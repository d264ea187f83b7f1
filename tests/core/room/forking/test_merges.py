"""Merges: what was learnt in a fork comes back, and nothing is deleted."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import fold
from accord.core.kernel.effects import Relay
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.approval.votes import GateRejected
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergeExecuted, MergeProposed
from tests.helpers.room.logged_room import (
    LoggedRoom,
    context_add,
    failures_of,
    fork_create,
    member_ids,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.merge_scenarios import (
    ALL_MEMBERS,
    UNGATED_STRATEGIES,
    room_of_five,
    room_with_fork,
    with_conflict,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    join_step,
    leave_step,
    prompt_submit,
    tool_execute,
    tool_propose,
    tool_result,
    types_of,
)
from tests.spec import proves

# Proposing


@proves("PVP-16.3-1", "PVP-16.3-2", "PVP-4.3-14")
@pytest.mark.parametrize("strategy", UNGATED_STRATEGIES)
def test_a_person_proposes_a_merge(strategy: MergeStrategy) -> None:
    talk = room_with_fork()
    body = merge_propose("aside", strategy=strategy)

    facts = talk.send(BOB, body, id="m")

    assert facts == [MergeProposed(said=body, target=None, gated=False)]
    assert talk.readers("m") == ALL_MEMBERS
    assert talk.room.merges["m"].source == "aside"


@proves("OPEN-46")
@pytest.mark.parametrize("trunk", ["main", "trunk", ""])
def test_the_trunk_has_several_names(trunk: str) -> None:
    talk = room_with_fork()

    talk.merge("aside", trunk)

    assert talk.room.forks["aside"].into is None
    assert talk.room.forks["aside"].merged


@proves("OPEN-48")
def test_a_merge_of_two_forks_is_told_to_both() -> None:
    talk = room_with_fork()
    talk.fork("Other", CODEX)

    merge = talk.propose_merge("aside", "other")
    facts = talk.send(ALICE, merge_execute(merge))

    assert talk.readers(merge) == {"alice", "bob", "claude", "codex"}
    assert talk.recipients_of(facts) == {"alice", "bob", "claude", "codex"}
    assert talk.room.forks["aside"].into == "other"


@proves("OPEN-48")
@pytest.mark.parametrize(
    ("source", "target", "detail"),
    [
        ("aside", "aside", "A fork cannot be merged into itself"),
        ("main", "aside", "The trunk cannot be merged"),
        ("trunk", "main", "The trunk cannot be merged"),
    ],
)
def test_merge_refuses_an_unknown_source_or_target(source: str, target: str, detail: str) -> None:
    with expect_refusal(Reason.MALFORMED, detail):
        room_with_fork().decide(ALICE, merge_propose(source, target))


def test_merge_refuses_forks_that_the_proposer_is_not_in() -> None:
    talk = room_with_fork()
    talk.fork("Other", CAROL, by=CAROL)

    for source, target in (("aside", "other"), ("other", "aside")):
        with expect_refusal(Reason.NOT_FOUND, "There is no fork other that you are in"):
            talk.decide(BOB, merge_propose(source, target))
    for source, target in (("none", "main"), ("aside", "none")):
        with expect_refusal(Reason.NOT_FOUND, "There is no fork none"):
            talk.decide(BOB, merge_propose(source, target))


def test_a_fork_is_merged_once_at_a_time_and_only_once() -> None:
    talk = room_with_fork()
    talk.fork("Other", BOB)
    merge = talk.propose_merge("aside")
    with expect_refusal(Reason.WRONG_STATE, "A merge of aside is already proposed"):
        talk.decide(BOB, merge_propose("aside", "other"))

    talk.send(BOB, merge_execute(merge))

    with expect_refusal(Reason.WRONG_STATE, "The fork aside was merged"):
        talk.decide(BOB, merge_propose("aside"))
    with expect_refusal(Reason.WRONG_STATE, "The fork aside was merged"):
        talk.decide(BOB, merge_propose("other", "aside"))
    with expect_refusal(Reason.WRONG_STATE, f"The merge {merge} is closed: executed"):
        talk.decide(BOB, merge_execute(merge))


def test_without_the_right_to_fork_nobody_merges() -> None:
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Aside", BOB)

    with expect_refusal(Reason.FORBIDDEN, "right to fork"):
        talk.decide(BOB, merge_propose(fork))
    merge = talk.propose_merge(fork)
    with expect_refusal(Reason.FORBIDDEN, "right to fork"):
        talk.decide(BOB, merge_execute(merge))


# Afterwards


@proves("OPEN-48", "UNI-12", "PVP-16.1-3")
def test_the_sources_messages_become_readable_for_the_targets_members() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")
    talk.send(BOB, context_add("private", to=["claude"]), id="c", fork="aside")
    assert talk.readers("p") == {"alice", "bob", "claude"}

    talk.merge("aside")

    assert talk.readers("p") == ALL_MEMBERS
    assert talk.readers("c") == {"bob", "claude"}


@proves("OPEN-48")
def test_what_went_into_another_fork_is_readable_there_only() -> None:
    talk = room_with_fork()
    talk.fork("Other", CODEX)
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")

    talk.merge("aside", "other")

    assert talk.readers("p") == {"alice", "bob", "claude", "codex"}


@proves("OPEN-48")
def test_who_comes_later_reads_what_was_merged_as_they_read_the_trunk() -> None:
    talk = room_with_fork()
    zoe = Actor("zoe", BOB.kind)
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")
    other = talk.fork("Other", BOB)
    talk.merge("aside", other)
    assert "carol" not in talk.readers("p")

    talk.merge(other)
    talk.send(*join_step(zoe, Role.DRIVER)[:2])

    assert talk.readers("p") == {*ALL_MEMBERS, "zoe"}


@proves("OPEN-48")
def test_who_left_before_a_merge_does_not_learn_what_it_shows() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")
    talk.send(*leave_step(CODEX)[:2])

    talk.merge("aside")

    assert not talk.can_see("codex", talk.record("p"))
    talk.send(*leave_step(CAROL)[:2])
    assert talk.can_see("carol", talk.record("p"))


def test_nobody_reads_what_was_said_in_a_fork_that_does_not_exist() -> None:
    assert room_of_five().room.readers("other") == frozenset()


@proves("OPEN-48")
def test_nothing_is_deleted() -> None:
    talk = room_with_fork()
    talk.send(BOB, prompt_submit(), id="q", fork="aside")
    log, before = list(talk.log), talk.context("aside")

    talk.merge("aside")

    assert talk.log[: len(log)] == log
    assert talk.context("aside") == before
    assert "aside" in talk.room.forks


@proves("OPEN-48")
def test_nothing_stays_open_in_the_source() -> None:
    talk = room_with_fork(require_approval_for=("shell_execute",))
    talk.send(CLAUDE, tool_propose(), id="asked", fork="aside")
    talk.send(CLAUDE, tool_propose(), id="running", fork="aside")
    talk.send(BOB, gate_approve(BOB, "running"))
    talk.send(CLAUDE, tool_execute("running"))
    talk.send(CLAUDE, tool_propose(), id="trunk's")

    facts = talk.merge("aside")

    assert types_of(facts) == [GateRejected, Relay, MergeExecuted]
    assert facts.records[0].sender == "system"
    assert [to for _, to in failures_of(facts)] == [member_ids("alice", "bob", "claude")]
    assert set(talk.room.tools) == {"trunk's"}
    assert [gate.action for gate in talk.room.gates.values()] == ["trunk's"]
    with expect_refusal(Reason.WRONG_STATE, "running is closed: ended with its fork"):
        talk.decide(CLAUDE, tool_result("running"))


def test_a_merge_into_a_fork_that_was_merged_is_over_and_may_be_proposed_anew() -> None:
    talk = room_with_fork()
    talk.fork("Other", BOB)
    lost = talk.propose_merge("other", "aside")
    talk.merge("aside")

    with expect_refusal(Reason.WRONG_STATE, f"The merge {lost} is closed: without a target"):
        talk.decide(BOB, merge_execute(lost))
    assert talk.allows(BOB, merge_propose("other"))


def test_a_gated_merge_into_a_fork_that_was_merged_is_rejected() -> None:
    talk = room_with_fork()
    talk.fork("Other", CLAUDE)
    talk.send(CLAUDE, merge_propose("other", "aside"), id="m")

    talk.merge("aside")

    assert (talk.room.merges, talk.room.gates) == ({}, {})
    with expect_refusal(Reason.GATE_FAILED, "The merge m was rejected"):
        talk.decide(CLAUDE, merge_execute("m"))


def test_a_merge_that_is_refused_changes_nothing() -> None:
    talk = with_conflict(room_with_fork())
    merge = talk.propose_merge("aside")
    before = talk.room

    with expect_refusal(Reason.WRONG_STATE):
        talk.send(BOB, merge_execute(merge))

    assert talk.room is before
    assert talk.allows(BOB, fork_create("Inner"), fork="aside")


def test_a_gated_merge_is_executed_after_its_approval_and_never_after_a_rejection() -> None:
    talk = room_with_fork()
    merge = talk.propose_merge("aside", strategy=MergeStrategy.REPLACE)

    with expect_refusal(Reason.WRONG_STATE, f"The merge {merge} is not approved yet"):
        talk.decide(ALICE, merge_execute(merge))
    talk.send(BOB, gate_reject(BOB, gate_on(talk.room, merge).id))
    with expect_refusal(Reason.GATE_FAILED, "propose it again"):
        talk.decide(ALICE, merge_execute(merge))


def test_an_agent_does_not_execute_a_manual_merge() -> None:
    talk = room_with_fork()
    merge = talk.propose_merge("aside", strategy=MergeStrategy.MANUAL)

    with expect_refusal(Reason.FORBIDDEN, "Only a human can execute a manual merge"):
        talk.decide(CLAUDE, merge_execute(merge))


def test_a_record_of_a_merge_of_nothing_changes_nothing() -> None:
    talk = room_with_fork()
    proposed = talk.decide(BOB, merge_propose("aside"), id="m").records[0]
    event = replace(proposed.event, said=merge_propose("none"))
    executed = MergeExecuted(said=merge_execute("m"))
    strange: list[Record] = [replace(proposed, event=event), replace(proposed, event=executed)]

    assert fold(CONTEXT, talk.room, strange) == talk.room
