"""How long gates stay open: by default, by session, by proposal."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import ServerNotice
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.votes import GateApprove
from accord.core.room.room_settings import GateResolution, ServerPolicy
from accord.core.room.session_lifecycle import SessionConfigUpdate, SessionCreate
from accord.core.room.state import Room
from accord.core.views import sessions
from tests.helpers.room.gate_scenarios import BOBS_PROMPT, room_with_prompt
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CONFIG,
    T0,
    Step,
    after,
    expect_refusal,
    gate_approve,
    gate_on,
    gate_request,
    given,
    join_step,
    script_step,
    seconds_after_start,
    tool_approve,
    tool_propose,
    when,
)
from tests.spec import proves

DAY, HOUR = 86_400, 3600
AUTO = ServerPolicy(on_gate_timeout=GateResolution.AUTO_APPROVED)


def session(seconds: Any = None, by: Actor = ALICE, *script: Step) -> Room:
    """Alice is admin unless the agent created it, Bob approves; with this gate time."""
    metadata = None if seconds is None else {"gate_timeout_seconds": seconds}
    other = CLAUDE if by is ALICE else ALICE
    return given(
        script_step(by, SessionCreate(CONFIG, metadata=metadata)),
        join_step(BOB, Role.APPROVER),
        join_step(other, Role.DRIVER),
        *script,
    )


def proposal(seconds: Any = None, **more: Any) -> Any:
    metadata = None if seconds is None else {"gate_timeout_seconds": seconds}
    return tool_propose(metadata=metadata, **more)


def opened(room: Room, body: Any, policy: ServerPolicy = ServerPolicy()) -> GateOpened:  # noqa: B008 - frozen
    (gate,) = (f for f in when(room, CLAUDE, body, policy=policy) if isinstance(f, GateOpened))
    return gate


@proves("OPEN-23", "UNI-23")
def test_a_gate_stays_open_for_a_day_by_default() -> None:
    gate = opened(session(), proposal())

    assert gate.said.timeout_seconds == DAY
    assert gate.expires_at == T0 + DAY * MS_PER_SECOND
    assert gate.on_timeout is GateResolution.REJECTED


@proves("OPEN-23")
@pytest.mark.parametrize("seconds", [60, 8 * HOUR, 30 * DAY, 0])
def test_a_session_sets_its_own_time(seconds: int) -> None:
    room = session(seconds)

    gate = opened(room, proposal())

    assert gate.said.timeout_seconds == seconds
    assert (gate.expires_at is None) is (seconds == 0)
    assert sessions.session_detail(room, "alice")["gate_timeout_seconds"] == seconds


@proves("OPEN-23")
def test_a_change_of_the_time_counts_for_gates_that_open_later() -> None:
    room = session(HOUR, ALICE, script_step(CLAUDE, tool_propose(), id="before"))
    change = SessionConfigUpdate({}, "Weekend", {"gate_timeout_seconds": 3 * DAY})

    room = given(script_step(ALICE, change), room=room)

    assert gate_on(room, "before").timeout_seconds == HOUR
    assert opened(room, proposal()).said.timeout_seconds == 3 * DAY
    assert (
        given(script_step(ALICE, SessionConfigUpdate({}, "x")), room=room).gate_seconds == 3 * DAY
    )


@proves("OPEN-23")
@pytest.mark.parametrize("seconds", [-1, 31_536_001, "8h", 1.5, None])
def test_a_time_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    metadata = {"gate_timeout_seconds": seconds}
    room = session()

    for actor, body in (
        (ALICE, SessionConfigUpdate({}, "x", metadata)),
        (CLAUDE, tool_propose(metadata=metadata)),
    ):
        with expect_refusal(Reason.MALFORMED, "gate_timeout_seconds must be a number of seconds"):
            when(room, actor, body)
    with expect_refusal(Reason.MALFORMED, "gate_timeout_seconds"):
        when(Room(id="r"), ALICE, SessionCreate(CONFIG, metadata=metadata))


def test_metadata_have_a_size_limit() -> None:
    with expect_refusal(Reason.TOO_LARGE, "metadata"):
        when(session(), CLAUDE, tool_propose(metadata={"x": "y" * 100_000}))


@proves("OPEN-23")
@pytest.mark.parametrize(
    ("of_session", "of_proposal", "result"),
    [(HOUR, 60, 60), (HOUR, HOUR, HOUR), (0, 60, 60), (0, 0, 0), (None, 60, 60)],
)
def test_a_proposal_has_at_most_the_session_s_time(
    of_session: int | None, of_proposal: int, result: int
) -> None:
    gate = opened(session(of_session), proposal(of_proposal))

    assert gate.said.timeout_seconds == result


@proves("OPEN-23")
@pytest.mark.parametrize(("of_session", "of_proposal"), [(HOUR, HOUR + 1), (HOUR, 0), (None, 0)])
def test_a_proposal_cannot_ask_for_more_than_the_session_s_time(
    of_session: int | None, of_proposal: int
) -> None:
    with expect_refusal(Reason.MALFORMED, "at most the session's"):
        when(session(of_session), CLAUDE, proposal(of_proposal), policy=ServerPolicy())


@proves("OPEN-23")
def test_a_time_that_an_agent_chose_never_approves() -> None:
    agent = opened(session(HOUR), proposal(60), AUTO)
    by_agent_s_session = opened(session(HOUR, CLAUDE), proposal(), AUTO)
    person = opened(session(HOUR), proposal(), AUTO)

    assert agent.on_timeout is GateResolution.REJECTED
    assert by_agent_s_session.on_timeout is GateResolution.REJECTED
    assert person.on_timeout is GateResolution.AUTO_APPROVED


@proves("OPEN-23")
def test_an_agent_that_changes_the_session_s_time_gains_nothing_by_silence() -> None:
    change = SessionConfigUpdate({}, "Quick", {"gate_timeout_seconds": 60})
    room = given(script_step(CLAUDE, change), room=session(None, CLAUDE))

    assert opened(room, proposal(), AUTO).on_timeout is GateResolution.REJECTED


@proves("UNI-23")
def test_the_hour_of_a_grant_starts_at_the_decision() -> None:
    room = session(0, ALICE, script_step(CLAUDE, tool_propose(), id="p"))
    late = seconds_after_start(10 * DAY)

    (cleared,) = (
        fact
        for fact in when(room, BOB, tool_approve(BOB, "p"), at=late)
        if isinstance(fact, ToolCleared)
    )

    assert cleared.expires_at == late + HOUR * MS_PER_SECOND


def test_the_proposer_of_a_gate_without_a_grant_is_told_that_it_passed() -> None:
    room = after(
        room_with_prompt(),
        facts := when(room_with_prompt(), BOB, gate_request("q"), id="g", known=BOBS_PROMPT),
    )
    gate = facts.records[0].id

    told = [f for f in when(room, ALICE, gate_approve(ALICE, gate)) if isinstance(f, ServerNotice)]

    body = GateApprove(gate, "system", "The gate passed, approved by alice")
    assert told == [ServerNotice(body, frozenset({"bob"}), gate)]
