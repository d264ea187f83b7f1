"""Who reviewed something: whoever accepted it, once all of it is accepted."""

from accord.core.work.review import lanes, of_branch, reviewers
from accord.core.work.state import Feature, Work
from tests.core.work.story import ANN, BOB, CY, assigned, folded, line
from tests.spec import proves


def accepted(task: str, by: str = ANN) -> list[dict[str, object]]:
    return [line("checkpoint", BOB, task, evidence="it works"), line("accept", by, task)]


def the_one(work: Work) -> Feature:
    return work.features["F"]


@proves("UNI-14")
def test_only_who_accepted_is_a_reviewer_and_only_when_nothing_is_open() -> None:
    open_task = folded(assigned("T1"), assigned("T2", reviewer=CY), *accepted("T1"))
    done = folded(assigned("T1"), assigned("T2", reviewer=CY), *accepted("T1"), *accepted("T2", CY))

    assert reviewers(open_task, the_one(open_task)) == of_branch(open_task, "feat") == ()
    assert reviewers(done, the_one(done)) == of_branch(done, "feat") == (ANN, CY)
    assert of_branch(done, "main") == of_branch(done, "") == ()


@proves("UNI-14", "UNI-21", "PACT-5-1")
def test_an_owner_who_says_accept_has_reviewed_nothing() -> None:
    own = folded(assigned("T1"), *accepted("T1", by=BOB))

    assert reviewers(own, the_one(own)) == ()
    assert [left for _, left in lanes(own)] == [("T1",)]


def test_what_ships_was_reviewed_and_comes_after_what_is_open() -> None:
    work = folded(
        assigned("T1"),
        *accepted("T1"),
        line("merge", ANN, feature="F"),
        assigned("T2", feature="G"),
    )

    assert reviewers(work, the_one(work)) == (ANN,)
    assert [(feature.id, left) for feature, left in lanes(work)] == [
        ("G", ("T2",)),
        ("F", ()),
    ]
