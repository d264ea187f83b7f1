"""What of the work is not done: kept in step with a fold, so that no event looks through all."""

from accord.core.work.event import Event
from accord.core.work.fold import Fold
from accord.core.work.state import Task
from accord.core.work.words import Kind, Status

# What moves a task; `join` moves some too, but none from one of the lists to another.
MOVES = frozenset({Kind.ASSIGN, Kind.CHECKPOINT, Kind.ACCEPT, Kind.CHANGES})


class Standing:
    """Tasks that nobody accepted, those that wait for a reviewer, features that are not merged."""

    def __init__(self) -> None:
        self.open: dict[str, None] = {}
        self.waiting: dict[str, dict[str, None]] = {}  # by reviewer
        self.left: dict[str, dict[str, None]] = {}  # by feature, its open tasks

    def copy(self) -> "Standing":
        """The same, which goes on by itself."""
        other = Standing()
        other.open = dict(self.open)
        other.waiting = {reviewer: dict(tasks) for reviewer, tasks in self.waiting.items()}
        other.left = {feature: dict(tasks) for feature, tasks in self.left.items()}
        return other

    def note(self, fold: Fold, event: Event) -> None:
        """An event was folded; what counts is where things stand behind it."""
        if event.event_type in MOVES and (task := fold.tasks.get(event.task_id)):
            self._move(task)
        elif event.event_type == Kind.MERGE:
            self.left.pop(event.feature, None)

    def _move(self, task: Task) -> None:
        left = self.left.setdefault(task.feature, {})
        waits = self.waiting.setdefault(task.reviewer, {})
        for tasks, there in (
            (self.open, task.status is not Status.ACCEPTED),
            (left, task.status is not Status.ACCEPTED),
            (waits, task.status is Status.AWAITING_REVIEW),
        ):
            if there:
                tasks[task.id] = None
            else:
                tasks.pop(task.id, None)
        if not waits:
            del self.waiting[task.reviewer]
