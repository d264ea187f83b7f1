"""One refusal, four faces: PVP, MSG, HTTP and the shell."""

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.error_codes import ERROR_CODES, ErrorCodes, reason_of
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.error_reports import ErrorReport
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    create_step,
    gate_approve,
    gate_on,
    gate_reject,
    given,
    join_step,
    prompt_submit,
    relays_of,
    script_step,
    tool_execute,
    tool_propose,
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
    "OUT_OF_SCOPE_WORKSPACE",
    "INSUFFICIENT_AUTHORITY",
    "UNMANAGED_RUNTIME",
    "HUMAN_INPUT_COLLISION",
    "WAKE_FAILED",
}


@proves("UNI-26")
def test_every_reason_has_a_code_on_every_face() -> None:
    assert ERROR_CODES.keys() == set(Reason)
    assert {codes.pvp for codes in ERROR_CODES.values()} == PVP
    assert {codes.msg for codes in ERROR_CODES.values()} == MSG


@proves("UNI-26", "OPEN-133")
@pytest.mark.parametrize(
    ("why", "pvp_code", "msg_code", "http", "shell"),
    [
        (Reason.MALFORMED, "INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
        (Reason.UNAUTHENTICATED, "UNAUTHORIZED", "UNAUTHORIZED", 401, 3),
        (Reason.FORBIDDEN, "UNAUTHORIZED", "FORBIDDEN", 403, 3),
        (Reason.CLAIM_MISMATCH, "UNAUTHORIZED", "CLAIM_MISMATCH", 403, 3),
        (Reason.NO_ROOM, "SESSION_NOT_FOUND", "NOT_FOUND", 404, 4),
        (Reason.NO_MEMBER, "PARTICIPANT_NOT_FOUND", "NOT_FOUND", 404, 4),
        (Reason.WRONG_STATE, "INVALID_STATE", "CONFLICT", 409, 5),
        (Reason.KEY_REUSED, "INVALID_MESSAGE", "IDEMPOTENCY_CONFLICT", 409, 5),
        (Reason.GATE_FAILED, "GATE_FAILED", "CONFLICT", 409, 5),
        (Reason.TOO_LARGE, "CONTEXT_TOO_LARGE", "VALIDATION_ERROR", 413, 2),
        (Reason.TOO_MANY, "RATE_LIMITED", "RATE_LIMITED", 429, 6),
        (Reason.INTERNAL, "INTERNAL_ERROR", "INTERNAL_ERROR", 500, 1),
        (Reason.OUT_OF_SCOPE, "UNAUTHORIZED", "OUT_OF_SCOPE_WORKSPACE", 403, 3),
        (Reason.NO_AUTHORITY, "UNAUTHORIZED", "INSUFFICIENT_AUTHORITY", 403, 3),
        (Reason.UNMANAGED_RUNTIME, "INVALID_STATE", "UNMANAGED_RUNTIME", 409, 5),
        (Reason.HUMAN_INPUT, "INVALID_STATE", "HUMAN_INPUT_COLLISION", 409, 5),
        (Reason.WAKE_FAILED, "AGENT_ERROR", "WAKE_FAILED", 502, 1),
    ],
)
def test_each_reason_has_the_codes_of_pvp_msg_http_and_shell(
    why: Reason, pvp_code: str, msg_code: str, http: int, shell: int
) -> None:
    assert ERROR_CODES[why][:4] == (pvp_code, msg_code, http, shell)


@proves("UNI-26")
def test_a_status_and_an_exit_code_say_the_same_kind_of_thing() -> None:
    shells = {400: 2, 401: 3, 403: 3, 404: 4, 405: 2, 409: 5, 410: 4, 413: 2, 415: 2}
    shells |= {429: 6, 503: 6, 504: 6}

    for why, codes in ERROR_CODES.items():
        # A broken chain has an exit code of its own and no status of its own.
        broken = why is Reason.DAMAGED
        assert (5 if broken else shells.get(codes.http, 1)) == codes.exit, codes


def test_only_what_no_retry_can_mend_is_not_recoverable() -> None:
    """OPEN-49."""
    hopeless = {why for why, codes in ERROR_CODES.items() if not codes.recoverable}

    assert hopeless == {Reason.NO_ROOM, Reason.ENDED, Reason.TRANSPORT, Reason.DAMAGED}


@proves("PVP-17-7", "PVP-17-8", "PVP-17-11")
def test_failures_that_are_nobodys_message_have_their_own_codes() -> None:
    assert ERROR_CODES[Reason.TIMED_OUT].pvp == "TIMEOUT"
    assert ERROR_CODES[Reason.TOO_MANY].pvp == "RATE_LIMITED"
    assert ERROR_CODES[Reason.TRANSPORT].pvp == "TRANSPORT_ERROR"
    assert ERROR_CODES[Reason.AGENT].pvp == "AGENT_ERROR"
    assert ERROR_CODES[Reason.INTERNAL].pvp == "INTERNAL_ERROR"


# Each of PVP's codes, had honestly


def answer(no: pytest.ExceptionInfo[Refused]) -> ErrorCodes:
    return ERROR_CODES[no.value.reason]


@proves("PVP-17-2")
def test_what_is_malformed_is_an_invalid_message() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b'{"v": 1}')

    assert answer(no).pvp == "INVALID_MESSAGE"


@proves("PVP-17-9")
def test_message_over_the_limit_is_context_too_large() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b" " * (pvp.MAX_MESSAGE_BYTES + 1))

    assert answer(no).pvp == "CONTEXT_TOO_LARGE"


@proves("PVP-17-3")
def test_a_missing_right_is_unauthorized() -> None:
    room = given(create_step(by=ALICE), join_step(BOB, Role.OBSERVER))

    with pytest.raises(Refused) as no:
        when(room, BOB, prompt_submit())

    assert answer(no).pvp == "UNAUTHORIZED"


@proves("PVP-17-4")
def test_a_session_one_does_not_belong_to_is_not_found() -> None:
    room = given(create_step(by=ALICE))

    with pytest.raises(Refused) as no:
        when(room, BOB, prompt_submit())

    assert answer(no).pvp == "SESSION_NOT_FOUND"


@proves("PVP-17-5")
def test_whoever_is_not_in_the_session_is_not_found() -> None:
    room = given(create_step(by=ALICE))

    with pytest.raises(Refused) as no:
        when(room, ALICE, prompt_submit(CLAUDE))

    assert answer(no).pvp == "PARTICIPANT_NOT_FOUND"


@proves("PVP-17-6", "PVP-17-10")
def test_a_failed_gate_and_a_wrong_moment_are_told_apart() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )
    gate = gate_on(room, "p")
    room = given(script_step(ALICE, gate_reject(ALICE, gate.id)), room=room)

    with pytest.raises(Refused) as late_vote:
        when(room, ALICE, gate_approve(ALICE, gate.id))
    with pytest.raises(Refused) as late_use:
        when(room, CLAUDE, tool_execute("p"))

    assert answer(late_vote).pvp == "INVALID_STATE"
    assert answer(late_use).pvp == "GATE_FAILED"


@proves("PVP-17-11")
def test_an_agents_own_failure_is_told_to_the_room() -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))
    failure = ErrorReport(code="AGENT_ERROR", message="Out of memory", recoverable=True)

    (said,) = relays_of(when(room, CLAUDE, failure))

    assert (said.body, said.to) == (failure, None)


# Both are INTERNAL_ERROR with status 500, so a client cannot tell damage from a bug.
@pytest.mark.parametrize("reason", sorted(set(Reason) - {Reason.DAMAGED}))
def test_code_and_status_lead_back_to_a_reason_with_the_same_codes(reason: Reason) -> None:
    codes = ERROR_CODES[reason]

    for code in (codes.pvp, codes.msg):
        found = ERROR_CODES[reason_of(code, codes.http)]
        assert (found.http, found.exit) == (codes.http, codes.exit)
        assert code in {found.pvp, found.msg}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("INVALID_STATE", Reason.WRONG_STATE),
        ("CONFLICT", Reason.WRONG_STATE),
        ("UNAUTHORIZED", Reason.UNAUTHENTICATED),
        ("INVALID_MESSAGE", Reason.MALFORMED),
        ("NOT_FOUND", Reason.NOT_FOUND),
        ("INTERNAL_ERROR", Reason.INTERNAL),
        ("OF_A_LATER_VERSION", Reason.INTERNAL),
    ],
)
def test_code_alone_leads_to_the_most_general_reason(code: str, reason: Reason) -> None:
    assert reason_of(code) is reason
    assert reason_of(code, 299) is reason
