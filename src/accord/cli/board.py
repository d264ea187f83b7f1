"""The board of a pact, for a person at a terminal."""

from collections.abc import Iterator

from accord.core.views.work import FeatureView, WorkView
from accord.core.work.state import Task
from accord.core.work.words import Stage, Status
from accord.show import paint
from accord.show.text import clipped, count, line, width, wrapped

COLOURS: dict[str, paint.Paint] = {
    Status.ASSIGNED: paint.dim,
    Status.IN_PROGRESS: paint.blue,
    Status.AWAITING_REVIEW: paint.yellow,
    Status.CHANGES_REQUESTED: paint.red,
    Status.ACCEPTED: paint.green,
    Stage.SHIPPED: paint.green,
}
WIDEST = max(len(status) for status in Status)
# Below that, nobody learns anything from what was said.
LEAST = 10


def board(view: WorkView) -> Iterator[str]:
    """Features with their tasks, and whose move it is."""
    yield from _head(view)
    if not view.features:
        yield ""
        yield "No task is assigned yet."
    tasks = [task for feature in view.features for task in feature.tasks]
    ids = max([12, *(len(line(task.id)) for task in tasks)])
    pairs = max([0, *(len(_pair(task)) for task in tasks)])
    for feature in view.features:
        yield ""
        yield _feature(feature)
        yield from (_task(task, ids, pairs) for task in feature.tasks)


def _head(view: WorkView) -> Iterator[str]:
    name = line(view.project) or "unknown"
    seats = ", ".join(
        f"{line(seat.id)} ({', '.join(map(line, seat.roles))})" for seat in view.seats
    )
    if len(name) + 2 + len(seats) <= width():
        yield paint.bold(name) + (f"  {seats}" if seats else "")
        return
    yield paint.bold(name)
    yield from wrapped(seats, "  ")


def _feature(feature: FeatureView) -> str:
    done = sum(task.status is Status.ACCEPTED for task in feature.tasks)
    status = _painted(feature.status, feature.status.replace("_", " "))
    of = f"{done} of {count(len(feature.tasks), 'task')} accepted"
    branch = f", branch {line(feature.branch)}" if feature.branch else ""
    return f"{paint.bold(line(feature.id))}  {status}  ({of}{branch})"


def _task(task: Task, ids: int, pairs: int) -> str:
    status = _painted(task.status, task.status.replace("_", " ").ljust(WIDEST))
    head = f"  {line(task.id):{ids}} {status}  {_pair(task)}"
    room = width() - (2 + ids + 1 + WIDEST + 2 + pairs + 2)
    told = line(task.reason if task.returned else task.evidence)
    if not told or room < LEAST:
        return head
    gap = " " * (pairs - len(_pair(task)) + 2)
    return f"{head}{gap}{paint.dim(clipped(told, room))}"


def _pair(task: Task) -> str:
    return f"{line(task.owner)} → {line(task.reviewer)}"


def _painted(status: str, text: str) -> str:
    return COLOURS.get(status, str)(text)
