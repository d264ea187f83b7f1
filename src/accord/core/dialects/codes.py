"""Each reason to refuse, in the code of every face (UNI-26)."""

from typing import NamedTuple

from accord.core.kernel.refusal import Why


class Codes(NamedTuple):
    """One refusal as PVP, MSG, HTTP and a shell say it."""

    pvp: str
    msg: str
    http: int
    exit: int
    recoverable: bool = True


CODES: dict[Why, Codes] = {
    Why.MALFORMED: Codes("INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
    Why.VERSION: Codes("INVALID_MESSAGE", "VALIDATION_ERROR", 400, 2),
    Why.KEY_REUSED: Codes("INVALID_MESSAGE", "IDEMPOTENCY_CONFLICT", 409, 5),
    Why.UNAUTHENTICATED: Codes("UNAUTHORIZED", "UNAUTHORIZED", 401, 3),
    Why.FORBIDDEN: Codes("UNAUTHORIZED", "FORBIDDEN", 403, 3),
    Why.CLAIM_MISMATCH: Codes("UNAUTHORIZED", "CLAIM_MISMATCH", 403, 3),
    Why.NO_ROOM: Codes("SESSION_NOT_FOUND", "NOT_FOUND", 404, 4, recoverable=False),
    Why.NO_MEMBER: Codes("PARTICIPANT_NOT_FOUND", "NOT_FOUND", 404, 4),
    # PVP has no code for other things that are not there: an unknown gate is a wrong state.
    Why.UNKNOWN: Codes("INVALID_STATE", "NOT_FOUND", 404, 4),
    Why.REMOVED: Codes("INVALID_STATE", "NOT_FOUND", 410, 4),
    Why.WRONG_STATE: Codes("INVALID_STATE", "CONFLICT", 409, 5),
    Why.FULL: Codes("INVALID_STATE", "CONFLICT", 409, 5),
    Why.ENDED: Codes("INVALID_STATE", "CONFLICT", 409, 5, recoverable=False),
    Why.GATE_FAILED: Codes("GATE_FAILED", "CONFLICT", 409, 5),
    Why.TOO_LARGE: Codes("CONTEXT_TOO_LARGE", "VALIDATION_ERROR", 413, 2),
    Why.TOO_MANY: Codes("RATE_LIMITED", "RATE_LIMITED", 429, 6),
    Why.LATE: Codes("TIMEOUT", "CONFLICT", 504, 6),
    # A request that no route of HTTP takes; no message ever meets these.
    Why.NO_ROUTE: Codes("INVALID_MESSAGE", "NOT_FOUND", 404, 4),
    Why.METHOD: Codes("INVALID_MESSAGE", "VALIDATION_ERROR", 405, 2),
    Why.MEDIA_TYPE: Codes("INVALID_MESSAGE", "VALIDATION_ERROR", 415, 2),
    Why.TRANSPORT: Codes("TRANSPORT_ERROR", "INTERNAL_ERROR", 503, 6, recoverable=False),
    Why.AGENT: Codes("AGENT_ERROR", "INTERNAL_ERROR", 502, 1),
    Why.UNAVAILABLE: Codes("INTERNAL_ERROR", "INTERNAL_ERROR", 503, 6),
    Why.DAMAGED: Codes("INTERNAL_ERROR", "INTERNAL_ERROR", 500, 5, recoverable=False),
    Why.INTERNAL: Codes("INTERNAL_ERROR", "INTERNAL_ERROR", 500, 1),
}
