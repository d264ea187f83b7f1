"""The session's task list, which an agent keeps under `session:tasks` (OPEN-41)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from accord.client import ServerRefused, Session
from accord.core.room.shared_context.item_content import TASKS_KEY

DEFAULT_PRIORITY = "medium"


class TaskListError(Exception):
    """The list cannot be shown; the message says why."""


async def show_tasks(
    session: Session, arguments: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace the list; times of tasks that were there stay. Raises TaskListError."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    content = build_tasks(arguments, before, now)
    try:
        await session.add_context(TASKS_KEY, content)
    except ServerRefused as refusal:
        if refusal.code != "INVALID_STATE":  # another agent began the list
            raise TaskListError(refusal.message) from None
        try:
            await session.update_context(TASKS_KEY, content, reason="tasks")
        except ServerRefused as again:
            raise TaskListError(again.message) from None
    return content


def build_tasks(
    arguments: Mapping[str, Any], before: Mapping[str, Any], now: str
) -> dict[str, Any]:
    """The content of `session:tasks`."""
    tasks = arguments.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
        raise TaskListError("tasks must be an array of objects")
    known = {each["id"]: each for each in before.get("tasks", ())}
    return {
        "goal": arguments.get("goal"),
        "tasks": [_task(each, known.get(each.get("id")) or {}, now) for each in tasks],
    }


def _task(given: Mapping[str, Any], known: Mapping[str, Any], now: str) -> dict[str, Any]:
    task = {
        "priority": DEFAULT_PRIORITY,
        "created_at": now,
        **{key: known[key] for key in ("created_at", "completed_at") if key in known},
        **msgspec.to_builtins(dict(given)),
        "updated_at": now,
    }
    if task.get("status") == "completed":
        task.setdefault("completed_at", now)
    else:
        task.pop("completed_at", None)
    return task
