"""The one refusal used everywhere: a reason from a closed list and a sentence for people."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """All reasons for refusing a message; the values are stored and logged."""

    MALFORMED = "malformed"
    UNSUPPORTED_VERSION = "version"
    KEY_REUSED = "key_reused"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    CLAIM_MISMATCH = "claim_mismatch"
    OUT_OF_SCOPE = "out_of_scope"
    NO_AUTHORITY = "no_authority"
    NO_ROOM = "no_room"
    NO_MEMBER = "no_member"
    NOT_FOUND = "unknown"
    REMOVED = "removed"
    WRONG_STATE = "wrong_state"
    FULL = "full"
    ENDED = "ended"
    GATE_FAILED = "gate_failed"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    TIMED_OUT = "late"
    NO_ROUTE = "no_route"
    METHOD_NOT_ALLOWED = "method"
    UNSUPPORTED_MEDIA_TYPE = "media_type"
    UNMANAGED_RUNTIME = "unmanaged_runtime"
    HUMAN_INPUT = "human_input"
    WAKE_FAILED = "wake_failed"
    TRANSPORT = "transport"
    AGENT = "agent"
    UNAVAILABLE = "unavailable"
    DAMAGED = "damaged"
    INTERNAL = "internal"


class Refused(Exception):  # noqa: N818 - a regular outcome, not an error
    """A message was not accepted and changed nothing; `detail` tells the sender what to do.

    `may_repeat` names an earlier message: if this one has the same content, it is answered as a
    retry of that one instead.
    """

    def __init__(
        self,
        reason: Reason,
        detail: str,
        details: Mapping[str, Any] | None = None,
        *,
        may_repeat: str = "",
    ) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.details = details
        self.may_repeat = may_repeat
