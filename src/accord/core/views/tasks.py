"""A pact as a session reads it under `session:tasks` (OPEN-41, UNI-17)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from accord.core.work.state import Task, Work
from accord.core.work.words import Status, is_id

# Every change of the pact tells all of it to every session, so it is kept short.
MOST_TASKS = 100
LONGEST = 200

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


def content(work: Work, times: Mapping[str, Times], repo: str) -> dict[str, Any]:
    """What lies under the key; of a long pact those tasks that are open, then the newest."""
    shown = chosen(task for task in work.tasks.values() if is_id(task.id))
    left_out = len(work.tasks) - len(shown)
    told: dict[str, Any] = {
        "goal": short(work.project) or None,
        "tasks": [row(task, times[task.id]) for task in shown],
        "pact": repo,
    }
    return {**told, "left_out": left_out} if left_out else told


def chosen(tasks: Iterable[Task]) -> list[Task]:
    """In the order they were assigned; where there are too many, old accepted ones give way."""
    every = list(tasks)
    if len(every) <= MOST_TASKS:
        return every
    ranked = sorted(
        enumerate(every), key=lambda each: (each[1].status is Status.ACCEPTED, -each[0])
    )
    return [every[place] for place in sorted(place for place, _ in ranked[:MOST_TASKS])]


def row(task: Task, times: Times) -> dict[str, Any]:
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
    return text if len(text) <= most else f"{text[: most - 1]}…"
