"""The extended view: later events of other tools, which version 1 passes by (OPEN-107)."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.work.event import Entry, Event
from accord.core.work.fold import APPLY, Appliers, Fold, No, words_in
from accord.core.work.state import Seat, Task, Work
from accord.core.work.words import Status


class Extended(Fold):
    """A fold that also knows `start`, `cancel`, `withdraw`, `add-seat` and `rebaseline`."""

    def table(self) -> Appliers:
        """What each kind of event does."""
        return EXTENDED


def on_start(fold: Fold, event: Event) -> No:
    """Somebody else says that a task was begun."""
    task = fold.tasks.get(event.task_id)
    if task and task.status is Status.ASSIGNED:
        fold.busy(task)
        fold.tasks[task.id] = replace(task, status=Status.IN_PROGRESS, returned=False)
    return None


def on_cancel(fold: Fold, event: Event) -> No:
    """A task is no longer wanted; what somebody has to review is not dropped."""
    task = fold.tasks.get(event.task_id)
    if not task or task.status in {Status.AWAITING_REVIEW, Status.CHANGES_REQUESTED}:
        return None
    _drop(fold, task)
    return None


def on_withdraw(fold: Fold, event: Event) -> No:
    """A feature is no longer wanted."""
    for id in tuple(fold.members.get(event.feature, ())):
        _drop(fold, fold.tasks[id])
    fold.members.pop(event.feature, None)
    fold.features.pop(event.feature, None)
    fold.open.pop(event.feature, None)
    return None


def on_add_seat(fold: Fold, event: Event) -> No:
    """One more seat, once."""
    said = event.payload
    if said.id and not fold.head.seat(said.id):
        seat = Seat(said.id, tuple(words_in(said.roles)), said.entry)
        fold.head = replace(fold.head, seats=(*fold.head.seats, seat))
    return None


def on_rebaseline(fold: Fold, event: Event) -> No:
    """Features are merged into another branch from now on."""
    fold.head = replace(fold.head, base_branch=event.payload.base_branch)
    return None


EXTENDED: Appliers = {
    **APPLY,
    "start": on_start,
    "cancel": on_cancel,
    "withdraw": on_withdraw,
    "add-seat": on_add_seat,
    "rebaseline": on_rebaseline,
}


def extended(entries: Sequence[Entry]) -> Work:
    """The state with what other tools added; it decides nothing here."""
    return Extended().take(entries).work()


def _drop(fold: Fold, task: Task) -> None:
    fold.busy(task)
    del fold.tasks[task.id]
    fold.members[task.feature].remove(task.id)
    fold.open[task.feature] -= task.status is not Status.ACCEPTED
