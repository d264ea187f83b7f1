"""One refusal for all of Accord: a reason from a closed list and a sentence for a person."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Why(StrEnum):
    """Every reason there is to say no."""

    MALFORMED = "malformed"
    VERSION = "version"
    KEY_REUSED = "key_reused"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    CLAIM_MISMATCH = "claim_mismatch"
    NO_ROOM = "no_room"
    NO_MEMBER = "no_member"
    UNKNOWN = "unknown"
    REMOVED = "removed"
    WRONG_STATE = "wrong_state"
    FULL = "full"
    ENDED = "ended"
    GATE_FAILED = "gate_failed"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    LATE = "late"
    NO_ROUTE = "no_route"
    METHOD = "method"
    MEDIA_TYPE = "media_type"
    TRANSPORT = "transport"
    AGENT = "agent"
    UNAVAILABLE = "unavailable"
    DAMAGED = "damaged"
    INTERNAL = "internal"


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A message was not accepted and changed nothing; `detail` says how to do better."""

    def __init__(self, why: Why, detail: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail
        self.details = details
