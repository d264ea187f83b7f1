"""What lies on the shelf: text or an object, its hash, changes of it, and a session's tasks."""

from hashlib import sha256
from typing import Any, Literal

import msgspec
import rfc8785

from accord.core.kernel import diffs
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.fields import Id, Short
from accord.core.room.state import ContentRef, Item

Content = str | dict[str, Any]
LARGEST_ITEM = 1 << 20
TASKS = "session:tasks"


def content_bytes(content: Content) -> bytes:
    """The bytes a hash is over: UTF-8, and RFC 8785 for objects (OPEN-40)."""
    if isinstance(content, str):
        return content.encode()
    try:
        return rfc8785.dumps(content)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise Refused(Why.MALFORMED, f"content has no canonical form: {error}") from error


def content_hash(content: Content) -> str:
    """SHA-256 in lower-case hex."""
    return sha256(content_bytes(content)).hexdigest()


def fits(content: Content, ref: ContentRef) -> bool:
    """Whether the reference is to this content; objects may be hashed as written, too."""
    as_written = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return ref.hash == sha256(as_written).hexdigest() or ref.hash == content_hash(content)


def patched(item: Item, diff: str) -> str:
    """Text with a unified diff applied, all hunks or none."""
    if not isinstance(item.content, str):
        raise Refused(Why.WRONG_STATE, f"{item.key} is not text; send new_content")
    try:
        return diffs.apply(item.content, diff)
    except diffs.DiffError as error:
        raise Refused(Why.WRONG_STATE, f"The diff does not apply to {item.key}: {error}") from error


class Task(msgspec.Struct, frozen=True):
    """One of the tasks that agents keep for a session (OPEN-41)."""

    id: Id
    title: Short
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["low", "medium", "high"]
    created_at: Short
    updated_at: Short
    description: Short | None = None
    completed_at: Short | None = None


class Tasks(msgspec.Struct, frozen=True):
    """What lies under `session:tasks`."""

    tasks: tuple[Task, ...]
    goal: str | dict[str, Any] | None


def check_tasks(content_type: str, content: Content | None) -> None:
    """`session:tasks` holds a goal and tasks, and nothing else (OPEN-41)."""
    try:
        msgspec.convert(content, Tasks)
    except msgspec.ValidationError as error:
        raise Refused(Why.MALFORMED, f"{TASKS} holds a goal and tasks: {error}") from error
    if content_type != "structured":
        raise Refused(Why.MALFORMED, f"{TASKS} is structured, not {content_type}")
