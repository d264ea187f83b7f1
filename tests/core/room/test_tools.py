"""Tools: who may run what, and for how long."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf, Named
from accord.core.kernel.log import Fact, Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room import deadlines
from accord.core.room.gates import GateOpened
from accord.core.room.grants import ToolCleared, ToolExecute
from accord.core.room.members import SessionLeave
from accord.core.room.state import Grant
from accord.core.room.tools import (
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
from accord.core.room.votes import Approved, GatePassed
from accord.core.room.waiting import ToolReject
from tests.helpers.room import (
    ALICE,
    CLAUDE,
    CODEX,
    HOUSE,
    after,
    after_seconds,
    approves,
    approves_tool,
    ends,
    executes,
    finishes,
    gate_on,
    given,
    grant_of,
    joined,
    kinds,
    may_run,
    prints,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    says,
    step,
    ticks,
    waits,
    when,
)
from tests.helpers.tools import approved, meeting
from tests.spec import proves

HOUR = 3600


# Executing


@proves("PVP-13-1", "PVP-13.3-1", "OPEN-22")
def test_a_tool_goes_from_proposal_through_gate_and_execution_to_its_result() -> None:
    room, happened = meeting(), list[type[Fact]]()
    for actor, body in [
        (CLAUDE, proposes()),
        (ALICE, approves_tool(ALICE, "p")),
        (CLAUDE, executes("p")),
        (CLAUDE, prints("p")),
        (CLAUDE, finishes("p")),
    ]:
        facts = when(room, actor, body, id="p" if isinstance(body, ToolPropose) else None)
        happened += kinds(facts)
        room = after(room, facts)

    assert [
        *(ToolProposed, GateOpened),
        *(Approved, GatePassed, ToolCleared),
        *(ToolStarted, ToolPrinted, ToolFinished),
    ] == happened
    assert (room.tools, room.past["p"]) == ({}, "finished")


@proves("OPEN-22")
def test_an_agents_own_execute_is_not_repeated_to_the_room() -> None:
    (started,) = when(approved(), CLAUDE, executes("p"))

    assert isinstance(started, ToolStarted)
    assert started.to == frozenset({"claude"})


@proves("OPEN-22")
def test_who_approved_is_for_the_server_to_say() -> None:
    lie = ToolExecute(tool_proposal="p", approved_by=("bob", "carol"))

    (started,) = when(approved(), CLAUDE, lie)

    assert isinstance(started, ToolStarted)
    assert started.said.approved_by == ()
    assert lie.repeats(started.said)
    assert not executes("p2").repeats(started.said)
    assert not lie.repeats(prompts())


@proves("OPEN-22")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_before_the_approval(use: Any) -> None:
    room = meeting(step(CLAUDE, proposes(), id="p"))

    with refused(Why.WRONG_STATE, "p is not approved yet"):
        when(room, CLAUDE, use("p"))


@proves("OPEN-22", "OPEN-25")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_after_a_rejection(use: Any) -> None:
    room = meeting(step(CLAUDE, proposes(), id="p"), step(ALICE, rejects(ALICE, "p")))

    with refused(Why.GATE_FAILED, "p was rejected"):
        when(room, CLAUDE, use("p"))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_to_what_was_never_proposed(use: Any) -> None:
    with refused(Why.UNKNOWN, "no open proposal x"):
        when(meeting(), CLAUDE, use("x"))


@proves("OPEN-22")
def test_a_grant_is_used_once() -> None:
    started = approved(step(CLAUDE, executes("p")))

    with refused(Why.WRONG_STATE, "used already"):
        when(started, CLAUDE, executes("p"))


@proves("PVP-13.2-2")
def test_an_agent_need_not_confirm_that_it_begins() -> None:
    assert [ToolFinished] == kinds(when(approved(), CLAUDE, finishes("p")))


@proves("OPEN-10")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nobody_runs_another_agents_tool(use: Any) -> None:
    with refused(Why.FORBIDDEN, "p was proposed by claude"):
        when(approved(), CODEX, use("p"))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_a_result_is_the_end(use: Any) -> None:
    room = approved(step(CLAUDE, finishes("p")))

    with refused(Why.WRONG_STATE, "p is over: finished"):
        when(room, CLAUDE, use("p"))


def test_an_agent_that_comes_back_finds_its_tools_abandoned() -> None:
    room = approved(step(CLAUDE, SessionLeave()), joined(CLAUDE, Role.DRIVER))

    with refused(Why.WRONG_STATE, "p is over: abandoned"):
        when(room, CLAUDE, finishes("p"))


@proves("OPEN-27")
def test_no_tool_outlives_its_session() -> None:
    room = approved(step(ALICE, ends()))

    assert room.tools == {}
    with refused(Why.ENDED):
        when(room, CLAUDE, finishes("p"))


def test_a_failure_is_a_result_too() -> None:
    room = approved()

    room = after(room, when(room, CLAUDE, finishes("p", success=False)))

    assert room.past["p"] == "finished"


@proves("PVP-13.3-2")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_streams_while_the_tool_runs_and_leaves_no_mark_on_the_room(stream: Any) -> None:
    room = approved(step(CLAUDE, executes("p")))
    body = ToolOutput(tool_proposal="p", stream=stream, text="ok\n", complete=False)

    facts = when(room, CLAUDE, body)

    assert facts == [ToolPrinted(said=body)]
    assert after(room, facts) is room


@proves("PVP-13.3-3")
def test_a_result_is_written_as_the_specification_has_it() -> None:
    whole = {"tool_proposal": "p", "success": True, "duration_ms": 12}

    assert msgspec.to_builtins(finishes("p")) == whole
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
    assert msgspec.to_builtins(approves_tool(ALICE, "p")).keys() == {"tool_proposal", "approver"}
    assert rejects_tool(ALICE, "p").suggestion is None


# With a grant in hand


def test_the_grant_that_was_given_may_be_shown_whole_or_by_its_id() -> None:
    room = approved()
    grant = grant_of(room, "p")

    assert [ToolStarted] == kinds(when(room, CLAUDE, executes("p", grant)))
    for shown in (grant, grant.id, None):
        assert [ToolPrinted] == kinds(when(room, CLAUDE, prints("p", grant=shown)))
        assert [ToolFinished] == kinds(when(room, CLAUDE, finishes("p", grant=shown)))


def test_another_grant_than_the_one_given_is_refused() -> None:
    room = approved(step(CLAUDE, proposes(), id="p2"), step(ALICE, approves(ALICE, "p2")))
    mine, other = grant_of(room, "p"), grant_of(room, "p2")
    forged = Grant(id=mine.id, digest="0" * 64, expires_at=mine.expires_at)

    for wrong in (other, forged):
        with refused(Why.GATE_FAILED, "not the grant that p was given"):
            when(room, CLAUDE, executes("p", wrong))
    for shown in (other, forged, other.id, "nonsense"):
        with refused(Why.GATE_FAILED):
            when(room, CLAUDE, prints("p", grant=shown))
        with refused(Why.GATE_FAILED):
            when(room, CLAUDE, finishes("p", grant=shown))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_a_grant_is_dead_at_the_instant_it_expires(use: Any) -> None:
    room = approved()

    assert when(room, CLAUDE, use("p"), at=after_seconds(HOUR) - 1)
    with refused(Why.GATE_FAILED, "expired; propose again"):
        when(room, CLAUDE, use("p"), at=after_seconds(HOUR))


def test_a_grant_that_ran_out_is_cleared_away_and_the_room_told() -> None:
    room = approved()

    assert list(deadlines(room, HOUSE)) == [after_seconds(HOUR)]
    assert ticks(room, after_seconds(HOUR) - 1) == []
    facts = ticks(room, after_seconds(HOUR))

    assert [ToolExpired, Say] == kinds(facts)
    (news,) = says(facts)
    assert isinstance(news.body, Failure)
    assert (news.body.why, news.body.related_to) == (Why.GATE_FAILED, "p")
    room = after(room, facts)
    assert room.tools == {}
    with refused(Why.GATE_FAILED, "p was expired"):
        when(room, CLAUDE, finishes("p"))


def test_a_proposal_that_waits_for_approval_has_no_grant_to_run_out() -> None:
    waiting = meeting(step(CLAUDE, proposes(), id="p"), default_gate_quorum=Named(("bob",)))
    timeless = given(step(ALICE, approves(ALICE, "p")), room=waiting)

    assert ToolExpired not in kinds(ticks(timeless, after_seconds(HOUR * 24)))


# Folding what is no longer there


def test_a_fact_about_a_tool_that_is_gone_changes_nothing_but_its_outcome() -> None:
    room = approved()
    started = when(room, CLAUDE, executes("p"))
    gone = given(step(CLAUDE, finishes("p")), room=room)

    assert after(gone, started) == gone


def test_a_passed_gate_clears_its_tool_and_no_other() -> None:
    room = meeting(
        step(CLAUDE, proposes(), id="p"),
        step(CODEX, proposes(CODEX), id="c"),
        default_gate_quorum=AnyOf(1),
    )
    gate = gate_on(room, "c").id

    facts = when(room, ALICE, approves(ALICE, gate))

    assert GatePassed in kinds(facts)
    room = after(room, facts)
    assert may_run(room, "c")
    assert waits(room, "p")
