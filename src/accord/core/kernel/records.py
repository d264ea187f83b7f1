"""Events and records: what happened, and its place in a stream."""

from enum import Enum
from typing import ClassVar

import msgspec

from accord.core.kernel.messages import Body, Instant, MemberIds
from accord.core.kernel.ulid import derive_ulid


class MembershipChange(Enum):
    """Whether an event admits its subject's connections to the room or removes them."""

    IN = "in"
    OUT = "out"


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Something that happened. `said` is its payload on the wire, if it has one.

    `ref` and `fork` override the envelope's; `to` restricts who may see the record.
    """

    name: ClassVar[str]
    membership: ClassVar[MembershipChange | None] = None
    room_wide: ClassVar[bool] = False  # delivered to the whole room although it is about a fork
    carries_secret: ClassVar[bool] = False  # delivered live with a value that is never stored
    revokes_secret: ClassVar[bool] = False  # invalidates the earlier value of its key

    ref: str | None = None
    to: MemberIds | None = None
    fork: str | None = None


def server_record_id(at: Instant, stream: str, message: str, place: int) -> str:
    """The id of a record that the server adds: number `place` of what a message led to."""
    return derive_ulid(at, stream, message, str(place))


class UnknownEvent(Event, frozen=True, kw_only=True, gc=False):
    """An event that a newer version recorded; folding ignores it."""

    name = "unknown"


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event with its position: `version` counts all records of the stream, `seq` those sent."""

    stream: str
    version: int
    seq: int
    id: str
    at: Instant
    actor: str
    cause: str
    ts: str
    sender: str
    event: Event
    said: Body | None = None
    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None
    to: MemberIds | None = None
