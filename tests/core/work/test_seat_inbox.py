"""The next actor hears what waits for it."""

from accord.core.work import verbs
from accord.core.work.seat_inbox import inbox_of
from tests.core.work.story import ANN, BOB, CY, Team


def told(team: Team, seat: str) -> list[tuple[str, str]]:
    return [(each.do, each.about) for each in inbox_of(team.work, seat)]


def test_what_waits_moves_from_owner_to_reviewer_to_orchestrator() -> None:
    team = Team()
    team.assign("T1", reviewer=CY)

    assert (told(team, BOB), told(team, CY), told(team, ANN)) == ([("work", "T1")], [], [])
    team.by(BOB, verbs.join, BOB, "worker")
    assert told(team, BOB) == [("work", "T1")]
    team.by(BOB, verbs.checkpoint, "T1", "shown")
    assert (told(team, BOB), told(team, CY)) == ([], [("review", "T1")])
    team.by(CY, verbs.changes, "T1", "more")
    assert (told(team, BOB), told(team, CY)) == ([("change", "T1")], [])
    team.by(BOB, verbs.join, BOB, "worker")
    assert [each.why for each in inbox_of(team.work, BOB)] == ["cy requests: more"]
    team.by(BOB, verbs.checkpoint, "T1", "shown again")
    team.by(CY, verbs.accept, "T1")
    assert (told(team, BOB), told(team, CY), told(team, ANN)) == ([], [], [("merge", "F")])
    team.by(ANN, verbs.merge, "F")
    assert told(team, ANN) == []
    assert told(team, "eve") == []
