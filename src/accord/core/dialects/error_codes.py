"""The error code of each refusal reason in PVP, MSG, HTTP and the shell (UNI-26)."""

from typing import NamedTuple

from accord.core.kernel.refusal import Reason


class ErrorCodes(NamedTuple):
    """The codes for one reason; `exit` is the exit code of a command."""

    pvp: str
    msg: str
    http: int
    exit: int
    recoverable: bool = True


ERROR_CODES: dict[Reason, ErrorCodes] = {
    Reason.MALFORMED: ErrorCodes("INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
    Reason.UNSUPPORTED_VERSION: ErrorCodes("INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
    Reason.KEY_REUSED: ErrorCodes("INVALID_MESSAGE", "IDEMPOTENCY_CONFLICT", 409, 5),
    Reason.UNAUTHENTICATED: ErrorCodes("UNAUTHORIZED", "UNAUTHORIZED", 401, 3),
    Reason.FORBIDDEN: ErrorCodes("UNAUTHORIZED", "FORBIDDEN", 403, 3),
    Reason.CLAIM_MISMATCH: ErrorCodes("UNAUTHORIZED", "CLAIM_MISMATCH", 403, 3),
    Reason.NO_ROOM: ErrorCodes("SESSION_NOT_FOUND", "NOT_FOUND", 404, 4, recoverable=False),
    Reason.NO_MEMBER: ErrorCodes("PARTICIPANT_NOT_FOUND", "NOT_FOUND", 404, 4),
    # PVP has no code for other missing things: an unknown gate is an invalid state.
    Reason.NOT_FOUND: ErrorCodes("INVALID_STATE", "NOT_FOUND", 404, 4),
    Reason.REMOVED: ErrorCodes("INVALID_STATE", "NOT_FOUND", 410, 4),
    Reason.WRONG_STATE: ErrorCodes("INVALID_STATE", "CONFLICT", 409, 5),
    Reason.FULL: ErrorCodes("INVALID_STATE", "CONFLICT", 409, 5),
    Reason.ENDED: ErrorCodes("INVALID_STATE", "CONFLICT", 409, 5, recoverable=False),
    Reason.GATE_FAILED: ErrorCodes("GATE_FAILED", "CONFLICT", 409, 5),
    Reason.TOO_LARGE: ErrorCodes("CONTEXT_TOO_LARGE", "VALIDATION_ERROR", 413, 2),
    Reason.TOO_MANY: ErrorCodes("RATE_LIMITED", "RATE_LIMITED", 429, 6),
    Reason.TIMED_OUT: ErrorCodes("TIMEOUT", "CONFLICT", 504, 6),
    # Only for HTTP requests without a matching route; never for messages.
    Reason.NO_ROUTE: ErrorCodes("INVALID_MESSAGE", "NOT_FOUND", 404, 4),
    Reason.METHOD_NOT_ALLOWED: ErrorCodes("INVALID_MESSAGE", "VALIDATION_ERROR", 405, 2),
    Reason.UNSUPPORTED_MEDIA_TYPE: ErrorCodes("INVALID_MESSAGE", "VALIDATION_ERROR", 415, 2),
    Reason.TRANSPORT: ErrorCodes("TRANSPORT_ERROR", "INTERNAL_ERROR", 503, 6, recoverable=False),
    Reason.AGENT: ErrorCodes("AGENT_ERROR", "INTERNAL_ERROR", 502, 1),
    Reason.UNAVAILABLE: ErrorCodes("INTERNAL_ERROR", "INTERNAL_ERROR", 503, 6),
    Reason.DAMAGED: ErrorCodes("INTERNAL_ERROR", "INTERNAL_ERROR", 500, 5, recoverable=False),
    Reason.INTERNAL: ErrorCodes("INTERNAL_ERROR", "INTERNAL_ERROR", 500, 1),
    # Of threads: another workspace, a status change beyond the role, and waking.
    Reason.OUT_OF_SCOPE: ErrorCodes("UNAUTHORIZED", "OUT_OF_SCOPE_WORKSPACE", 403, 3),
    Reason.NO_AUTHORITY: ErrorCodes("UNAUTHORIZED", "INSUFFICIENT_AUTHORITY", 403, 3),
    Reason.UNMANAGED_RUNTIME: ErrorCodes("INVALID_STATE", "UNMANAGED_RUNTIME", 409, 5),
    Reason.HUMAN_INPUT: ErrorCodes("INVALID_STATE", "HUMAN_INPUT_COLLISION", 409, 5),
    Reason.WAKE_FAILED: ErrorCodes("AGENT_ERROR", "WAKE_FAILED", 502, 1),
}

# Several reasons share a code; this one stands for all of them if nothing else tells them apart.
REASON_OF_CODE = {
    **{codes.msg: reason for reason, codes in reversed(ERROR_CODES.items())},
    **{codes.pvp: reason for reason, codes in reversed(ERROR_CODES.items())},
    "INVALID_STATE": Reason.WRONG_STATE,
    "CONFLICT": Reason.WRONG_STATE,
    "NOT_FOUND": Reason.NOT_FOUND,
    "INTERNAL_ERROR": Reason.INTERNAL,
}


def reason_of(code: str, http_status: int = 0) -> Reason:
    """The reason behind a code of PVP or MSG; the HTTP status, if there is one, is more exact."""
    general = REASON_OF_CODE.get(code, Reason.INTERNAL)
    if ERROR_CODES[general].http == http_status:
        return general
    exact = (
        reason
        for reason, codes in ERROR_CODES.items()
        if codes.http == http_status and code in {codes.pvp, codes.msg}
    )
    return next(exact, general)
