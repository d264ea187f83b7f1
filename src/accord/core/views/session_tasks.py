"""A pact as the context item `session:tasks` of a session (OPEN-41, UNI-17)."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from accord.core.work.state import Task, Work
from accord.core.work.vocabulary import TaskStatus, is_work_id

# Every change of the pact sends the whole item to every session, so its size is bounded.
MAX_TASKS = 100
MAX_CONTENT_BYTES = 64 << 10  # bytes
MAX_TEXT_LENGTH = 200
ELLIPSIS = "…"

Content = dict[str, Any]

# UNI-17: the session's status for each status of a Pact task.
SESSION_STATUS: dict[TaskStatus, str] = {
    TaskStatus.TODO: "pending",
    TaskStatus.ASSIGNED: "pending",
    TaskStatus.IN_PROGRESS: "in_progress",
    TaskStatus.AWAITING_REVIEW: "in_progress",
    TaskStatus.CHANGES_REQUESTED: "in_progress",
    TaskStatus.ACCEPTED: "completed",
}


class TaskTimes(NamedTuple):
    """When a task was assigned, last changed, and accepted."""

    created: str
    updated: str
    completed: str = ""


def tasks_content(
    work: Work, unfinished: dict[str, None], times: Mapping[str, TaskTimes], repo: str
) -> Content:
    """The content of the item; of a long pact the unfinished tasks first, then the newest."""
    rows, size = dict[str, Content](), 0
    for task in islice(rank_tasks(work.tasks, unfinished), MAX_TASKS):
        row = task_row(task, times[task.id])
        size += len(msgspec.json.encode(row))
        if size > MAX_CONTENT_BYTES:
            break
        rows[task.id] = row
    left_out = len(work.tasks) - len(rows)
    content: Content = {
        "goal": truncate(work.project) or None,
        "tasks": [rows[id] for id in work.tasks if id in rows],
        "pact": repo,
    }
    return {**content, "left_out": left_out} if left_out else content


def rank_tasks(tasks: dict[str, Task], unfinished: dict[str, None]) -> Iterator[Task]:
    """The newest unfinished tasks, then the newest accepted ones; invalid ids are left out."""
    accepted = (id for id in reversed(tasks) if id not in unfinished)
    for id in chain(reversed(unfinished), accepted):
        if is_work_id(id):
            yield tasks[id]


def task_row(task: Task, times: TaskTimes) -> Content:
    """One task of the session's list, with its Pact fields under `pact`."""
    description = task.reason if task.returned else task.evidence
    row = {
        "id": task.id,
        "title": truncate(f"{task.feature}: {task.id}"),
        "status": SESSION_STATUS[task.status],
        "priority": "medium",
        "created_at": times.created,
        "updated_at": times.updated,
        "description": truncate(description) or None,
        "completed_at": times.completed if task.status is TaskStatus.ACCEPTED else None,
        "pact": {
            "status": str(task.status),
            "feature": truncate(task.feature),
            "owner": truncate(task.owner),
            "reviewer": truncate(task.reviewer),
            "spec": truncate(task.spec),
        },
    }
    return {name: value for name, value in row.items() if value is not None}


def truncate(text: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """The text, cut to `max_length` characters with an ellipsis."""
    return text if len(text) <= max_length else f"{text[: max_length - 1]}{ELLIPSIS}"
