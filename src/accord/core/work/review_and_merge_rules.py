"""Pact's two rules: only another seat than the owner accepts, and only accepted work ships."""

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.state import Feature, Task, Work
from accord.core.work.vocabulary import TaskStatus, is_slug


def check_separation_of_duties(owner: str, reviewer: str) -> None:
    """Refuse a task whose owner would review it."""
    if owner == reviewer:
        detail = f"Owner and reviewer must differ (separation of duties); both are {owner}"
        raise Refused(Reason.FORBIDDEN, detail)


def task_to_review(work: Work, seat: str, id: str, verb: str) -> Task:
    """Rule 1: the task; refused unless this seat may review it now."""
    task = find_task(work, id)
    if task.reviewer != seat or task.owner == seat:
        detail = f"Only the reviewer ({task.reviewer}) may {verb} {id}"
        raise Refused(Reason.FORBIDDEN, detail)
    if not is_slug(task.owner):
        detail = (
            f"{task.owner!r}, the owner of {id}, is not a valid seat name, "
            "so the task cannot be reviewed"
        )
        raise Refused(Reason.FORBIDDEN, detail)
    if task.status is not TaskStatus.AWAITING_REVIEW:
        detail = f"Task {id} is {task.status}; it can only be reviewed while awaiting_review"
        raise Refused(Reason.WRONG_STATE, detail)
    return task


def feature_to_ship(work: Work, id: str) -> Feature:
    """The feature; refused unless Rule 2 allows it to ship."""
    if not id:
        raise Refused(Reason.MALFORMED, "merge needs a feature id")
    feature = work.features.get(id)
    if not feature or not feature.tasks:
        raise Refused(Reason.NOT_FOUND, f"There is no feature {id} (or it has no tasks)")
    if feature.shipped:
        raise Refused(Reason.WRONG_STATE, f"Feature {id} is already shipped")
    if open_tasks := work.open_tasks(feature):
        detail = f"Cannot merge {id}: these tasks are not accepted: {', '.join(open_tasks)}"
        raise Refused(Reason.WRONG_STATE, detail, {"tasks": open_tasks})
    return feature


def find_task(work: Work, id: str) -> Task:
    """The task with that id; refused if there is none."""
    if not (task := work.tasks.get(id)):
        raise Refused(Reason.NOT_FOUND, f"There is no task {id}")
    return task
