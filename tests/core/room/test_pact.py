"""The pact of a session's repository in the room: read by all, written by nobody, and heeded."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import POLICY
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import pact
from accord.core.room.content import TASKS
from accord.core.room.lanes import MOST_LANES
from accord.core.room.lifecycle import SessionEnd
from accord.core.room.pact import (
    ReviewAsk,
    ReviewAsked,
    ReviewEnd,
    ReviewEnded,
    TasksGuard,
    TasksGuarded,
    TasksMirror,
    TasksMirrored,
    TasksRelease,
    TasksReleased,
)
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import Lane, Pact, Room, Strategy
from tests.helpers.forks import Talk, executes_merge, merges
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    approves,
    gate_on,
    given,
    kinds,
    opened,
    refused,
    when,
)
from tests.spec import proves

REPO = "shop-1"
CONTENT: dict[str, Any] = {"goal": "shop", "tasks": [], "pact": REPO}
LATER: dict[str, Any] = {"goal": "market", "tasks": [], "pact": REPO}
OPEN = Lane("cart", "cart", ("T1", "T2"))
ACCEPTED = Lane("cart", "cart")
SHIPPED = Lane("cart", "cart", shipped=True)
ASK = ReviewAsk(task="T1", checkpoint="c" * 32, words="bob shows T1")
TEXT = ContextAdd(key="review:T1", content_type="text", content="mine")


def tasks(*lanes: Lane, content: dict[str, Any] = CONTENT, repo: str = REPO) -> TasksMirror:
    return TasksMirror(repo=repo, content=content, lanes=lanes)


def talking(*lanes: Lane) -> Talk:
    talk = Talk.of((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.says(POLICY, tasks(*lanes))
    return talk


def shelf_of(talk: Talk, scope: str = "") -> dict[str, Any]:
    return {key: item.content for key, item in talk.room.shelf.get(scope, {}).items()}


# Tasks


@proves("UNI-17")
def test_everybody_hears_the_tasks_of_the_repository_as_context() -> None:
    talk = Talk.of((CLAUDE, Role.DRIVER))

    facts = talk.says(POLICY, tasks(OPEN))

    assert kinds(facts) == [TasksMirrored]
    (record,) = facts.records
    assert (record.sender, record.to) == ("system", None)
    assert record.said == ContextAdd(
        key=TASKS, content_type="structured", content=CONTENT, tags=("pact",)
    )
    assert shelf_of(talk) == {TASKS: CONTENT}
    assert talk.room.pact == Pact(REPO, (OPEN,))


def test_what_is_known_is_not_told_again() -> None:
    talk = talking(OPEN)

    assert kinds(talk.tries(POLICY, tasks(OPEN))) == []
    assert kinds(talk.tries(POLICY, tasks(ACCEPTED))) == [TasksMirrored]
    assert kinds(talk.tries(POLICY, tasks(OPEN, content=LATER))) == [TasksMirrored]


def test_a_session_shows_the_tasks_of_one_repository() -> None:
    talk = talking()

    with refused(Why.WRONG_STATE, f"tasks of {REPO}"):
        talk.tries(POLICY, tasks(repo="other"))


@proves("UNI-17")
@pytest.mark.parametrize("who", [ALICE, BOB, CLAUDE], ids=lambda who: who.seat)
@pytest.mark.parametrize("key", [TASKS, "review:T1"])
def test_nobody_writes_what_the_repository_says(who: Any, key: str) -> None:
    talk = talking()
    talk.says(POLICY, ASK)
    before = talk.room
    wishes: list[Body] = [
        ContextAdd(key=key, content_type="structured", content={"goal": None, "tasks": []}),
        ContextUpdate(key=key, reason="better", new_content={"goal": None, "tasks": []}),
        ContextRemove(key=key, reason="away"),
    ]

    for wish in wishes:
        with refused(Why.FORBIDDEN, "pact"):
            talk.says(who, wish)

    assert talk.room == before


def test_without_a_pact_tasks_are_the_agents_own() -> None:
    talk = Talk.of((CLAUDE, Role.DRIVER))
    own = ContextAdd(key=TASKS, content_type="structured", content={"goal": None, "tasks": []})

    talk.says(CLAUDE, own)
    talk.says(CLAUDE, TEXT)

    assert set(shelf_of(talk)) == {TASKS, "review:T1"}
    talk.says(POLICY, tasks())
    assert shelf_of(talk)[TASKS] == CONTENT


@proves("UNI-17")
@pytest.mark.parametrize("copy", [True, False])
def test_a_fork_reads_the_same_tasks(copy: bool) -> None:
    talk = talking()
    fork = talk.fork("Aside", CLAUDE, copy=copy)
    assert shelf_of(talk, fork)[TASKS] == CONTENT

    talk.says(POLICY, tasks(content=LATER))

    assert shelf_of(talk)[TASKS] == shelf_of(talk, fork)[TASKS] == LATER
    with refused(Why.FORBIDDEN, "pact"):
        talk.tries(CLAUDE, ContextRemove(key=TASKS, reason="mine"), fork=fork)


@pytest.mark.parametrize("strategy", [Strategy.APPEND, Strategy.REPLACE])
def test_a_merge_leaves_the_tasks_as_the_repository_has_them(strategy: Strategy) -> None:
    talk = talking()
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.says(POLICY, tasks(content=LATER))
    merge = talk.proposes_merge(fork, strategy=strategy)
    if strategy is Strategy.REPLACE:
        talk.says(BOB, approves(BOB, gate_on(talk.room, merge).id))

    talk.says(ALICE, executes_merge(merge))

    assert shelf_of(talk)[TASKS] == LATER
    assert talk.room.forks[fork].merged


# Reviews


def test_a_review_lies_there_until_it_is_judged() -> None:
    talk = talking()

    facts = talk.says(POLICY, ASK, id="review-1")

    assert kinds(facts) == [ReviewAsked]
    assert facts.records[0].to is None
    assert shelf_of(talk)["review:T1"] == "bob shows T1"
    assert pact.reviews(talk.room) == {"review:T1": "c" * 32}
    assert kinds(talk.says(POLICY, ReviewEnd(task="T1", reason="accepted"))) == [ReviewEnded]
    assert "review:T1" not in shelf_of(talk)
    assert kinds(talk.says(POLICY, ReviewEnd(task="T1", reason="accepted"))) == []


def test_a_checkpoint_is_told_once_as_long_as_it_waits() -> None:
    talk = talking()
    talk.says(POLICY, ASK)

    assert kinds(talk.tries(POLICY, replace(ASK, words="other words"))) == []
    assert kinds(talk.tries(POLICY, replace(ASK, checkpoint="d" * 32))) == [ReviewAsked]
    talk.says(POLICY, ReviewEnd(task="T1", reason="accepted"))
    assert kinds(talk.says(POLICY, ASK)) == [ReviewAsked]


def test_a_review_that_a_fork_took_along_is_over_there_too() -> None:
    talk = talking()
    talk.says(POLICY, ASK)
    fork = talk.fork("Aside", CLAUDE, copy=True)
    assert "review:T1" in shelf_of(talk, fork)

    talk.says(POLICY, ReviewEnd(task="T1", reason="accepted"))

    assert "review:T1" not in shelf_of(talk) | shelf_of(talk, fork)


def test_a_members_own_context_in_a_fork_outlives_a_review_of_that_name() -> None:
    talk = Talk.of((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Aside", CLAUDE)
    talk.says(CLAUDE, TEXT, fork=fork)
    talk.says(POLICY, tasks())
    talk.says(POLICY, ASK)

    talk.says(POLICY, ReviewEnd(task="T1", reason="accepted"))

    assert "review:T1" not in shelf_of(talk)
    assert shelf_of(talk, fork)["review:T1"] == "mine"


def test_what_a_member_put_there_before_is_the_members_own() -> None:
    talk = Talk.of((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.says(CLAUDE, TEXT)
    talk.says(POLICY, tasks())

    talk.says(CLAUDE, ContextUpdate(key=TEXT.key, reason="better", new_content="still mine"))
    assert shelf_of(talk)[TEXT.key] == "still mine"
    talk.says(CLAUDE, ContextRemove(key=TEXT.key, reason="away"))

    assert TEXT.key not in shelf_of(talk)
    with refused(Why.FORBIDDEN, "pact"):
        talk.says(CLAUDE, TEXT)


def test_without_a_pact_there_is_nothing_to_review() -> None:
    assert kinds(when(given(opened()), POLICY, ASK)) == []


def test_a_members_own_context_of_that_name_is_no_review() -> None:
    talk = Talk.of((CLAUDE, Role.DRIVER))
    talk.says(CLAUDE, TEXT)

    assert pact.reviews(talk.room) == {}


# The end


def test_with_its_repository_go_its_tasks_and_reviews() -> None:
    talk = talking()
    fork = talk.fork("Aside", CLAUDE)
    talk.says(POLICY, ASK)

    facts = talk.says(POLICY, TasksRelease(repo=REPO))

    assert kinds(facts) == [TasksReleased, ReviewEnded]
    assert shelf_of(talk) == {}
    assert TASKS not in shelf_of(talk, fork)
    assert talk.room.pact is None
    assert kinds(talk.says(POLICY, TasksRelease(repo=REPO))) == []


def test_another_repository_takes_nothing_away() -> None:
    assert kinds(talking().tries(POLICY, TasksRelease(repo="other"))) == []


def test_a_session_that_is_over_or_not_there_is_told_nothing() -> None:
    talk = talking()
    talk.says(ALICE, SessionEnd(reason="done", final_state="completed"))
    nowhere = Room(id="r")

    guard = TasksGuard(repo="other", lanes=(OPEN,))
    for body in (tasks(content=LATER), TasksRelease(repo=REPO), guard, ASK, ReviewEnd("T1", "x")):
        assert kinds(talk.tries(POLICY, body)) == []
        assert kinds(when(nowhere, POLICY, body)) == []


# Rule 2


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
