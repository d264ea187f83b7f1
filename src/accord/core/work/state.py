"""The state of a pact: its seats, features and tasks."""

from collections.abc import Iterator

import msgspec

from accord.core.work.vocabulary import PROTOCOL_VERSION, FeatureStage, TaskStatus


class Seat(msgspec.Struct, frozen=True, gc=False):
    """A named role in the project, which different people or agents may fill over time."""

    id: str
    roles: tuple[str, ...] = ()
    entry: str = ""
    key: str = ""


class Task(msgspec.Struct, frozen=True, gc=False):
    """A piece of work with an owner and a different reviewer.

    `returned` means that changes were requested and no checkpoint followed yet. `commit` is the
    last commit that was shown or accepted. A checkpoint inside its own commit cannot name that
    commit; then `commit` is its parent, and `files` a digest of its files.
    """

    id: str
    feature: str
    owner: str
    reviewer: str
    spec: str
    deps: tuple[str, ...] = ()
    status: TaskStatus = TaskStatus.ASSIGNED
    evidence: str = ""
    reason: str = ""
    returned: bool = False
    commit: str = ""
    files: str = ""


class Feature(msgspec.Struct, frozen=True, gc=False):
    """Tasks that ship together."""

    id: str
    branch: str
    tasks: tuple[str, ...] = ()
    shipped: bool = False


class Work(msgspec.Struct, frozen=True):
    """The folded state of a log."""

    project: str = ""
    base_branch: str = ""
    protocol: int = 0
    started: bool = False
    seats: tuple[Seat, ...] = ()
    features: dict[str, Feature] = {}
    tasks: dict[str, Task] = {}
    used_task_ids: frozenset[str] = frozenset()  # of every `assign`, also of skipped ones

    @property
    def too_new(self) -> bool:
        """Whether the log uses a protocol version that Accord does not support."""
        return self.protocol > PROTOCOL_VERSION

    def seat(self, id: str) -> Seat | None:
        """The seat with that id, if it was declared."""
        return next((seat for seat in self.seats if seat.id == id), None)

    def tasks_of(self, feature: Feature) -> Iterator[Task]:
        """The feature's tasks in the order they were assigned."""
        return (self.tasks[id] for id in feature.tasks)

    def open_tasks(self, feature: Feature) -> list[str]:
        """The ids of the feature's tasks that are not accepted."""
        return [
            task.id for task in self.tasks_of(feature) if task.status is not TaskStatus.ACCEPTED
        ]

    def stage(self, feature: Feature) -> FeatureStage:
        """The stage of a feature, derived from its tasks (PACT 4.2)."""
        if feature.shipped:
            return FeatureStage.SHIPPED
        statuses = {task.status for task in self.tasks_of(feature)}
        if not statuses:
            return FeatureStage.PLANNED
        if statuses == {TaskStatus.ACCEPTED}:
            return FeatureStage.ACCEPTED
        if statuses <= {TaskStatus.ACCEPTED, TaskStatus.AWAITING_REVIEW}:
            return FeatureStage.AWAITING_REVIEW
        return FeatureStage.IN_PROGRESS

    def commits_by_reviewer(self, feature: Feature) -> dict[str, tuple[str, ...]]:
        """The commits that each reviewer of a feature accepted; empty while a task is open."""
        if not feature.tasks or self.open_tasks(feature):
            return {}
        by_reviewer: dict[str, tuple[str, ...]] = {}
        for task in self.tasks_of(feature):
            commits = (task.commit,) if task.commit else ()
            by_reviewer[task.reviewer] = by_reviewer.get(task.reviewer, ()) + commits
        return by_reviewer
