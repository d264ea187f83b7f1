"""A pact as boards and JSON output show it, with the stage of each feature."""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from accord.core.views.session_tasks import TaskTimes, rank_tasks
from accord.core.work.state import Seat, Task, Work
from accord.core.work.vocabulary import FeatureStage, TaskStatus

# A board shows so many tasks: those that are not accepted first, then the newest.
MAX_BOARD_TASKS = 300


class TaskEvent(NamedTuple):
    """What happened to a task: by which seat, in which words, about which commit."""

    at: str
    by: str
    kind: str
    words: str
    commit: str


class MirroredBoard(NamedTuple):
    """A pact as the server knows it: what it came to, when, and what may be missing."""

    repo: str
    sessions: tuple[str, ...]
    view: "WorkView"
    times: Mapping[str, TaskTimes]
    history: Mapping[str, tuple[TaskEvent, ...]]
    events: int
    trouble: str


class FeatureView(msgspec.Struct, frozen=True):
    """A feature with its tasks."""

    id: str
    branch: str
    status: FeatureStage
    tasks: tuple[Task, ...]


class WorkView(msgspec.Struct, frozen=True):
    """A pact with its seats, features and tasks."""

    project: str
    protocol_version: int
    base_branch: str
    seats: tuple[Seat, ...]
    features: tuple[FeatureView, ...]


def work_view(work: Work) -> WorkView:
    """The view of the current state."""
    features = tuple(
        FeatureView(feature.id, feature.branch, work.stage(feature), tuple(work.tasks_of(feature)))
        for feature in work.features.values()
    )
    return WorkView(work.project, work.protocol, work.base_branch, work.seats, features)


def shown_tasks(view: WorkView) -> frozenset[str]:
    """The tasks that fit on a board."""
    tasks = {task.id: task for feature in view.features for task in feature.tasks}
    unfinished = {id: None for id, task in tasks.items() if task.status is not TaskStatus.ACCEPTED}
    return frozenset(task.id for task in islice(rank_tasks(tasks, unfinished), MAX_BOARD_TASKS))
