"""The numbers of waking, and which messages wake whom by themselves."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS


class WakePolicy(msgspec.Struct, frozen=True):
    """All times in milliseconds; the defaults are those of MSG 3.8, OPEN-129 and the rulings."""

    recheck_ms: int = 5 * SECOND_MS
    quiet_ms: int = 20 * SECOND_MS
    max_defer_ms: int = 60 * SECOND_MS
    cool_down_ms: int = 30 * SECOND_MS
    # How long a wake waits before it looks whether an agent that was here is still at work.
    present_ms: int = 30 * SECOND_MS
    silence_ms: int = 15 * MINUTE_MS
    wakes_per_hour: int = 12  # of one agent, over all threads: what a loop can cost at most
    polite_messages: int = 6
    # How long a wake may be under way before it counts as interrupted.
    run_ms: int = 30 * MINUTE_MS


class Wakes(StrEnum):
    """Whom a message wakes."""

    NONE = "none"
    ADDRESSED = "addressed"  # those in `metadata.to`
    PARTICIPANTS = "participants"  # those in `metadata.to`, or else all participants


WORKER = "worker"
# By kind and event type; `None` is every other event type.
WAKES_BY_MESSAGE: Mapping[tuple[str, str | None], Wakes] = {
    ("chat", None): Wakes.ADDRESSED,
    ("event", None): Wakes.ADDRESSED,
    ("event", "re_review_requested"): Wakes.PARTICIPANTS,
    ("event", "thread_escalated"): Wakes.PARTICIPANTS,
    ("system", None): Wakes.NONE,
}
# The most that a sender of this role can cause; a role that is not listed counts as a worker.
WAKES_BY_ROLE: Mapping[str, Wakes] = {
    "operator": Wakes.PARTICIPANTS,
    "orchestrator": Wakes.PARTICIPANTS,
    "reviewer": Wakes.PARTICIPANTS,
    WORKER: Wakes.ADDRESSED,
}


class PostedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What waking needs to know about a message of a thread."""

    sender: str
    kind: str
    by_agent: bool = True
    event_type: str | None = None
    role: str = WORKER
    to: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}


def woken_by(message: PostedMessage, participants: Sequence[str]) -> tuple[str, ...]:
    """Whom this message wakes by itself, the sender never; in order and once each."""
    by_message = WAKES_BY_MESSAGE.get(
        (message.kind, message.event_type),
        WAKES_BY_MESSAGE.get((message.kind, None), Wakes.NONE),
    )
    if by_message is Wakes.NONE:
        return ()
    by_role = WAKES_BY_ROLE.get(message.role, WAKES_BY_ROLE[WORKER])
    everyone = Wakes.PARTICIPANTS is by_message is by_role
    named = message.to or (tuple(participants) if everyone else ())
    present = frozenset(participants)
    return tuple(dict.fromkeys(who for who in named if who in present and who != message.sender))
