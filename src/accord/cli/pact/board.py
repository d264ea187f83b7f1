"""The board of `accord pact status` on a terminal."""

from collections.abc import Iterator

from accord.core.views.pact_board import FeatureView, WorkView
from accord.core.work.state import Task
from accord.core.work.vocabulary import FeatureStage, TaskStatus
from accord.show import style
from accord.show.text import clip, one_line, plural, text_width, wrap

STATUS_STYLES: dict[str, style.Style] = {
    TaskStatus.ASSIGNED: style.dim,
    TaskStatus.IN_PROGRESS: style.blue,
    TaskStatus.AWAITING_REVIEW: style.yellow,
    TaskStatus.CHANGES_REQUESTED: style.red,
    TaskStatus.ACCEPTED: style.green,
    FeatureStage.SHIPPED: style.green,
}
STATUS_WIDTH = max(len(status) for status in TaskStatus)
# A narrower text would not be readable.
MIN_TEXT_WIDTH = 10


def render_board(view: WorkView) -> Iterator[str]:
    """Features with their tasks, owners and reviewers."""
    yield from _head(view)
    if not view.features:
        yield ""
        yield "No tasks are assigned yet."
    tasks = [task for feature in view.features for task in feature.tasks]
    ids = max([12, *(len(one_line(task.id)) for task in tasks)])
    pairs = max([0, *(len(_owner_and_reviewer(task)) for task in tasks)])
    for feature in view.features:
        yield ""
        yield _feature(feature)
        yield from (_task(task, ids, pairs) for task in feature.tasks)


def _head(view: WorkView) -> Iterator[str]:
    name = one_line(view.project) or "unknown"
    seats = ", ".join(
        f"{one_line(seat.id)} ({', '.join(map(one_line, seat.roles))})" for seat in view.seats
    )
    if len(name) + 2 + len(seats) <= text_width():
        yield style.bold(name) + (f"  {seats}" if seats else "")
        return
    yield style.bold(name)
    yield from wrap(seats, "  ")


def _feature(feature: FeatureView) -> str:
    done = sum(task.status is TaskStatus.ACCEPTED for task in feature.tasks)
    status = _styled(feature.status, feature.status.replace("_", " "))
    of = f"{done} of {plural(len(feature.tasks), 'task')} accepted"
    branch = f", branch {one_line(feature.branch)}" if feature.branch else ""
    return f"{style.bold(one_line(feature.id))}  {status}  ({of}{branch})"


def _task(task: Task, ids: int, pairs: int) -> str:
    status = _styled(task.status, task.status.replace("_", " ").ljust(STATUS_WIDTH))
    head = f"  {one_line(task.id):{ids}} {status}  {_owner_and_reviewer(task)}"
    width = text_width() - (2 + ids + 1 + STATUS_WIDTH + 2 + pairs + 2)
    note = one_line(task.reason if task.returned else task.evidence)
    if not note or width < MIN_TEXT_WIDTH:
        return head
    gap = " " * (pairs - len(_owner_and_reviewer(task)) + 2)
    return f"{head}{gap}{style.dim(clip(note, width))}"


def _owner_and_reviewer(task: Task) -> str:
    return f"{one_line(task.owner)} → {one_line(task.reviewer)}"


def _styled(status: str, text: str) -> str:
    return STATUS_STYLES.get(status, str)(text)
