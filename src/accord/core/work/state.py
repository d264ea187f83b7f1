"""The state of the work: who sits where, what is to be done, and who said that it is done."""

from collections.abc import Iterator

import msgspec

from accord.core.work.words import PROTOCOL, Stage, Status


class Seat(msgspec.Struct, frozen=True, gc=False):
    """A place in the project; whoever fills it may change."""

    id: str
    roles: tuple[str, ...] = ()
    entry: str = ""
    key: str = ""


class Task(msgspec.Struct, frozen=True, gc=False):
    """A piece of work with an owner, and a reviewer who is somebody else.

    `returned`: changes were asked for and nothing was shown since. `commit` is the last that was
    shown or accepted. A checkpoint that is in its own commit cannot name it: then `commit` is the
    one before, and `files` a digest of what it holds.
    """

    id: str
    feature: str
    owner: str
    reviewer: str
    spec: str
    deps: tuple[str, ...] = ()
    status: Status = Status.ASSIGNED
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
    """Everything a log says, folded."""

    project: str = ""
    base_branch: str = ""
    protocol: int = 0
    started: bool = False
    seats: tuple[Seat, ...] = ()
    features: dict[str, Feature] = {}
    tasks: dict[str, Task] = {}

    @property
    def too_new(self) -> bool:
        """Whether a later version of Pact wrote this, which we do not understand."""
        return self.protocol > PROTOCOL

    def seat(self, id: str) -> Seat | None:
        """The seat of that name, if it was declared."""
        return next((seat for seat in self.seats if seat.id == id), None)

    def tasks_of(self, feature: Feature) -> Iterator[Task]:
        """In the order they were assigned."""
        return (self.tasks[id] for id in feature.tasks)

    def open_tasks(self, feature: Feature) -> list[str]:
        """Those that nobody accepted yet."""
        return [each.id for each in self.tasks_of(feature) if each.status is not Status.ACCEPTED]

    def stage(self, feature: Feature) -> Stage:
        """PACT 4.2."""
        if feature.shipped:
            return Stage.SHIPPED
        statuses = {task.status for task in self.tasks_of(feature)}
        if not statuses:
            return Stage.PLANNED
        if statuses == {Status.ACCEPTED}:
            return Stage.ACCEPTED
        if statuses <= {Status.ACCEPTED, Status.AWAITING_REVIEW}:
            return Stage.AWAITING_REVIEW
        return Stage.IN_PROGRESS
