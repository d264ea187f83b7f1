"""The pact of a session's repository in the room: read by all, and written by nobody."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import POLICY
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room import pact
from accord.core.room.content import TASKS
from accord.core.room.lifecycle import SessionEnd
from accord.core.room.pact import (
    ReviewAsk,
    ReviewAsked,
    ReviewEnd,
    ReviewEnded,
    TasksGuard,
    TasksMirrored,
    TasksRelease,
    TasksReleased,
)
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import Pact, Room, Strategy
from tests.helpers.forks import Talk, executes_merge
from tests.helpers.pact import ACCEPTED, CONTENT, OPEN, REPO, talking, tasks
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

LATER: dict[str, Any] = {"goal": "market", "tasks": [], "pact": REPO}
ASK = ReviewAsk(task="T1", checkpoint="c" * 32, words="bob shows T1")
TEXT = ContextAdd(key="review:T1", content_type="text", content="mine")


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
