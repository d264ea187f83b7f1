"""Messages: bodies in their envelopes, decoded and not yet accepted."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import ClassVar, NamedTuple

import msgspec
from msgspec.structs import astuple

from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Permission

Instant = int  # milliseconds since 1970, UTC


MemberIds = frozenset[str]


class Lifetime(Enum):
    """A FACT is stored before it is delivered; a SIGNAL is relayed and never stored."""

    FACT = "fact"
    SIGNAL = "signal"


class Body(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The typed payload of a message; each class names its wire type and permission."""

    type: ClassVar[str]
    needs: ClassVar[Permission]
    lifetime: ClassVar[Lifetime] = Lifetime.FACT
    while_paused: ClassVar[bool] = False
    after_end: ClassVar[bool] = False
    cites_others: ClassVar[bool] = False  # whether `cites` can yield anything
    forkable: ClassVar[bool] = False  # whether it may be sent inside a fork
    free_ref: ClassVar[bool] = False  # whether `ref` may name a message that is not stored
    is_chunk: ClassVar[bool] = False  # accepted because of its `ref` alone, not its content or time

    def claimed_ids(self) -> Iterator[str]:
        """Identities that the payload claims; each must be the sender's own (UNI-1)."""
        return iter(())

    def cited_ids(self) -> Iterator[str]:
        """Ids of earlier messages whose records the decider needs."""
        return iter(())

    def is_retry_of(self, recorded: "Body") -> bool:
        """Whether this repeats the request that led to `recorded` (OPEN-36)."""
        return self == recorded


class UnreadableBody(Body, frozen=True, gc=False):
    """A payload that a newer version wrote; passed on unread."""

    type = "unread"
    needs = Permission.SERVER_ONLY


class Elapsed(Body, frozen=True, gc=False):
    """The timer message of contexts that have no deadlines."""

    type = "elapsed"
    needs = Permission.SERVER_ONLY


class Failure(msgspec.Struct, frozen=True):
    """An error about the message `related_to`, sent to the members it concerns."""

    reason: Reason
    detail: str
    related_to: str


class Message(msgspec.Struct, frozen=True, gc=False):
    """A decoded envelope with its body, not yet accepted."""

    id: str
    ts: str
    room: str
    sender: str
    body: Body
    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class ChunkBatch(NamedTuple):
    """Messages that differ only in id, time and body; `first` has the shared fields."""

    first: Message
    ids: Sequence[str]
    times: Sequence[str]
    bodies: Sequence[Body]

    def messages(self) -> Iterator[Message]:
        _, _, room, sender, _, ref, causal_refs, fork = astuple(self.first)
        for id, ts, body in zip(self.ids, self.times, self.bodies, strict=True):
            yield Message(id, ts, room, sender, body, ref, causal_refs, fork)
