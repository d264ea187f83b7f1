"""A pact as boards and JSON output show it, with the stage of each feature."""

import msgspec

from accord.core.work.state import Seat, Task, Work
from accord.core.work.vocabulary import FeatureStage


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
