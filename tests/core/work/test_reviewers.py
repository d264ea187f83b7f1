"""Who reviewed something: whoever accepted it, once all of it is accepted."""

from typing import Any

import pytest

from accord.core.work import verbs
from accord.core.work.state import Work
from accord.core.work.verbs import ActingSeat, Assignment
from tests.core.work.story import ANN, BOB, CY, Team, assigned, folded, line
from tests.spec import proves


def accepted(task: str, by: str = ANN) -> list[dict[str, object]]:
    return [line("checkpoint", BOB, task, evidence="it works"), line("accept", by, task)]


def covered(work: Work) -> dict[str, tuple[str, ...]]:
    return work.commits_by_reviewer(work.features["F"])


@proves("UNI-14")
def test_only_who_accepted_is_a_reviewer_and_only_when_nothing_is_open() -> None:
    open_task = folded(assigned("T1"), assigned("T2", reviewer=CY), *accepted("T1"))
    done = folded(assigned("T1"), assigned("T2", reviewer=CY), *accepted("T1"), *accepted("T2", CY))

    assert covered(open_task) == {}
    assert covered(done) == {ANN: (), CY: ()}


ONE, TWO, THREE, DIGEST = "1" * 40, "2" * 40, "3" * 64, "d" * 64


def shown(task: str, commit: object, at: int = 1, **rest: Any) -> dict[str, object]:
    return line("checkpoint", BOB, task, evidence="it works", commit=commit, at=at, **rest)


@proves("UNI-14")
def test_a_review_covers_the_commit_that_was_shown_last() -> None:
    work = folded(
        assigned("T1"),
        assigned("T2", reviewer=CY),
        shown("T1", ONE),
        line("changes_requested", ANN, "T1", reason="more", at=2),
        line("join", BOB, roles=["worker"], at=3),
        shown("T1", TWO, at=4),
        line("accept", ANN, "T1", at=5),
        shown("T2", TWO, at=6, files=DIGEST),
        line("accept", CY, "T2", commit=THREE, at=7),
    )

    assert covered(work) == {ANN: (TWO,), CY: (THREE,)}
    assert (work.tasks["T1"].files, work.tasks["T2"].files) == ("", DIGEST)


@proves("UNI-14")
@pytest.mark.parametrize("odd", ["", "HEAD", "--all", ONE[1:], ONE + "1", ONE.replace("1", "G"), 7])
def test_what_is_no_commit_covers_nothing(odd: object) -> None:
    work = folded(
        assigned("T1"), shown("T1", odd, files=DIGEST), line("accept", ANN, "T1", commit=odd, at=2)
    )

    assert covered(work) == {ANN: ()}
    assert work.tasks["T1"].files == ""


@pytest.mark.parametrize("odd", ["", DIGEST[1:], DIGEST + "d", "G" * 64, True, None])
def test_what_is_no_digest_says_nothing_of_files(odd: object) -> None:
    assert folded(assigned("T1"), shown("T1", ONE, files=odd)).tasks["T1"].files == ""


@pytest.mark.parametrize(("files", "more"), [("", {}), (DIGEST, {"files": DIGEST})])
def test_checkpoint_and_accept_say_which_commit(files: str, more: dict[str, str]) -> None:
    team = Team()
    said = Assignment("T1", "F", "feat", BOB, ANN)
    team.by(ANN, verbs.assign, said)
    drafts = verbs.checkpoint(team.work, ActingSeat(BOB), "T1", "works", ONE, files)
    team.record(BOB, drafts)

    assert drafts[-1].payload == {"evidence": "works", "commit": ONE, **more}
    (accept,) = team.by(ANN, verbs.accept, "T1", TWO)
    assert accept.payload == {"commit": TWO}
    assert covered(team.work) == {ANN: (TWO,)}


@proves("UNI-14", "UNI-21", "PACT-5-1")
def test_an_owner_who_says_accept_has_reviewed_nothing() -> None:
    own = folded(assigned("T1"), *accepted("T1", by=BOB))

    assert covered(own) == {}
    assert own.open_tasks(own.features["F"]) == ["T1"]


def test_what_ships_was_reviewed() -> None:
    work = folded(assigned("T1"), *accepted("T1"), line("merge", ANN, feature="F"))

    assert work.features["F"].shipped
    assert covered(work) == {ANN: ()}
