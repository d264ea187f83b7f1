"""The pact of a session's repository in the room: read by all, and written by nobody."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.forking import pact_tasks
from accord.core.room.forking.fork_state import MergeStrategy, PactSummary
from accord.core.room.forking.pact_tasks import (
    ReviewAsk,
    ReviewAsked,
    ReviewEnd,
    ReviewEnded,
    TasksGuard,
    TasksMirrored,
    TasksRelease,
    TasksReleased,
)
from accord.core.room.session_lifecycle import SessionEnd
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.shared_context.item_content import TASKS_KEY
from accord.core.room.state import Room
from tests.helpers.room.logged_room import LoggedRoom, merge_execute
from tests.helpers.room.pact_scenarios import (
    ACCEPTED_FEATURE,
    OPEN_FEATURE,
    REPO_ID,
    TASKS_CONTENT,
    room_with_pact,
    tasks_mirror,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    create_step,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    types_of,
    when,
)
from tests.spec import proves

LATER: dict[str, Any] = {"goal": "market", "tasks": [], "pact": REPO_ID}
ASK = ReviewAsk(task="T1", checkpoint="c" * 32, words="bob shows T1")
TEXT = ContextAdd(key="review:T1", content_type="text", content="mine")


def shelf_of(talk: LoggedRoom, scope: str = "") -> dict[str, Any]:
    return {key: item.content for key, item in talk.room.shelf.get(scope, {}).items()}


# Tasks


@proves("UNI-17")
def test_everybody_hears_the_tasks_of_the_repository_as_context() -> None:
    talk = LoggedRoom.with_members((CLAUDE, Role.DRIVER))

    facts = talk.send(POLICY_ACTOR, tasks_mirror(OPEN_FEATURE))

    assert types_of(facts) == [TasksMirrored]
    (record,) = facts.records
    assert (record.sender, record.to) == ("system", None)
    assert record.said == ContextAdd(
        key=TASKS_KEY, content_type="structured", content=TASKS_CONTENT, tags=("pact",)
    )
    assert shelf_of(talk) == {TASKS_KEY: TASKS_CONTENT}
    assert talk.room.pact == PactSummary(REPO_ID, (OPEN_FEATURE,))


def test_what_is_known_is_not_told_again() -> None:
    talk = room_with_pact(OPEN_FEATURE)

    assert types_of(talk.decide(POLICY_ACTOR, tasks_mirror(OPEN_FEATURE))) == []
    assert types_of(talk.decide(POLICY_ACTOR, tasks_mirror(ACCEPTED_FEATURE))) == [TasksMirrored]
    assert types_of(talk.decide(POLICY_ACTOR, tasks_mirror(OPEN_FEATURE, content=LATER))) == [
        TasksMirrored
    ]


def test_a_session_shows_the_tasks_of_one_repository() -> None:
    talk = room_with_pact()

    with expect_refusal(Reason.WRONG_STATE, f"tasks of {REPO_ID}"):
        talk.decide(POLICY_ACTOR, tasks_mirror(repo="other"))


@proves("UNI-17")
@pytest.mark.parametrize("who", [ALICE, BOB, CLAUDE], ids=lambda who: who.principal)
@pytest.mark.parametrize("key", [TASKS_KEY, "review:T1"])
def test_nobody_writes_what_the_repository_says(who: Any, key: str) -> None:
    talk = room_with_pact()
    talk.send(POLICY_ACTOR, ASK)
    before = talk.room
    wishes: list[Body] = [
        ContextAdd(key=key, content_type="structured", content={"goal": None, "tasks": []}),
        ContextUpdate(key=key, reason="better", new_content={"goal": None, "tasks": []}),
        ContextRemove(key=key, reason="away"),
    ]

    for wish in wishes:
        with expect_refusal(Reason.FORBIDDEN, "pact"):
            talk.send(who, wish)

    assert talk.room == before


def test_without_a_pact_tasks_are_the_agents_own() -> None:
    talk = LoggedRoom.with_members((CLAUDE, Role.DRIVER))
    own = ContextAdd(key=TASKS_KEY, content_type="structured", content={"goal": None, "tasks": []})

    talk.send(CLAUDE, own)
    talk.send(CLAUDE, TEXT)

    assert set(shelf_of(talk)) == {TASKS_KEY, "review:T1"}
    talk.send(POLICY_ACTOR, tasks_mirror())
    assert shelf_of(talk)[TASKS_KEY] == TASKS_CONTENT


@proves("UNI-17")
@pytest.mark.parametrize("copy", [True, False])
def test_a_fork_reads_the_same_tasks(copy: bool) -> None:
    talk = room_with_pact()
    fork = talk.fork("Aside", CLAUDE, copy=copy)
    assert shelf_of(talk, fork)[TASKS_KEY] == TASKS_CONTENT

    talk.send(POLICY_ACTOR, tasks_mirror(content=LATER))

    assert shelf_of(talk)[TASKS_KEY] == shelf_of(talk, fork)[TASKS_KEY] == LATER
    with expect_refusal(Reason.FORBIDDEN, "pact"):
        talk.decide(CLAUDE, ContextRemove(key=TASKS_KEY, reason="mine"), fork=fork)


@pytest.mark.parametrize("strategy", [MergeStrategy.APPEND, MergeStrategy.REPLACE])
def test_a_merge_leaves_the_tasks_as_the_repository_has_them(strategy: MergeStrategy) -> None:
    talk = room_with_pact()
    fork = talk.fork("Aside", CLAUDE, BOB)
    talk.send(POLICY_ACTOR, tasks_mirror(content=LATER))
    merge = talk.propose_merge(fork, strategy=strategy)
    if strategy is MergeStrategy.REPLACE:
        talk.send(BOB, gate_approve(BOB, gate_on(talk.room, merge).id))

    talk.send(ALICE, merge_execute(merge))

    assert shelf_of(talk)[TASKS_KEY] == LATER
    assert talk.room.forks[fork].merged


# Reviews


def test_a_review_lies_there_until_it_is_judged() -> None:
    talk = room_with_pact()

    facts = talk.send(POLICY_ACTOR, ASK, id="review-1")

    assert types_of(facts) == [ReviewAsked]
    assert facts.records[0].to is None
    assert shelf_of(talk)["review:T1"] == "bob shows T1"
    assert pact_tasks.pending_reviews(talk.room) == {"review:T1": "c" * 32}
    assert types_of(talk.send(POLICY_ACTOR, ReviewEnd(task="T1", reason="accepted"))) == [
        ReviewEnded
    ]
    assert "review:T1" not in shelf_of(talk)
    assert types_of(talk.send(POLICY_ACTOR, ReviewEnd(task="T1", reason="accepted"))) == []


def test_a_checkpoint_is_told_once_as_long_as_it_waits() -> None:
    talk = room_with_pact()
    talk.send(POLICY_ACTOR, ASK)

    assert types_of(talk.decide(POLICY_ACTOR, replace(ASK, words="other words"))) == []
    assert types_of(talk.decide(POLICY_ACTOR, replace(ASK, checkpoint="d" * 32))) == [ReviewAsked]
    talk.send(POLICY_ACTOR, ReviewEnd(task="T1", reason="accepted"))
    assert types_of(talk.send(POLICY_ACTOR, ASK)) == [ReviewAsked]


def test_a_review_that_a_fork_took_along_is_over_there_too() -> None:
    talk = room_with_pact()
    talk.send(POLICY_ACTOR, ASK)
    fork = talk.fork("Aside", CLAUDE, copy=True)
    assert "review:T1" in shelf_of(talk, fork)

    talk.send(POLICY_ACTOR, ReviewEnd(task="T1", reason="accepted"))

    assert "review:T1" not in shelf_of(talk) | shelf_of(talk, fork)


def test_a_members_own_context_in_a_fork_outlives_a_review_of_that_name() -> None:
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    fork = talk.fork("Aside", CLAUDE)
    talk.send(CLAUDE, TEXT, fork=fork)
    talk.send(POLICY_ACTOR, tasks_mirror())
    talk.send(POLICY_ACTOR, ASK)

    talk.send(POLICY_ACTOR, ReviewEnd(task="T1", reason="accepted"))

    assert "review:T1" not in shelf_of(talk)
    assert shelf_of(talk, fork)["review:T1"] == "mine"


def test_what_a_member_put_there_before_is_the_members_own() -> None:
    talk = LoggedRoom.with_members((BOB, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.send(CLAUDE, TEXT)
    talk.send(POLICY_ACTOR, tasks_mirror())

    talk.send(CLAUDE, ContextUpdate(key=TEXT.key, reason="better", new_content="still mine"))
    assert shelf_of(talk)[TEXT.key] == "still mine"
    talk.send(CLAUDE, ContextRemove(key=TEXT.key, reason="away"))

    assert TEXT.key not in shelf_of(talk)
    with expect_refusal(Reason.FORBIDDEN, "pact"):
        talk.send(CLAUDE, TEXT)


def test_without_a_pact_there_is_nothing_to_review() -> None:
    assert types_of(when(given(create_step()), POLICY_ACTOR, ASK)) == []


def test_a_members_own_context_of_that_name_is_no_review() -> None:
    talk = LoggedRoom.with_members((CLAUDE, Role.DRIVER))
    talk.send(CLAUDE, TEXT)

    assert pact_tasks.pending_reviews(talk.room) == {}


# The end


def test_with_its_repository_go_its_tasks_and_reviews() -> None:
    talk = room_with_pact()
    fork = talk.fork("Aside", CLAUDE)
    talk.send(POLICY_ACTOR, ASK)

    facts = talk.send(POLICY_ACTOR, TasksRelease(repo=REPO_ID))

    assert types_of(facts) == [TasksReleased, ReviewEnded]
    assert shelf_of(talk) == {}
    assert TASKS_KEY not in shelf_of(talk, fork)
    assert talk.room.pact is None
    assert types_of(talk.send(POLICY_ACTOR, TasksRelease(repo=REPO_ID))) == []


def test_another_repository_takes_nothing_away() -> None:
    assert types_of(room_with_pact().decide(POLICY_ACTOR, TasksRelease(repo="other"))) == []


def test_a_session_that_is_over_or_not_there_is_told_nothing() -> None:
    talk = room_with_pact()
    talk.send(ALICE, SessionEnd(reason="done", final_state="completed"))
    nowhere = Room(id="r")

    guard = TasksGuard(repo="other", lanes=(OPEN_FEATURE,))
    for body in (
        tasks_mirror(content=LATER),
        TasksRelease(repo=REPO_ID),
        guard,
        ASK,
        ReviewEnd("T1", "x"),
    ):
        assert types_of(talk.decide(POLICY_ACTOR, body)) == []
        assert types_of(when(nowhere, POLICY_ACTOR, body)) == []
