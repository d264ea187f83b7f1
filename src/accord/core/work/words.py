"""The words of Pact: events, roles, states, and which ids are safe."""

import re
from enum import StrEnum
from functools import lru_cache

PROTOCOL = 1
# As long as an id may be, so that a key can have a file of its seat's name.
LONGEST_SEAT = 64


class Kind(StrEnum):
    """The seven events of version 1; others pass by."""

    INIT = "init"
    ASSIGN = "assign"
    JOIN = "join"
    CHECKPOINT = "checkpoint"
    ACCEPT = "accept"
    CHANGES = "changes_requested"
    MERGE = "merge"


class Role(StrEnum):
    """What a seat does in the project."""

    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"


class Status(StrEnum):
    """Where a task stands; `todo` is a task that no event names yet."""

    TODO = "todo"
    ASSIGNED = "assigned"
    IN_PROGRESS = "in_progress"
    AWAITING_REVIEW = "awaiting_review"
    CHANGES_REQUESTED = "changes_requested"
    ACCEPTED = "accepted"


class Stage(StrEnum):
    """Where a feature stands."""

    PLANNED = "planned"
    IN_PROGRESS = "in_progress"
    AWAITING_REVIEW = "awaiting_review"
    ACCEPTED = "accepted"
    SHIPPED = "shipped"


# PACT 2.3: the role follows from the event, whatever the line says.
ROLE_OF: dict[str, Role] = {
    Kind.INIT: Role.ORCHESTRATOR,
    Kind.ASSIGN: Role.ORCHESTRATOR,
    Kind.MERGE: Role.ORCHESTRATOR,
    Kind.JOIN: Role.WORKER,
    Kind.CHECKPOINT: Role.WORKER,
    Kind.ACCEPT: Role.REVIEWER,
    Kind.CHANGES: Role.REVIEWER,
}

# What a `join` takes up (PACT 4.1).
LIFTED = frozenset({Status.ASSIGNED, Status.CHANGES_REQUESTED})

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)))[^\x00-\x20~^:?*\[\\\x7f]+")

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@lru_cache(maxsize=1024)
def is_slug(text: str) -> bool:
    """Whether this can name a seat; asked of the same few names for every verdict."""
    return _SLUG.fullmatch(text) is not None


def is_seat(text: str) -> bool:
    """Whether a seat may be called this from now on; logs may have longer names."""
    return is_slug(text) and len(text) <= LONGEST_SEAT


def is_id(text: str) -> bool:
    """Whether this can name a task or a feature, and so be part of a path (OPEN-108)."""
    return _ID.fullmatch(text) is not None and ".." not in text


def is_commit(text: str) -> bool:
    """Whether this can be the whole id of a commit."""
    return _COMMIT.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether this can be a SHA-256."""
    return _DIGEST.fullmatch(text) is not None


def is_branch(text: str) -> bool:
    """Whether git would take this as the name of a branch."""
    edges = text.startswith((".", "/")) or text.endswith((".", "/")) or text in {"@", "HEAD"}
    return not edges and text.isprintable() and _BRANCH.fullmatch(text) is not None


def is_inside(path: str) -> bool:
    """Whether this is a path that stays inside the repository."""
    plain = path.isprintable() and "\\" not in path and not path.startswith(("/", "~"))
    return plain and bool(path) and ".." not in path.split("/")
