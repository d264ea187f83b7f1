"""A grant that was not used can be taken back; what ran anyway is shown as such."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.approval.grants import LATE_KEY, GrantTakenBack
from accord.core.room.approval.tool_proposals import ToolFinished, ToolRanLate
from accord.core.room.room_settings import Category
from accord.core.room.state import Room
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    Step,
    after,
    expect_refusal,
    given,
    join_step,
    script_step,
    tool_execute,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
    types_of,
    when,
)
from tests.helpers.room.tool_scenarios import room_with_approved_tool
from tests.spec import proves

TAKES_BACK = script_step(ALICE, tool_reject(ALICE, "p"))


def granted(*script: Step) -> Room:
    """Claude holds a grant for `p`; Alice is admin, Bob drives, Carol observes and approves."""
    return room_with_approved_tool(
        join_step(BOB, Role.DRIVER),
        join_step(CAROL, Role.OBSERVER, capabilities=(Capability.APPROVE,)),
        *script,
    )


@proves("OPEN-13", "OPEN-22")
def test_a_member_who_may_approve_takes_an_unused_grant_back() -> None:
    room = granted()

    facts = when(room, ALICE, tool_reject(ALICE, "p"))
    room = after(room, facts)

    assert types_of(facts) == [GrantTakenBack, Relay]
    assert facts.records[0].to is None
    notice = facts[1]
    assert isinstance(notice, Relay)
    assert isinstance(notice.body, Failure)
    assert (notice.body.reason, notice.body.related_to) == (Reason.GATE_FAILED, "p")
    assert room.tools == {}


@proves("OPEN-22")
@pytest.mark.parametrize("use", [tool_execute, tool_output])
def test_a_grant_that_was_taken_back_cannot_be_used(use: Any) -> None:
    with expect_refusal(Reason.GATE_FAILED, "p was rejected: alice took the grant back"):
        when(granted(TAKES_BACK), CLAUDE, use("p"))


@proves("OPEN-22")
@pytest.mark.parametrize("use", [tool_execute, tool_output])
def test_a_grant_in_use_cannot_be_taken_back(use: Any) -> None:
    room = granted(script_step(CLAUDE, use("p")))

    with expect_refusal(Reason.WRONG_STATE, "claude already used the grant for p"):
        when(room, ALICE, tool_reject(ALICE, "p"))


def test_a_finished_tool_cannot_be_taken_back() -> None:
    with expect_refusal(Reason.WRONG_STATE, "p is already closed: finished"):
        when(granted(script_step(CLAUDE, tool_result("p"))), ALICE, tool_reject(ALICE, "p"))


@proves("OPEN-13")
@pytest.mark.parametrize("who", [BOB, CODEX, CLAUDE])
def test_only_those_who_may_approve_take_a_grant_back(who: Actor) -> None:
    with expect_refusal(Reason.FORBIDDEN, "Only a member who may approve"):
        when(granted(), who, tool_reject(who, "p"))
    assert when(granted(), CAROL, tool_reject(CAROL, "p"))


@proves("OPEN-22")
def test_one_result_of_a_grant_taken_back_is_accepted_as_having_run_anyway() -> None:
    room = granted(TAKES_BACK)
    result = tool_result("p")

    facts = when(room, CLAUDE, result)
    room = after(room, facts)

    (late,) = facts
    assert isinstance(late, ToolRanLate)
    assert not isinstance(late, ToolFinished)
    assert (late.said.metadata or {})[LATE_KEY] is True
    assert result.is_retry_of(late.said)
    assert not tool_result("p", success=False).is_retry_of(late.said)
    assert not result.is_retry_of(tool_execute("p"))
    assert room.taken_back == {}
    with expect_refusal(Reason.GATE_FAILED, "took the grant back"):
        when(room, CLAUDE, result)


def test_another_agent_s_result_or_another_grant_is_refused() -> None:
    room = granted(TAKES_BACK)

    with expect_refusal(Reason.GATE_FAILED):
        when(room, CODEX, tool_result("p"))
    with expect_refusal(Reason.GATE_FAILED):
        when(room, CLAUDE, tool_result("p", grant="another"))


def test_a_grant_of_a_fork_is_taken_back_there_and_nowhere_else() -> None:
    talk = LoggedRoom.with_members(
        (BOB, Role.APPROVER), (CAROL, Role.APPROVER), (CLAUDE, Role.DRIVER)
    )
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(CLAUDE, tool_propose(category=Category.FILE_READ), id="p", fork=fork)

    with expect_refusal(Reason.NOT_FOUND, "There is no open gate p"):
        talk.decide(CAROL, tool_reject(CAROL, "p"))
    talk.send(BOB, tool_reject(BOB, "p"), fork=fork)
    talk.send(CLAUDE, tool_result("p"), id="late", fork=fork)

    assert "carol" not in talk.readers("late")


def test_a_log_that_takes_back_what_is_not_there_still_folds() -> None:
    facts = when(granted(), ALICE, tool_reject(ALICE, "p"))
    empty = given(script_step(CLAUDE, tool_result("p")), room=granted())

    assert after(empty, facts) == empty
