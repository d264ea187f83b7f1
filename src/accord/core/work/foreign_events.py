"""The extended view with events of other tools that version 1 ignores (OPEN-107)."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.work.event import LogEntry, PactEvent
from accord.core.work.fold import APPLIERS, Appliers, Fold, SkipReason, strings_in
from accord.core.work.state import Seat, Task, Work
from accord.core.work.vocabulary import TaskStatus


class FoldWithForeignEvents(Fold):
    """A fold that also applies `start`, `cancel`, `withdraw`, `add-seat` and `rebaseline`."""

    def appliers(self) -> Appliers:
        """The function that applies each kind of event."""
        return FOREIGN_APPLIERS


def on_start(fold: Fold, event: PactEvent) -> SkipReason:
    """Mark a task as started."""
    task = fold.tasks.get(event.task_id)
    if task and task.status is TaskStatus.ASSIGNED:
        fold.stop_awaiting_owner(task)
        fold.tasks[task.id] = replace(task, status=TaskStatus.IN_PROGRESS, returned=False)
    return None


def on_cancel(fold: Fold, event: PactEvent) -> SkipReason:
    """Drop a task, unless its review is under way."""
    task = fold.tasks.get(event.task_id)
    if not task or task.status in {TaskStatus.AWAITING_REVIEW, TaskStatus.CHANGES_REQUESTED}:
        return None
    _drop_task(fold, task)
    return None


def on_withdraw(fold: Fold, event: PactEvent) -> SkipReason:
    """Drop a feature and its tasks."""
    for id in tuple(fold.task_ids.get(event.feature, ())):
        _drop_task(fold, fold.tasks[id])
    fold.task_ids.pop(event.feature, None)
    fold.features.pop(event.feature, None)
    fold.open_counts.pop(event.feature, None)
    return None


def on_add_seat(fold: Fold, event: PactEvent) -> SkipReason:
    """Add a seat unless it exists."""
    payload = event.payload
    if payload.id and not fold.head.seat(payload.id):
        seat = Seat(payload.id, tuple(strings_in(payload.roles)), payload.entry)
        fold.head = replace(fold.head, seats=(*fold.head.seats, seat))
    return None


def on_rebaseline(fold: Fold, event: PactEvent) -> SkipReason:
    """Change the base branch."""
    fold.head = replace(fold.head, base_branch=event.payload.base_branch)
    return None


FOREIGN_APPLIERS: Appliers = {
    **APPLIERS,
    "start": on_start,
    "cancel": on_cancel,
    "withdraw": on_withdraw,
    "add-seat": on_add_seat,
    "rebaseline": on_rebaseline,
}


def fold_with_foreign_events(entries: Sequence[LogEntry]) -> Work:
    """The state including foreign events; for display only, no rule depends on it."""
    return FoldWithForeignEvents().add(entries).work()


def _drop_task(fold: Fold, task: Task) -> None:
    fold.stop_awaiting_owner(task)
    del fold.tasks[task.id]
    fold.task_ids[task.feature].remove(task.id)
    fold.open_counts[task.feature] -= task.status is not TaskStatus.ACCEPTED
