"""Which messages wake whom by themselves."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec


class Wakes(StrEnum):
    """Whom a message wakes, from few to many; those in `metadata.to` alone if it names any."""

    NONE = "none"
    ADDRESSED = "addressed"  # those in `metadata.to`
    REVIEWERS = "reviewers"  # who reported the finding that it is about, or else all who review
    PARTICIPANTS = "participants"


ORDER = tuple(Wakes)
WORKER = "worker"
# By kind and event type; `None` is every other event type.
WAKES_BY_MESSAGE: Mapping[tuple[str, str | None], Wakes] = {
    ("chat", None): Wakes.ADDRESSED,
    ("event", None): Wakes.ADDRESSED,
    ("event", "finding_reported"): Wakes.REVIEWERS,
    ("event", "fix_pushed"): Wakes.REVIEWERS,
    ("event", "re_review_requested"): Wakes.PARTICIPANTS,
    ("event", "thread_escalated"): Wakes.PARTICIPANTS,
    ("system", None): Wakes.NONE,
}
# The most that a sender of this role can cause; a role that is not listed counts as a worker.
WAKES_BY_ROLE: Mapping[str, Wakes] = {
    "operator": Wakes.PARTICIPANTS,
    "orchestrator": Wakes.PARTICIPANTS,
    "reviewer": Wakes.PARTICIPANTS,
    WORKER: Wakes.REVIEWERS,
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


def woken_by(
    message: PostedMessage, participants: Sequence[str], reviewers: Sequence[str] = ()
) -> tuple[str, ...]:
    """Whom this message wakes by itself, the sender never; in order and once each."""
    by_message = WAKES_BY_MESSAGE.get(
        (message.kind, message.event_type),
        WAKES_BY_MESSAGE.get((message.kind, None), Wakes.NONE),
    )
    if by_message is Wakes.NONE:
        return ()
    by_role = WAKES_BY_ROLE.get(message.role, WAKES_BY_ROLE[WORKER])
    reached = min(by_message, by_role, key=ORDER.index)
    unnamed = {Wakes.REVIEWERS: reviewers, Wakes.PARTICIPANTS: participants}
    named = message.to or unnamed.get(reached, ())
    present = frozenset(participants)
    return tuple(dict.fromkeys(who for who in named if who in present and who != message.sender))
