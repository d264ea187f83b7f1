"""Pact's vocabulary: event kinds, roles, statuses, and the forms of valid ids."""

import re
from enum import StrEnum
from functools import lru_cache

PROTOCOL_VERSION = 1
# Short enough for a key file named after its seat.
MAX_SEAT_LENGTH = 64


class EventKind(StrEnum):
    """The seven event kinds of version 1; others are ignored."""

    INIT = "init"
    ASSIGN = "assign"
    JOIN = "join"
    CHECKPOINT = "checkpoint"
    ACCEPT = "accept"
    CHANGES = "changes_requested"
    MERGE = "merge"


class SeatRole(StrEnum):
    """What a seat does in the project."""

    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"


class TaskStatus(StrEnum):
    """Status of a task; `todo` is a task that no event names yet."""

    TODO = "todo"
    ASSIGNED = "assigned"
    IN_PROGRESS = "in_progress"
    AWAITING_REVIEW = "awaiting_review"
    CHANGES_REQUESTED = "changes_requested"
    ACCEPTED = "accepted"


class FeatureStage(StrEnum):
    """Stage of a feature."""

    PLANNED = "planned"
    IN_PROGRESS = "in_progress"
    AWAITING_REVIEW = "awaiting_review"
    ACCEPTED = "accepted"
    SHIPPED = "shipped"


# PACT 2.3: the role follows from the event kind, whatever role the line claims.
ROLE_OF: dict[str, SeatRole] = {
    EventKind.INIT: SeatRole.ORCHESTRATOR,
    EventKind.ASSIGN: SeatRole.ORCHESTRATOR,
    EventKind.MERGE: SeatRole.ORCHESTRATOR,
    EventKind.JOIN: SeatRole.WORKER,
    EventKind.CHECKPOINT: SeatRole.WORKER,
    EventKind.ACCEPT: SeatRole.REVIEWER,
    EventKind.CHANGES: SeatRole.REVIEWER,
}

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)))[^\x00-\x20~^:?*\[\\\x7f]+")

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@lru_cache(maxsize=1024)
def is_slug(text: str) -> bool:
    """Whether this is a valid seat name; cached, as each verdict checks the same few names."""
    return _SLUG.fullmatch(text) is not None


def is_new_seat_id(text: str) -> bool:
    """Whether a new seat may have this name; existing logs may have longer ones."""
    return is_slug(text) and len(text) <= MAX_SEAT_LENGTH


def is_work_id(text: str) -> bool:
    """Whether this is a valid task or feature id, safe as part of a path (OPEN-108)."""
    return _ID.fullmatch(text) is not None and ".." not in text


def is_commit_id(text: str) -> bool:
    """Whether this has the form of a full commit id."""
    return _COMMIT.fullmatch(text) is not None


def is_sha256(text: str) -> bool:
    """Whether this has the form of a SHA-256 digest."""
    return _DIGEST.fullmatch(text) is not None


def is_branch_name(text: str) -> bool:
    """Whether git would accept this as a branch name."""
    edges = text.startswith((".", "/")) or text.endswith((".", "/")) or text in {"@", "HEAD"}
    return not edges and text.isprintable() and _BRANCH.fullmatch(text) is not None


def is_inside_repository(path: str) -> bool:
    """Whether this is a relative path that stays inside the repository."""
    plain = path.isprintable() and "\\" not in path and not path.startswith(("/", "~"))
    return plain and bool(path) and ".." not in path.split("/")
