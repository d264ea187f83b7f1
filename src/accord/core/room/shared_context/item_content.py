"""The content of context items: hashes, diffs, and the format of a session's tasks."""

from hashlib import sha256
from typing import Any, Literal

import msgspec
import rfc8785

from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.field_types import Id, ShortText
from accord.core.room.shared_context import unified_diff
from accord.core.room.state import ContentRef, ContextItem

Content = str | dict[str, Any]
MAX_ITEM_BYTES = 1 << 20
TASKS_KEY = "session:tasks"


def content_bytes(content: Content) -> bytes:
    """The bytes that are hashed: UTF-8 text, or an object as RFC 8785 (OPEN-40)."""
    if isinstance(content, str):
        return content.encode()
    try:
        return rfc8785.dumps(content)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise Refused(Reason.MALFORMED, f"content has no canonical form: {error}") from error


def content_hash(content: Content) -> str:
    """SHA-256 in lower-case hex."""
    return sha256(content_bytes(content)).hexdigest()


def matches_ref(content: Content, ref: ContentRef) -> bool:
    """Whether the hash is that of the content; of an object, canonical or as it was sent."""
    as_written = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return ref.hash == sha256(as_written).hexdigest() or ref.hash == content_hash(content)


def apply_diff(item: ContextItem, diff: str) -> str:
    """The item's text with a unified diff applied, all hunks or none."""
    if not isinstance(item.content, str):
        raise Refused(Reason.WRONG_STATE, f"{item.key} is not text; send new_content")
    try:
        return unified_diff.apply_diff(item.content, diff)
    except unified_diff.DiffError as error:
        raise Refused(
            Reason.WRONG_STATE, f"The diff does not apply to {item.key}: {error}"
        ) from error


class SessionTask(msgspec.Struct, frozen=True):
    """A task that agents keep for a session (OPEN-41)."""

    id: Id
    title: ShortText
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["low", "medium", "high"]
    created_at: ShortText
    updated_at: ShortText
    description: ShortText | None = None
    completed_at: ShortText | None = None


class SessionTasks(msgspec.Struct, frozen=True):
    """The content of `session:tasks`."""

    tasks: tuple[SessionTask, ...]
    goal: str | dict[str, Any] | None


def check_tasks(content_type: str, content: Content | None) -> None:
    """Refuse anything but a goal and tasks under `session:tasks` (OPEN-41)."""
    try:
        msgspec.convert(content, SessionTasks)
    except msgspec.ValidationError as error:
        raise Refused(
            Reason.MALFORMED, f"{TASKS_KEY} must hold a goal and tasks: {error}"
        ) from error
    if content_type != "structured":
        raise Refused(Reason.MALFORMED, f"{TASKS_KEY} must be structured, not {content_type}")
