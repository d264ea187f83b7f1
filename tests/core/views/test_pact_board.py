"""What programs read of a pact."""

from accord.core.views.pact_board import work_view
from accord.core.work import verbs
from tests.core.work.story import BOB, Team


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
