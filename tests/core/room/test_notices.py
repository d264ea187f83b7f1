"""Errors that participants report: an agent's failure is the room's affair, the rest is not."""

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Lifetime, Say
from accord.core.kernel.refusal import Why
from accord.core.room.notices import ErrorReport
from tests.helpers.room import ALICE, BOB, CLAUDE, given, joined, opened, refused, when
from tests.spec import proves

TROUBLE = ErrorReport(
    "AGENT_ERROR", "The model is gone", recoverable=True, details={"status": 503}, related_to="p"
)


@proves("OPEN-49", "PVP-17-11", "PVP-17-1")
def test_an_agent_s_failure_is_relayed_to_the_room_as_it_was_told() -> None:
    room = given(opened(), joined(CLAUDE, Role.OBSERVER))

    facts = when(room, CLAUDE, TROUBLE)

    assert facts == [Say(TROUBLE, to=None)]
    assert facts.records == ()


@proves("OPEN-49")
@pytest.mark.parametrize(
    ("who", "code"), [(CLAUDE, "TIMEOUT"), (BOB, "AGENT_ERROR"), (ALICE, "INTERNAL_ERROR")]
)
def test_any_other_error_is_its_sender_s_own(who: Actor, code: str) -> None:
    room = given(opened(), joined(BOB, Role.DRIVER), joined(CLAUDE, Role.DRIVER))
    report = ErrorReport(code, "Oh", recoverable=True)  # type: ignore[arg-type]

    assert when(room, who, report) == []


def test_nobody_keeps_an_error() -> None:
    assert ErrorReport.lifetime is Lifetime.SIGNAL


@proves("OPEN-49")
def test_a_stranger_s_error_reaches_nobody() -> None:
    with refused(Why.NO_ROOM):
        when(given(opened()), CLAUDE, TROUBLE)
