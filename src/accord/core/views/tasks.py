"""A pact as a session reads it under `session:tasks` (OPEN-41, UNI-17)."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from accord.core.work.state import Task, Work
from accord.core.work.words import Status, is_id

# Every change of the pact tells all of this to every session, so it is kept short.
MOST_TASKS = 100
LARGEST = 64 << 10  # bytes
LONGEST = 200
CUT = "…"

Content = dict[str, Any]

# UNI-17: what a state of Pact is called in a session.
CALLED: dict[Status, str] = {
    Status.TODO: "pending",
    Status.ASSIGNED: "pending",
    Status.IN_PROGRESS: "in_progress",
    Status.AWAITING_REVIEW: "in_progress",
    Status.CHANGES_REQUESTED: "in_progress",
    Status.ACCEPTED: "completed",
}


class Times(NamedTuple):
    """When a task was given away, when it last moved, and when it was accepted."""

    created: str
    updated: str
    completed: str = ""


def content(
    work: Work, unfinished: dict[str, None], times: Mapping[str, Times], repo: str
) -> Content:
    """What lies under the key; of a long pact those that nobody accepted, then the newest."""
    rows, size = dict[str, Content](), 0
    for task in islice(ranked(work.tasks, unfinished), MOST_TASKS):
        made = row(task, times[task.id])
        size += len(msgspec.json.encode(made))
        if size > LARGEST:
            break
        rows[task.id] = made
    left_out = len(work.tasks) - len(rows)
    told: Content = {
        "goal": short(work.project) or None,
        "tasks": [rows[id] for id in work.tasks if id in rows],
        "pact": repo,
    }
    return {**told, "left_out": left_out} if left_out else told


def ranked(tasks: dict[str, Task], unfinished: dict[str, None]) -> Iterator[Task]:
    """The newest unfinished ones, then the newest others; none whose name might mislead."""
    accepted = (id for id in reversed(tasks) if id not in unfinished)
    for id in chain(reversed(unfinished), accepted):
        if is_id(id):
            yield tasks[id]


def row(task: Task, times: Times) -> Content:
    """One task: its place in the session's list, and what Pact says of it."""
    words = task.reason if task.returned else task.evidence
    told = {
        "id": task.id,
        "title": short(f"{task.feature}: {task.id}"),
        "status": CALLED[task.status],
        "priority": "medium",
        "created_at": times.created,
        "updated_at": times.updated,
        "description": short(words) or None,
        "completed_at": times.completed if task.status is Status.ACCEPTED else None,
        "pact": {
            "status": str(task.status),
            "feature": short(task.feature),
            "owner": short(task.owner),
            "reviewer": short(task.reviewer),
            "spec": short(task.spec),
        },
    }
    return {name: value for name, value in told.items() if value is not None}


def short(text: str, most: int = LONGEST) -> str:
    """A text of bounded length."""
    return text if len(text) <= most else f"{text[: most - 1]}{CUT}"
