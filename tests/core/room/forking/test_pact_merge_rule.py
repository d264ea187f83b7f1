"""Rule 2 in the room: what merges wait for, of every pact that it heeds."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.forking.fork_state import PactFeature, PactSummary
from accord.core.room.forking.pact_merge_rule import MAX_FEATURES
from accord.core.room.forking.pact_tasks import TasksGuard, TasksGuarded, TasksRelease
from tests.helpers.room.logged_room import LoggedRoom, merge_execute, merge_propose
from tests.helpers.room.pact_scenarios import (
    ACCEPTED_FEATURE,
    OPEN_FEATURE,
    REPO_ID,
    SHIPPED_FEATURE,
    room_with_pact,
    tasks_mirror,
)
from tests.helpers.room.scenario import ALICE, BOB, CLAUDE, expect_refusal, types_of
from tests.spec import proves


@proves("UNI-21", "PACT-5-3")
@pytest.mark.parametrize("branch", ["cart", "pvp/cart"])
def test_a_fork_with_the_work_of_a_feature_waits_until_all_of_it_is_accepted(branch: str) -> None:
    talk = room_with_pact(replace(OPEN_FEATURE, branch=branch))
    fork = talk.fork("cart", CLAUDE, BOB)
    before = talk.room

    with expect_refusal(Reason.WRONG_STATE, "Rule 2: cart has tasks that are not accepted: T1, T2"):
        talk.send(ALICE, merge_propose(fork))

    assert talk.room == before
    talk.send(POLICY_ACTOR, tasks_mirror(replace(ACCEPTED_FEATURE, branch=branch)))
    talk.send(ALICE, merge_propose(fork), id="merge")
    with expect_refusal(Reason.WRONG_STATE, "first run `accord pact merge cart`"):
        talk.send(ALICE, merge_execute("merge"))
    talk.send(POLICY_ACTOR, tasks_mirror(replace(SHIPPED_FEATURE, branch=branch)))
    talk.send(ALICE, merge_execute("merge"))
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_what_was_accepted_when_it_was_proposed_may_be_open_again() -> None:
    talk = room_with_pact(ACCEPTED_FEATURE)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.send(ALICE, merge_propose(fork), id="merge")
    talk.send(POLICY_ACTOR, tasks_mirror(OPEN_FEATURE))

    with expect_refusal(Reason.WRONG_STATE, "Rule 2"):
        talk.send(ALICE, merge_execute("merge"))


@proves("UNI-21")
def test_what_a_fork_took_along_from_another_waits_as_well() -> None:
    talk = room_with_pact(OPEN_FEATURE)
    fork = talk.fork("cart", CLAUDE, BOB)
    beyond = talk.fork("Beyond", CLAUDE, BOB, fork=fork)

    with expect_refusal(Reason.WRONG_STATE, "Rule 2: cart"):
        talk.send(ALICE, merge_propose(beyond))

    talk.merge(beyond, fork)
    assert talk.room.forks[beyond].merged


@proves("UNI-21")
def test_of_more_features_than_are_known_nothing_is_merged() -> None:
    many = [PactFeature(f"f{n}", f"b{n}", ("T",)) for n in range(MAX_FEATURES)]
    talk = room_with_pact(*many)
    fork = talk.fork("Aside", CLAUDE, BOB)

    with expect_refusal(Reason.WRONG_STATE, "too many to check"):
        talk.send(ALICE, merge_propose(fork))

    talk.send(POLICY_ACTOR, tasks_mirror(*many[:-1], replace(many[-1], open=(), shipped=True)))
    talk.merge(fork)
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_while_there_may_be_tasks_that_nobody_knows_of_nothing_is_merged() -> None:
    talk = room_with_pact()
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.send(POLICY_ACTOR, replace(tasks_mirror(), trouble="The log has over 64 MiB"))

    with expect_refusal(Reason.WRONG_STATE, "may be incomplete: The log has over 64 MiB"):
        talk.send(ALICE, merge_propose(fork))

    talk.send(POLICY_ACTOR, tasks_mirror())
    talk.merge(fork)
    assert talk.room.forks[fork].merged


def test_other_forks_are_not_the_pacts_business() -> None:
    talk = room_with_pact(OPEN_FEATURE)
    fork = talk.fork("Aside", CLAUDE, BOB)

    talk.merge(fork)

    assert talk.room.forks[fork].merged


# What was bound stays bound


def still_waits(talk: LoggedRoom, fork: str, said: str = "Rule 2: cart") -> None:
    """Neither proposed nor, had it been proposed before, executed."""
    with expect_refusal(Reason.WRONG_STATE, said):
        talk.send(ALICE, merge_propose(fork))


@proves("UNI-21")
def test_a_session_that_leaves_its_repository_heeds_its_pact_all_the_same() -> None:
    talk = room_with_pact(ACCEPTED_FEATURE)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.send(ALICE, merge_propose(fork), id="merge")
    talk.send(POLICY_ACTOR, tasks_mirror(OPEN_FEATURE))
    talk.send(POLICY_ACTOR, TasksRelease(repo=REPO_ID))
    later = talk.fork("cart", CLAUDE, BOB)
    beyond = talk.fork("Beyond", CLAUDE, BOB, fork=later)

    for execute in (True, False):
        with pytest.raises(Refused, match="it still counts for work that was forked") as no:
            talk.send(ALICE, merge_execute("merge") if execute else merge_propose(later))
        assert f"`accord git bind {talk.room.id}`" in no.value.detail
        assert no.value.reason is Reason.WRONG_STATE
        assert no.value.details == {"feature": "cart", "repo": REPO_ID, "tasks": ["T1", "T2"]}
    still_waits(talk, beyond)


@proves("UNI-21")
@pytest.mark.parametrize("lane", [None, SHIPPED_FEATURE])
def test_another_repository_frees_nothing(lane: PactFeature | None) -> None:
    talk = room_with_pact(OPEN_FEATURE)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.send(POLICY_ACTOR, TasksRelease(repo=REPO_ID))
    talk.send(POLICY_ACTOR, tasks_mirror(*([lane] if lane else []), repo="other"))

    still_waits(talk, fork)

    talk.send(POLICY_ACTOR, TasksGuard(repo=REPO_ID, lanes=(ACCEPTED_FEATURE,)))
    talk.send(ALICE, merge_propose(fork), id="merge")
    with expect_refusal(
        Reason.WRONG_STATE, "first run `accord pact merge cart`. This is the pact of shop-1"
    ):
        talk.send(ALICE, merge_execute("merge"))
    talk.send(POLICY_ACTOR, TasksGuard(repo=REPO_ID, lanes=(SHIPPED_FEATURE,)))
    talk.send(ALICE, merge_execute("merge"))
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_a_pact_that_is_not_shown_is_heeded_and_nobody_hears_of_it() -> None:
    talk = room_with_pact()
    fork = talk.fork("cart", CLAUDE, BOB)
    guard = TasksGuard(repo="other", lanes=(OPEN_FEATURE,))

    facts = talk.send(POLICY_ACTOR, guard)

    assert types_of(facts) == [TasksGuarded]
    assert facts.records[0].said is None
    assert talk.room.pact == PactSummary(REPO_ID)
    assert types_of(talk.send(POLICY_ACTOR, guard)) == []
    still_waits(talk, fork)


@proves("UNI-21")
def test_what_a_branch_lacks_frees_nothing() -> None:
    """Another branch that is checked out has another log; nothing is ever taken out of a pact."""
    talk = room_with_pact(OPEN_FEATURE)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.send(POLICY_ACTOR, tasks_mirror())
    still_waits(talk, fork)

    talk.send(POLICY_ACTOR, tasks_mirror(replace(SHIPPED_FEATURE, branch="elsewhere")))
    still_waits(talk, fork)

    talk.send(POLICY_ACTOR, tasks_mirror(SHIPPED_FEATURE))
    talk.merge(fork)
    assert talk.room.forks[fork].merged


def test_what_was_merged_may_vanish() -> None:
    talk = room_with_pact(SHIPPED_FEATURE)
    talk.send(POLICY_ACTOR, tasks_mirror())

    assert talk.room.pacts == {REPO_ID: PactSummary(REPO_ID)}


@proves("UNI-21")
def test_more_than_can_be_known_is_not_forgotten_but_refused() -> None:
    many = [PactFeature(f"f{n}", f"b{n}", ("T",)) for n in range(MAX_FEATURES - 1)]
    talk = room_with_pact(OPEN_FEATURE, *many[:-1])
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.send(POLICY_ACTOR, tasks_mirror(*many))

    still_waits(talk, fork, "too many to check")

    full = [*many, SHIPPED_FEATURE]
    talk.send(POLICY_ACTOR, tasks_mirror(*full))
    assert talk.room.pacts[REPO_ID].lanes == tuple(full), "of a full list, none is kept besides"
    talk.merge(fork)
