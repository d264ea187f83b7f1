"""What programs read of a pact."""

from accord.core.views.pact_board import (
    MAX_BOARD_TASKS,
    FeatureView,
    WorkView,
    shown_tasks,
    work_view,
)
from accord.core.work import verbs
from accord.core.work.state import Task
from accord.core.work.vocabulary import FeatureStage, TaskStatus
from tests.core.work.story import ANN, BOB, Team


def test_a_view_has_the_state_of_each_feature_and_task() -> None:
    team = Team()
    team.assign("T1")
    team.by(BOB, verbs.checkpoint, "T1", "shown")

    seen = work_view(team.work)

    assert (seen.project, seen.protocol_version, seen.base_branch) == ("demo", 1, "main")
    assert [seat.id for seat in seen.seats] == ["ann", "bob", "cy"]
    (feature,) = seen.features
    assert (feature.id, feature.status, [task.status for task in feature.tasks]) == (
        *("F", "awaiting_review"),
        ["awaiting_review"],
    )


def test_board_shows_unfinished_tasks_first_and_only_so_many() -> None:
    tasks = tuple(
        Task(f"T{n}", "F", BOB, ANN, "", status=TaskStatus.ACCEPTED if n % 2 else TaskStatus.TODO)
        for n in range(MAX_BOARD_TASKS + 100)
    )
    feature = FeatureView("F", "feat", FeatureStage.IN_PROGRESS, tasks)

    shown = shown_tasks(WorkView("shop", 1, "main", (), (feature,)))

    assert len(shown) == MAX_BOARD_TASKS
    assert {task.id for task in tasks if task.status is TaskStatus.TODO} <= shown
    assert tasks[-1].id in shown
    assert tasks[1].id not in shown
