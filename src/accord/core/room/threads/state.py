"""The state of a thread: participants, status and open findings; its messages are in the log.

Record 1 of a thread's stream is its creation. Every later record is a message, so `seq` has no
gaps, and the message with `seq` n is record n + 1 (see `version_of`). Nothing here grows with the
number of messages.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.discussion import Finding

STREAM_PREFIX = "thread/"
ID_PREFIX = "th_"
MESSAGE_ID_PREFIX = "msg_"
SCHEMA_VERSION = 1


class ThreadType(StrEnum):
    """What a thread is for (MSG 2.1)."""

    CONVERSATION = "conversation"
    WORKFLOW = "workflow"
    INCIDENT = "incident"


class ThreadStatus(StrEnum):
    """Where a thread stands (MSG 2.1)."""

    ACTIVE = "active"
    BLOCKED = "blocked"
    RESOLVED = "resolved"
    CLOSED = "closed"


class MessageKind(StrEnum):
    """What a message is; only the server posts `system` (OPEN-124)."""

    CHAT = "chat"
    EVENT = "event"
    SYSTEM = "system"


class Addressed(msgspec.Struct, frozen=True):
    """The first message that names a participant and that it has not answered by a post."""

    message: str
    seq: int
    by: str
    at: Instant


class Thread(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that the rules of a thread read."""

    id: str
    workspace: str = ""
    title: str = ""
    type: ThreadType = ThreadType.CONVERSATION
    status: ThreadStatus = ThreadStatus.ACTIVE
    created_by: str = ""
    created_at: Instant = 0
    updated_at: Instant = 0
    participants: tuple[str, ...] = ()
    last_seq: int = 0
    posted: Mapping[str, int] = {}  # how many messages each author has written
    findings: Mapping[str, Finding] = {}  # by message id
    addressed: Mapping[str, Addressed] = {}  # by participant
    escalated: bool = False
    blocked_by: str = ""

    @property
    def exists(self) -> bool:
        """Whether it was ever created."""
        return bool(self.created_by)

    @property
    def is_disputed(self) -> bool:
        """Whether a participant still disagrees: blocked, escalated, or with an open finding."""
        return self.status is ThreadStatus.BLOCKED or self.escalated or bool(self.findings)


def is_thread_id(id: str) -> bool:
    """Whether this is the id of a thread of its own, not of a session or fork (UNI-6)."""
    return id.startswith(ID_PREFIX)


def stream_of(thread_id: str) -> str:
    """The stream of a thread."""
    return f"{STREAM_PREFIX}{thread_id}"


def version_of(seq: int) -> int:
    """The version of the record of message `seq`."""
    return seq + 1


def no_thread_refusal(thread_id: str) -> Refused:
    """For a thread that does not exist, or of another workspace: both look alike (OPEN-122)."""
    return Refused(Reason.NO_ROOM, f"There is no thread {thread_id}")
