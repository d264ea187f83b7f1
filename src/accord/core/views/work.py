"""The work as programs and boards read it, with the five states of a feature."""

import msgspec

from accord.core.work.state import Seat, Task, Work
from accord.core.work.words import Stage


class FeatureView(msgspec.Struct, frozen=True):
    """A feature with its tasks."""

    id: str
    branch: str
    status: Stage
    tasks: tuple[Task, ...]


class WorkView(msgspec.Struct, frozen=True):
    """All of a pact."""

    project: str
    protocol_version: int
    base_branch: str
    seats: tuple[Seat, ...]
    features: tuple[FeatureView, ...]


def view(work: Work) -> WorkView:
    """What a reader sees."""
    features = tuple(
        FeatureView(each.id, each.branch, work.stage(each), tuple(work.tasks_of(each)))
        for each in work.features.values()
    )
    return WorkView(work.project, work.protocol, work.base_branch, work.seats, features)
