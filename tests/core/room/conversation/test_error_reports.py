"""Errors that participants report: an agent's failure is the room's affair, the rest is not."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Lifetime
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.error_reports import ErrorReport
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    create_step,
    expect_refusal,
    given,
    join_step,
    when,
)
from tests.spec import proves

TROUBLE = ErrorReport(
    "AGENT_ERROR", "The model is gone", recoverable=True, details={"status": 503}, related_to="p"
)


@proves("OPEN-49", "PVP-17-11", "PVP-17-1")
def test_an_agent_s_failure_is_relayed_to_the_room_as_it_was_told() -> None:
    room = given(create_step(), join_step(CLAUDE, Role.OBSERVER))

    facts = when(room, CLAUDE, TROUBLE)

    assert facts == [Relay(TROUBLE, to=None)]
    assert facts.records == ()


@proves("OPEN-49")
@pytest.mark.parametrize(
    ("who", "code"), [(CLAUDE, "TIMEOUT"), (BOB, "AGENT_ERROR"), (ALICE, "INTERNAL_ERROR")]
)
def test_any_other_error_is_its_sender_s_own(who: Actor, code: str) -> None:
    room = given(create_step(), join_step(BOB, Role.DRIVER), join_step(CLAUDE, Role.DRIVER))
    report = ErrorReport(code, "Oh", recoverable=True)  # type: ignore[arg-type]

    assert when(room, who, report) == []


def test_error_reports_are_not_stored() -> None:
    assert ErrorReport.lifetime is Lifetime.SIGNAL


@proves("OPEN-49")
def test_error_report_of_a_non_member_is_refused() -> None:
    with expect_refusal(Reason.NO_ROOM):
        when(given(create_step()), CLAUDE, TROUBLE)
