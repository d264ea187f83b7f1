"""Tools: who may run what, and for how long."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.ballot import AnyOf, Named
from accord.core.kernel.context import EventOrEffect
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared, ToolExecute, ToolReject
from accord.core.room.approval.tool_proposals import (
    ToolApprove,
    ToolExpired,
    ToolFinished,
    ToolOutput,
    ToolPrinted,
    ToolPropose,
    ToolProposed,
    ToolResult,
    ToolStarted,
)
from accord.core.room.approval.votes import GateApproved, GatePassed
from accord.core.room.deadlines import due_instants
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Grant
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    CODEX,
    DEFAULT_POLICY,
    after,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_reject,
    given,
    grant_of,
    has_grant,
    has_open_gate,
    join_step,
    prompt_submit,
    relays_of,
    script_step,
    seconds_after_start,
    session_end,
    tick_at,
    tool_approve,
    tool_execute,
    tool_output,
    tool_propose,
    tool_reject,
    tool_result,
    types_of,
    when,
)
from tests.helpers.room.tool_scenarios import room_with_approved_tool, room_with_two_agents
from tests.spec import proves

HOUR = 3600


# Executing


@proves("PVP-13-1", "PVP-13.3-1", "OPEN-22")
def test_a_tool_goes_from_proposal_through_gate_and_execution_to_its_result() -> None:
    room, happened = room_with_two_agents(), list[type[EventOrEffect]]()
    for actor, body in [
        (CLAUDE, tool_propose()),
        (ALICE, tool_approve(ALICE, "p")),
        (CLAUDE, tool_execute("p")),
        (CLAUDE, tool_output("p")),
        (CLAUDE, tool_result("p")),
    ]:
        facts = when(room, actor, body, id="p" if isinstance(body, ToolPropose) else None)
        happened += types_of(facts)
        room = after(room, facts)

    assert [
        *(ToolProposed, GateOpened),
        *(GateApproved, GatePassed, ToolCleared),
        *(ToolStarted, ToolPrinted, ToolFinished),
    ] == happened
    assert (room.tools, room.past["p"]) == ({}, "finished")


@proves("OPEN-22")
def test_an_agents_own_execute_is_not_repeated_to_the_room() -> None:
    (started,) = when(room_with_approved_tool(), CLAUDE, tool_execute("p"))

    assert isinstance(started, ToolStarted)
    assert started.to == frozenset({"claude"})


@proves("OPEN-22")
def test_who_approved_is_for_the_server_to_say() -> None:
    lie = ToolExecute(tool_proposal="p", approved_by=("bob", "carol"))

    (started,) = when(room_with_approved_tool(), CLAUDE, lie)

    assert isinstance(started, ToolStarted)
    assert started.said.approved_by == ()
    assert lie.is_retry_of(started.said)
    assert not tool_execute("p2").is_retry_of(started.said)
    assert not lie.is_retry_of(prompt_submit())


@proves("OPEN-22")
@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_nothing_happens_before_the_approval(use: Any) -> None:
    room = room_with_two_agents(script_step(CLAUDE, tool_propose(), id="p"))

    with expect_refusal(Reason.WRONG_STATE, "p is not approved yet"):
        when(room, CLAUDE, use("p"))


@proves("OPEN-22", "OPEN-25")
@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_nothing_happens_after_a_rejection(use: Any) -> None:
    room = room_with_two_agents(
        script_step(CLAUDE, tool_propose(), id="p"), script_step(ALICE, gate_reject(ALICE, "p"))
    )

    with expect_refusal(Reason.GATE_FAILED, "p was rejected"):
        when(room, CLAUDE, use("p"))


@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_unknown_proposal_is_refused(use: Any) -> None:
    with expect_refusal(Reason.NOT_FOUND, "no open proposal x"):
        when(room_with_two_agents(), CLAUDE, use("x"))


@proves("OPEN-22")
def test_a_grant_is_used_once() -> None:
    started = room_with_approved_tool(script_step(CLAUDE, tool_execute("p")))

    with expect_refusal(Reason.WRONG_STATE, "already used"):
        when(started, CLAUDE, tool_execute("p"))


@proves("PVP-13.2-2")
def test_an_agent_need_not_confirm_that_it_begins() -> None:
    assert [ToolFinished] == types_of(when(room_with_approved_tool(), CLAUDE, tool_result("p")))


@proves("OPEN-10")
@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_nobody_runs_another_agents_tool(use: Any) -> None:
    with expect_refusal(Reason.FORBIDDEN, "p was proposed by claude"):
        when(room_with_approved_tool(), CODEX, use("p"))


@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_finished_tool_cannot_be_used_again(use: Any) -> None:
    room = room_with_approved_tool(script_step(CLAUDE, tool_result("p")))

    with expect_refusal(Reason.WRONG_STATE, "p is closed: finished"):
        when(room, CLAUDE, use("p"))


def test_an_agent_that_comes_back_finds_its_unused_grants_ended() -> None:
    room = room_with_approved_tool(
        script_step(CLAUDE, SessionLeave()), join_step(CLAUDE, Role.DRIVER)
    )

    with expect_refusal(Reason.GATE_FAILED, "p was rejected: claude left"):
        when(room, CLAUDE, tool_result("p"))


@proves("OPEN-27")
def test_no_tool_outlives_its_session() -> None:
    room = room_with_approved_tool(script_step(ALICE, session_end()))

    assert room.tools == {}
    with expect_refusal(Reason.ENDED):
        when(room, CLAUDE, tool_result("p"))


def test_a_failure_is_a_result_too() -> None:
    room = room_with_approved_tool()

    room = after(room, when(room, CLAUDE, tool_result("p", success=False)))

    assert room.past["p"] == "finished"


@proves("PVP-13.3-2")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_streams_while_the_tool_runs_and_leaves_no_mark_on_the_room(stream: Any) -> None:
    room = room_with_approved_tool(script_step(CLAUDE, tool_execute("p")))
    body = ToolOutput(tool_proposal="p", stream=stream, text="ok\n", complete=False)

    facts = when(room, CLAUDE, body)

    assert facts == [ToolPrinted(said=body)]
    assert after(room, facts) is room


@proves("PVP-13.3-3")
def test_a_result_is_written_as_the_specification_has_it() -> None:
    whole = {"tool_proposal": "p", "success": True, "duration_ms": 12}

    assert msgspec.to_builtins(tool_result("p")) == whole
    for result in ({"exit": 0}, [1, "a"], "text", 3, False):
        assert msgspec.convert(whole | {"result": result}, ToolResult).result == result
    assert msgspec.convert(whole | {"error": "Oh"}, ToolResult).error == "Oh"
    assert msgspec.convert(whole | {"duration_ms": 0}, ToolResult).duration_ms == 0
    for field in whole:
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({k: v for k, v in whole.items() if k != field}, ToolResult)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(whole | {"duration_ms": -1}, ToolResult)


@proves("OPEN-3")
def test_votes_on_tools_are_written_as_clients_write_them() -> None:
    yes = {"tool_proposal": "p", "approver": "alice", "comment": "Good"}
    no = {"tool_proposal": "p", "rejector": "alice", "reason": "No", "suggestion": "Try -n"}

    assert msgspec.to_builtins(msgspec.convert(yes, ToolApprove)) == yes
    assert msgspec.to_builtins(msgspec.convert(no, ToolReject)) == no
    assert msgspec.to_builtins(tool_approve(ALICE, "p")).keys() == {"tool_proposal", "approver"}
    assert tool_reject(ALICE, "p").suggestion is None


# With a grant in hand


def test_the_grant_that_was_given_may_be_shown_whole_or_by_its_id() -> None:
    room = room_with_approved_tool()
    grant = grant_of(room, "p")

    assert [ToolStarted] == types_of(when(room, CLAUDE, tool_execute("p", grant)))
    for shown in (grant, grant.id, None):
        assert [ToolPrinted] == types_of(when(room, CLAUDE, tool_output("p", grant=shown)))
        assert [ToolFinished] == types_of(when(room, CLAUDE, tool_result("p", grant=shown)))


def test_another_grant_than_the_one_given_is_refused() -> None:
    room = room_with_approved_tool(
        script_step(CLAUDE, tool_propose(), id="p2"), script_step(ALICE, gate_approve(ALICE, "p2"))
    )
    mine, other = grant_of(room, "p"), grant_of(room, "p2")
    forged = Grant(id=mine.id, digest="0" * 64, expires_at=mine.expires_at)

    for wrong in (other, forged):
        with expect_refusal(Reason.GATE_FAILED, "not the one issued for p"):
            when(room, CLAUDE, tool_execute("p", wrong))
    for shown in (other, forged, other.id, "nonsense"):
        with expect_refusal(Reason.GATE_FAILED):
            when(room, CLAUDE, tool_output("p", grant=shown))
        with expect_refusal(Reason.GATE_FAILED):
            when(room, CLAUDE, tool_result("p", grant=shown))


@pytest.mark.parametrize("use", [tool_execute, tool_output, tool_result])
def test_a_grant_is_dead_at_the_instant_it_expires(use: Any) -> None:
    room = room_with_approved_tool()

    assert when(room, CLAUDE, use("p"), at=seconds_after_start(HOUR) - 1)
    with expect_refusal(Reason.GATE_FAILED, "expired; propose again"):
        when(room, CLAUDE, use("p"), at=seconds_after_start(HOUR))


def test_a_grant_that_ran_out_is_cleared_away_and_the_room_told() -> None:
    room = room_with_approved_tool()

    assert list(due_instants(room, DEFAULT_POLICY)) == [seconds_after_start(HOUR)]
    assert tick_at(room, seconds_after_start(HOUR) - 1) == []
    facts = tick_at(room, seconds_after_start(HOUR))

    assert [ToolExpired, Relay] == types_of(facts)
    (news,) = relays_of(facts)
    assert isinstance(news.body, Failure)
    assert (news.body.reason, news.body.related_to) == (Reason.GATE_FAILED, "p")
    room = after(room, facts)
    assert room.tools == {}
    with expect_refusal(Reason.GATE_FAILED, "p was expired"):
        when(room, CLAUDE, tool_result("p"))


def test_a_proposal_that_waits_for_approval_has_no_grant_to_run_out() -> None:
    waiting = room_with_two_agents(
        script_step(CLAUDE, tool_propose(), id="p"), default_gate_quorum=Named(("bob",))
    )
    timeless = given(script_step(ALICE, gate_approve(ALICE, "p")), room=waiting)

    assert ToolExpired not in types_of(tick_at(timeless, seconds_after_start(HOUR * 24)))


# Folding what is no longer there


def test_a_fact_about_a_tool_that_is_gone_changes_nothing_but_its_outcome() -> None:
    room = room_with_approved_tool()
    started = when(room, CLAUDE, tool_execute("p"))
    gone = given(script_step(CLAUDE, tool_result("p")), room=room)

    assert after(gone, started) == gone


def test_a_passed_gate_clears_its_tool_and_no_other() -> None:
    room = room_with_two_agents(
        script_step(CLAUDE, tool_propose(), id="p"),
        script_step(CODEX, tool_propose(CODEX), id="c"),
        default_gate_quorum=AnyOf(1),
    )
    gate = gate_on(room, "c").id

    facts = when(room, ALICE, gate_approve(ALICE, gate))

    assert GatePassed in types_of(facts)
    room = after(room, facts)
    assert has_grant(room, "c")
    assert has_open_gate(room, "p")
