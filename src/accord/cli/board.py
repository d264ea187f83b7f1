"""The board of a pact, for a person at a terminal."""

from collections.abc import Iterator

from accord.core.views.work import FeatureView, WorkView
from accord.core.work.state import Task
from accord.core.work.words import Stage, Status
from accord.show import paint
from accord.show.text import count, line, width

COLOURS: dict[str, paint.Paint] = {
    Status.ASSIGNED: paint.dim,
    Status.IN_PROGRESS: paint.blue,
    Status.AWAITING_REVIEW: paint.yellow,
    Status.CHANGES_REQUESTED: paint.red,
    Status.ACCEPTED: paint.green,
    Stage.SHIPPED: paint.green,
}
WIDEST = max(len(status) for status in Status)


def board(view: WorkView) -> Iterator[str]:
    """Features with their tasks, and whose move it is."""
    seats = ", ".join(
        f"{line(seat.id)} ({', '.join(map(line, seat.roles))})" for seat in view.seats
    )
    yield paint.bold(line(view.project) or "unknown") + (f"  {seats}" if seats else "")
    if not view.features:
        yield ""
        yield "No task is assigned yet."
    for feature in view.features:
        yield ""
        yield _feature(feature)
        yield from (_task(task) for task in feature.tasks)


def _feature(feature: FeatureView) -> str:
    done = sum(task.status is Status.ACCEPTED for task in feature.tasks)
    status = _painted(feature.status, feature.status.replace("_", " "))
    of = f"{done} of {count(len(feature.tasks), 'task')} accepted"
    branch = f", branch {line(feature.branch)}" if feature.branch else ""
    return f"{paint.bold(line(feature.id))}  {status}  ({of}{branch})"


def _task(task: Task) -> str:
    status = _painted(task.status, task.status.replace("_", " ").ljust(WIDEST))
    head = f"  {line(task.id):12} {status}  {line(task.owner)} → {line(task.reviewer)}"
    said = task.reason if task.returned else task.evidence
    plain = (
        f"  {line(task.id):12} {task.status:{WIDEST}}  {line(task.owner)} → {line(task.reviewer)}"
    )
    room = width() - len(plain) - 2
    told = line(said)
    if not told or room < 10:
        return head
    return f"{head}  {paint.dim(told if len(told) <= room else f'{told[: room - 1]}…')}"


def _painted(status: str, text: str) -> str:
    return COLOURS.get(status, str)(text)
