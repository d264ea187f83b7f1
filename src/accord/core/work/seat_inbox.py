"""A seat's inbox: what it has to do next."""

from collections.abc import Iterator

import msgspec

from accord.core.work.state import Work
from accord.core.work.vocabulary import FeatureStage, SeatRole, TaskStatus

STATUS_TEXT = {TaskStatus.ASSIGNED: "assigned", TaskStatus.IN_PROGRESS: "in progress"}


class InboxItem(msgspec.Struct, frozen=True):
    """One action for a seat: what to do, about which task or feature, and why."""

    do: str
    about: str
    why: str
    spec: str = ""


def inbox_of(work: Work, seat: str) -> Iterator[InboxItem]:
    """Inbox items of a seat: reviews first, since others wait; then own work; then merges."""
    for task in work.tasks.values():
        if task.reviewer == seat and task.status is TaskStatus.AWAITING_REVIEW:
            yield InboxItem(
                "review", task.id, f"{task.owner} submitted: {task.evidence}", task.spec
            )
    for task in work.tasks.values():
        if task.owner == seat and task.returned:
            yield InboxItem(
                "change", task.id, f"{task.reviewer} requests: {task.reason}", task.spec
            )
        elif task.owner == seat and task.status in STATUS_TEXT:
            reason = f"{STATUS_TEXT[task.status]}; {task.reviewer} reviews it"
            yield InboxItem("work", task.id, reason, task.spec)
    own_seat = work.seat(seat)
    if own_seat and SeatRole.ORCHESTRATOR in own_seat.roles:
        for feature in work.features.values():
            if work.stage(feature) is FeatureStage.ACCEPTED:
                yield InboxItem("merge", feature.id, "all tasks are accepted")
