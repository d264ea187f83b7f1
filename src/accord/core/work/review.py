"""Who said that something is done: the reviewers of what was accepted, and nobody else."""

from collections.abc import Iterator

from accord.core.work.state import Feature, Work
from accord.core.work.words import Stage, Status

DONE = frozenset({Stage.ACCEPTED, Stage.SHIPPED})


def reviewers(work: Work, feature: Feature) -> tuple[str, ...]:
    """The seats that accepted the tasks of a feature; none while one of them is open (Rule 2)."""
    if work.stage(feature) not in DONE:
        return ()
    accepted = (task for task in work.tasks_of(feature) if task.status is Status.ACCEPTED)
    return tuple(dict.fromkeys(task.reviewer for task in accepted))


def accepted(work: Work, feature: Feature) -> dict[str, tuple[str, ...]]:
    """Those seats, each with the commits that it accepted; what comes after them it did not see."""
    done = [task for task in work.tasks_of(feature) if task.status is Status.ACCEPTED]
    return {
        seat: tuple(task.commit for task in done if task.reviewer == seat and task.commit)
        for seat in reviewers(work, feature)
    }


def lanes(work: Work) -> Iterator[tuple[Feature, tuple[str, ...]]]:
    """Each feature that has tasks, with those that nobody accepted; what is open comes first."""
    there = [each for each in work.features.values() if each.tasks]
    for feature in sorted(there, key=lambda each: each.shipped):
        yield feature, tuple(work.open_tasks(feature))
