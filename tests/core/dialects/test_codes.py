"""Every reason to refuse has its code on every face."""

import json
from typing import get_args

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.notices import ErrorCode
from tests.spec import proves

SHOWN = {
    Why.MALFORMED: ("INVALID_MESSAGE", 400, 2),
    Why.VERSION: ("INVALID_MESSAGE", 400, 2),
    Why.KEY_REUSED: ("INVALID_MESSAGE", 409, 5),
    Why.UNAUTHENTICATED: ("UNAUTHORIZED", 401, 3),
    Why.FORBIDDEN: ("UNAUTHORIZED", 403, 3),
    Why.CLAIM_MISMATCH: ("UNAUTHORIZED", 403, 3),
    Why.NO_ROOM: ("SESSION_NOT_FOUND", 404, 4),
    Why.NO_MEMBER: ("PARTICIPANT_NOT_FOUND", 404, 4),
    Why.WRONG_STATE: ("INVALID_STATE", 409, 5),
    Why.FULL: ("INVALID_STATE", 409, 5),
    Why.ENDED: ("INVALID_STATE", 409, 5),
    Why.GATE_FAILED: ("GATE_FAILED", 409, 5),
    Why.TOO_LARGE: ("CONTEXT_TOO_LARGE", 413, 2),
    Why.TOO_MANY: ("RATE_LIMITED", 429, 6),
    Why.INTERNAL: ("INTERNAL_ERROR", 500, 1),
}


@proves("UNI-26")
def test_every_reason_has_a_code_on_every_face() -> None:
    assert CODES.keys() == set(Why)
    assert {codes.pvp for codes in CODES.values()} == set(get_args(ErrorCode))


@proves(
    "UNI-26",
    "PVP-17-2",
    "PVP-17-3",
    "PVP-17-4",
    "PVP-17-5",
    "PVP-17-6",
    "PVP-17-8",
    "PVP-17-9",
    "PVP-17-10",
)
@pytest.mark.parametrize(("why", "shown"), SHOWN.items())
def test_a_reason_is_shown_as_the_table_of_faces_says(
    why: Why, shown: tuple[str, int, int]
) -> None:
    codes = CODES[why]

    assert (codes.pvp, codes.http, codes.exit) == shown


@proves("PVP-17-7", "PVP-17-11")
def test_time_transport_agents_and_faults_of_our_own_have_codes_too() -> None:
    codes = {why: CODES[why].pvp for why in (Why.LATE, Why.TRANSPORT, Why.AGENT, Why.INTERNAL)}

    assert list(codes.values()) == ["TIMEOUT", "TRANSPORT_ERROR", "AGENT_ERROR", "INTERNAL_ERROR"]


@proves("OPEN-49", "OPEN-27")
def test_only_a_missing_or_ended_session_and_a_lost_transport_are_beyond_recovery() -> None:
    lost = {why for why, codes in CODES.items() if not codes.recoverable}

    assert lost == {Why.NO_ROOM, Why.ENDED, Why.TRANSPORT}


@proves("PVP-17-1", "PVP-17-12")
@pytest.mark.parametrize("why", Why)
def test_every_refusal_becomes_an_error_that_pvp_knows(why: Why) -> None:
    data = pvp.refusal("e", 0, "s", Refused(why, "No"), "m")

    assert pvp.decode(data).body.type == "error"
    assert json.loads(data)["payload"]["code"] == CODES[why].pvp
