"""Delivery marks: how far messages reached an agent. Kept in memory, never appended.

`delivered` and `seen` are one high-water mark each per thread and agent. A restart may lower them
to the cursor, which is the mark of `acked` and durable.
"""

from enum import StrEnum

import msgspec


class DeliveryState(StrEnum):
    """How far one message reached one agent."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    SEEN = "seen"
    ACKED = "acked"


class DeliveryMarks(msgspec.Struct, frozen=True, gc=False):
    """The marks of one agent in one thread: the newest `seq` up to which everything arrived."""

    delivered: int = 0
    seen: int = 0


def advanced(mark: int, after: int, up_to: int) -> int:
    """The mark after messages behind `after` up to `up_to` were handed over.

    It moves only if these join what it already covers; otherwise a gap would count as delivered.
    """
    return max(mark, up_to) if after <= mark else mark


def state_of(seq: int, acked: int, marks: DeliveryMarks) -> DeliveryState:
    """How far the message `seq` reached an agent with these marks and this cursor."""
    if seq <= acked:
        return DeliveryState.ACKED
    if seq <= marks.seen:
        return DeliveryState.SEEN
    return DeliveryState.DELIVERED if seq <= marks.delivered else DeliveryState.QUEUED
