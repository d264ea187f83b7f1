"""What waits for a seat: the next move is theirs."""

from collections.abc import Iterator

import msgspec

from accord.core.work.state import Work
from accord.core.work.words import Role, Stage, Status

BEGUN = {Status.ASSIGNED: "assigned", Status.IN_PROGRESS: "in progress"}


class Waiting(msgspec.Struct, frozen=True):
    """One thing that somebody should do next."""

    do: str
    about: str
    why: str
    spec: str = ""


def waiting(work: Work, seat: str) -> Iterator[Waiting]:
    """Reviews first, since others wait for them; then one's own work; then what can ship."""
    for task in work.tasks.values():
        if task.reviewer == seat and task.status is Status.AWAITING_REVIEW:
            yield Waiting("review", task.id, f"{task.owner} shows: {task.evidence}", task.spec)
    for task in work.tasks.values():
        if task.owner == seat and task.returned:
            yield Waiting("change", task.id, f"{task.reviewer} asks: {task.reason}", task.spec)
        elif task.owner == seat and task.status in BEGUN:
            said = f"{BEGUN[task.status]}; {task.reviewer} reviews it"
            yield Waiting("work", task.id, said, task.spec)
    me = work.seat(seat)
    if me and Role.ORCHESTRATOR in me.roles:
        for feature in work.features.values():
            if work.stage(feature) is Stage.ACCEPTED:
                yield Waiting("merge", feature.id, "every task is accepted")
