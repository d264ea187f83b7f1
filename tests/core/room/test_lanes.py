"""Rule 2 in the room: what merges wait for, of every pact that it heeds."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import POLICY
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.lanes import MOST_LANES
from accord.core.room.pact import TasksGuard, TasksGuarded, TasksRelease
from accord.core.room.state import Lane, Pact
from tests.helpers.forks import Talk, executes_merge, merges
from tests.helpers.pact import ACCEPTED, OPEN, REPO, SHIPPED, talking, tasks
from tests.helpers.room import ALICE, BOB, CLAUDE, kinds, refused
from tests.spec import proves


@proves("UNI-21", "PACT-5-3")
@pytest.mark.parametrize("branch", ["cart", "pvp/cart"])
def test_a_fork_with_the_work_of_a_feature_waits_until_all_of_it_is_accepted(branch: str) -> None:
    talk = talking(replace(OPEN, branch=branch))
    fork = talk.fork("cart", CLAUDE, BOB)
    before = talk.room

    with refused(Why.WRONG_STATE, "Rule 2: cart has tasks that are not accepted: T1, T2"):
        talk.says(ALICE, merges(fork))

    assert talk.room == before
    talk.says(POLICY, tasks(replace(ACCEPTED, branch=branch)))
    talk.says(ALICE, merges(fork), id="merge")
    with refused(Why.WRONG_STATE, "first do `accord pact merge cart`"):
        talk.says(ALICE, executes_merge("merge"))
    talk.says(POLICY, tasks(replace(SHIPPED, branch=branch)))
    talk.says(ALICE, executes_merge("merge"))
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_what_was_accepted_when_it_was_proposed_may_be_open_again() -> None:
    talk = talking(ACCEPTED)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.says(ALICE, merges(fork), id="merge")
    talk.says(POLICY, tasks(OPEN))

    with refused(Why.WRONG_STATE, "Rule 2"):
        talk.says(ALICE, executes_merge("merge"))


@proves("UNI-21")
def test_what_a_fork_took_along_from_another_waits_as_well() -> None:
    talk = talking(OPEN)
    fork = talk.fork("cart", CLAUDE, BOB)
    beyond = talk.fork("Beyond", CLAUDE, BOB, fork=fork)

    with refused(Why.WRONG_STATE, "Rule 2: cart"):
        talk.says(ALICE, merges(beyond))

    talk.merges(beyond, fork)
    assert talk.room.forks[beyond].merged


@proves("UNI-21")
def test_of_more_features_than_are_known_nothing_is_merged() -> None:
    many = [Lane(f"f{n}", f"b{n}", ("T",)) for n in range(MOST_LANES)]
    talk = talking(*many)
    fork = talk.fork("Aside", CLAUDE, BOB)

    with refused(Why.WRONG_STATE, "too many to go by"):
        talk.says(ALICE, merges(fork))

    talk.says(POLICY, tasks(*many[:-1], replace(many[-1], open=(), shipped=True)))
    talk.merges(fork)
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_while_there_may_be_tasks_that_nobody_knows_of_nothing_is_merged() -> None:
    talk = talking()
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.says(POLICY, replace(tasks(), trouble="The log has over 64 MiB"))

    with refused(Why.WRONG_STATE, "nobody here knows of.*: The log has over 64 MiB"):
        talk.says(ALICE, merges(fork))

    talk.says(POLICY, tasks())
    talk.merges(fork)
    assert talk.room.forks[fork].merged


def test_other_forks_are_not_the_pacts_business() -> None:
    talk = talking(OPEN)
    fork = talk.fork("Aside", CLAUDE, BOB)

    talk.merges(fork)

    assert talk.room.forks[fork].merged


# What was bound stays bound


def still_waits(talk: Talk, fork: str, said: str = "Rule 2: cart") -> None:
    """Neither proposed nor, had it been proposed before, executed."""
    with refused(Why.WRONG_STATE, said):
        talk.says(ALICE, merges(fork))


@proves("UNI-21")
def test_a_session_that_leaves_its_repository_heeds_its_pact_all_the_same() -> None:
    talk = talking(ACCEPTED)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.says(ALICE, merges(fork), id="merge")
    talk.says(POLICY, tasks(OPEN))
    talk.says(POLICY, TasksRelease(repo=REPO))
    later = talk.fork("cart", CLAUDE, BOB)
    beyond = talk.fork("Beyond", CLAUDE, BOB, fork=later)

    for execute in (True, False):
        with pytest.raises(Refused, match="no unbinding frees what was forked") as no:
            talk.says(ALICE, executes_merge("merge") if execute else merges(later))
        assert f"`accord git bind {talk.room.id}`" in no.value.detail
        assert no.value.why is Why.WRONG_STATE
        assert no.value.details == {"feature": "cart", "repo": REPO, "tasks": ["T1", "T2"]}
    still_waits(talk, beyond)


@proves("UNI-21")
@pytest.mark.parametrize("lane", [None, SHIPPED])
def test_another_repository_frees_nothing(lane: Lane | None) -> None:
    talk = talking(OPEN)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.says(POLICY, TasksRelease(repo=REPO))
    talk.says(POLICY, tasks(*([lane] if lane else []), repo="other"))

    still_waits(talk, fork)

    talk.says(POLICY, TasksGuard(repo=REPO, lanes=(ACCEPTED,)))
    talk.says(ALICE, merges(fork), id="merge")
    with refused(Why.WRONG_STATE, "first do `accord pact merge cart`. So the pact of shop-1"):
        talk.says(ALICE, executes_merge("merge"))
    talk.says(POLICY, TasksGuard(repo=REPO, lanes=(SHIPPED,)))
    talk.says(ALICE, executes_merge("merge"))
    assert talk.room.forks[fork].merged


@proves("UNI-21")
def test_a_pact_that_is_not_shown_is_heeded_and_nobody_hears_of_it() -> None:
    talk = talking()
    fork = talk.fork("cart", CLAUDE, BOB)
    guard = TasksGuard(repo="other", lanes=(OPEN,))

    facts = talk.says(POLICY, guard)

    assert kinds(facts) == [TasksGuarded]
    assert facts.records[0].said is None
    assert talk.room.pact == Pact(REPO)
    assert kinds(talk.says(POLICY, guard)) == []
    still_waits(talk, fork)


@proves("UNI-21")
def test_what_a_branch_lacks_frees_nothing() -> None:
    """Another branch that is checked out has another log; nothing is ever taken out of a pact."""
    talk = talking(OPEN)
    fork = talk.fork("cart", CLAUDE, BOB)
    talk.says(POLICY, tasks())
    still_waits(talk, fork)

    talk.says(POLICY, tasks(replace(SHIPPED, branch="elsewhere")))
    still_waits(talk, fork)

    talk.says(POLICY, tasks(SHIPPED))
    talk.merges(fork)
    assert talk.room.forks[fork].merged


def test_what_was_merged_may_vanish() -> None:
    talk = talking(SHIPPED)
    talk.says(POLICY, tasks())

    assert talk.room.pacts == {REPO: Pact(REPO)}


@proves("UNI-21")
def test_more_than_can_be_known_is_not_forgotten_but_refused() -> None:
    many = [Lane(f"f{n}", f"b{n}", ("T",)) for n in range(MOST_LANES - 1)]
    talk = talking(OPEN, *many[:-1])
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.says(POLICY, tasks(*many))

    still_waits(talk, fork, "too many to go by")

    full = [*many, SHIPPED]
    talk.says(POLICY, tasks(*full))
    assert talk.room.pacts[REPO].lanes == tuple(full), "of a full list, none is kept besides"
    talk.merges(fork)
