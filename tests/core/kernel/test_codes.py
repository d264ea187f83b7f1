"""One refusal, four faces: PVP, MSG, HTTP and the shell."""

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.codes import CODES, Codes
from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.notices import ErrorReport
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    approves,
    executes,
    gate_on,
    given,
    joined,
    opened,
    prompts,
    proposes,
    rejects,
    says,
    step,
    when,
)
from tests.spec import proves

PVP = {
    "INVALID_MESSAGE",
    "UNAUTHORIZED",
    "SESSION_NOT_FOUND",
    "PARTICIPANT_NOT_FOUND",
    "GATE_FAILED",
    "TIMEOUT",
    "RATE_LIMITED",
    "CONTEXT_TOO_LARGE",
    "INVALID_STATE",
    "TRANSPORT_ERROR",
    "AGENT_ERROR",
    "INTERNAL_ERROR",
}
MSG = {
    "VALIDATION_ERROR",
    "UNAUTHORIZED",
    "FORBIDDEN",
    "CLAIM_MISMATCH",
    "NOT_FOUND",
    "CONFLICT",
    "IDEMPOTENCY_CONFLICT",
    "RATE_LIMITED",
    "INTERNAL_ERROR",
}


@proves("UNI-26")
def test_every_reason_has_a_code_on_every_face() -> None:
    assert CODES.keys() == set(Why)
    assert {codes.pvp for codes in CODES.values()} == PVP
    assert {codes.msg for codes in CODES.values()} == MSG


@proves("UNI-26")
@pytest.mark.parametrize(
    ("why", "pvp_code", "msg_code", "http", "shell"),
    [
        (Why.MALFORMED, "INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
        (Why.UNAUTHENTICATED, "UNAUTHORIZED", "UNAUTHORIZED", 401, 3),
        (Why.FORBIDDEN, "UNAUTHORIZED", "FORBIDDEN", 403, 3),
        (Why.CLAIM_MISMATCH, "UNAUTHORIZED", "CLAIM_MISMATCH", 403, 3),
        (Why.NO_ROOM, "SESSION_NOT_FOUND", "NOT_FOUND", 404, 4),
        (Why.NO_MEMBER, "PARTICIPANT_NOT_FOUND", "NOT_FOUND", 404, 4),
        (Why.WRONG_STATE, "INVALID_STATE", "CONFLICT", 409, 5),
        (Why.KEY_REUSED, "INVALID_MESSAGE", "IDEMPOTENCY_CONFLICT", 409, 5),
        (Why.GATE_FAILED, "GATE_FAILED", "CONFLICT", 409, 5),
        (Why.TOO_LARGE, "CONTEXT_TOO_LARGE", "VALIDATION_ERROR", 413, 2),
        (Why.TOO_MANY, "RATE_LIMITED", "RATE_LIMITED", 429, 6),
        (Why.INTERNAL, "INTERNAL_ERROR", "INTERNAL_ERROR", 500, 1),
    ],
)
def test_the_faces_are_those_of_the_ruling(
    why: Why, pvp_code: str, msg_code: str, http: int, shell: int
) -> None:
    assert CODES[why][:4] == (pvp_code, msg_code, http, shell)


@proves("UNI-26")
def test_a_status_and_an_exit_code_say_the_same_kind_of_thing() -> None:
    shells = {400: 2, 401: 3, 403: 3, 404: 4, 405: 2, 409: 5, 410: 4, 413: 2, 415: 2}
    shells |= {429: 6, 503: 6, 504: 6}

    for why, codes in CODES.items():
        # A broken chain has an exit code of its own and no status of its own.
        broken = why is Why.DAMAGED
        assert (5 if broken else shells.get(codes.http, 1)) == codes.exit, codes


def test_only_what_no_retry_can_mend_is_not_recoverable() -> None:
    """OPEN-49."""
    hopeless = {why for why, codes in CODES.items() if not codes.recoverable}

    assert hopeless == {Why.NO_ROOM, Why.ENDED, Why.TRANSPORT, Why.DAMAGED}


@proves("PVP-17-7", "PVP-17-8", "PVP-17-11")
def test_failures_that_are_nobodys_message_have_their_own_codes() -> None:
    assert CODES[Why.LATE].pvp == "TIMEOUT"
    assert CODES[Why.TOO_MANY].pvp == "RATE_LIMITED"
    assert CODES[Why.TRANSPORT].pvp == "TRANSPORT_ERROR"
    assert CODES[Why.AGENT].pvp == "AGENT_ERROR"
    assert CODES[Why.INTERNAL].pvp == "INTERNAL_ERROR"


# Each of PVP's codes, had honestly


def answer(no: pytest.ExceptionInfo[Refused]) -> Codes:
    return CODES[no.value.why]


@proves("PVP-17-2")
def test_what_is_malformed_is_an_invalid_message() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b'{"v": 1}')

    assert answer(no).pvp == "INVALID_MESSAGE"


@proves("PVP-17-9")
def test_what_is_too_large_is_told_so() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b" " * (pvp.LARGEST_MESSAGE + 1))

    assert answer(no).pvp == "CONTEXT_TOO_LARGE"


@proves("PVP-17-3")
def test_a_missing_right_is_unauthorized() -> None:
    room = given(opened(by=ALICE), joined(BOB, Role.OBSERVER))

    with pytest.raises(Refused) as no:
        when(room, BOB, prompts())

    assert answer(no).pvp == "UNAUTHORIZED"


@proves("PVP-17-4")
def test_a_session_one_does_not_belong_to_is_not_found() -> None:
    room = given(opened(by=ALICE))

    with pytest.raises(Refused) as no:
        when(room, BOB, prompts())

    assert answer(no).pvp == "SESSION_NOT_FOUND"


@proves("PVP-17-5")
def test_whoever_is_not_in_the_session_is_not_found() -> None:
    room = given(opened(by=ALICE))

    with pytest.raises(Refused) as no:
        when(room, ALICE, prompts(CLAUDE))

    assert answer(no).pvp == "PARTICIPANT_NOT_FOUND"


@proves("PVP-17-6", "PVP-17-10")
def test_a_failed_gate_and_a_wrong_moment_are_told_apart() -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER), step(CLAUDE, proposes(), id="p"))
    gate = gate_on(room, "p")
    room = given(step(ALICE, rejects(ALICE, gate.id)), room=room)

    with pytest.raises(Refused) as late_vote:
        when(room, ALICE, approves(ALICE, gate.id))
    with pytest.raises(Refused) as late_use:
        when(room, CLAUDE, executes("p"))

    assert answer(late_vote).pvp == "INVALID_STATE"
    assert answer(late_use).pvp == "GATE_FAILED"


@proves("PVP-17-11")
def test_an_agents_own_failure_is_told_to_the_room() -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))
    failure = ErrorReport(code="AGENT_ERROR", message="Out of memory", recoverable=True)

    (said,) = says(when(room, CLAUDE, failure))

    assert (said.body, said.to) == (failure, None)
