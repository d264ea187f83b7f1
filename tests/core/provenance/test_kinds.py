"""Types of commits and of decisions."""

import pytest

from accord.core.provenance import kinds
from accord.core.provenance.build import trailers_of
from accord.core.provenance.message import parse
from tests.spec import proves


@proves("GIT-TYPE-1", "GIT-TYPE-2", "GIT-TYPE-3", "GIT-TYPE-4")
def test_there_are_nine_types_of_commits() -> None:
    assert " ".join(kinds.COMMIT_TYPES) == (
        "feat fix refactor explore revert docs test chore style"
    )
    assert all(kinds.COMMIT_TYPES.values())


@proves("PVP-18.2-2", "GIT-DECTYPE-1", "OPEN-62")
def test_either_vocabulary_is_known() -> None:
    assert len(kinds.RECORDED) == 10
    assert len(kinds.WRITTEN) == 6
    assert len(kinds.DECISION_TYPES) == 14


@proves("OPEN-62", "OPEN-61")
@pytest.mark.parametrize("word", kinds.DECISION_TYPES)
def test_a_decision_type_goes_through_trailers_without_loss(word: str) -> None:
    trailers = trailers_of({"decision_type": word})
    message = parse("feat: x\n\n" + "\n".join(map(str, trailers)) + "\n")

    assert message.value("PVP-Decision-Type") in kinds.WRITTEN
    assert message.decision_type is not None
    assert kinds.recorded(message.decision_type) == kinds.recorded(word)
    assert kinds.recorded(word) in kinds.RECORDED
    if word in kinds.WRITTEN:
        assert message.decision_type == word


@proves("OPEN-62")
@pytest.mark.parametrize(
    ("decision_type", "pvp_type", "told"),
    [
        (None, None, None),
        (None, "bugfix", "bugfix"),
        ("correction", None, "correction"),
        ("implementation", "refactor", "refactor"),
        ("correction", "bugfix", "correction"),
        ("reversion", "refactor", "reversion"),
    ],
)
def test_two_trailers_are_read_together(
    decision_type: str | None, pvp_type: str | None, told: str | None
) -> None:
    assert kinds.told(decision_type, pvp_type) == told


@proves("OPEN-63")
@pytest.mark.parametrize(
    ("commit_type", "scope", "decided"),
    [
        ("feat", None, "implementation"),
        ("fix", None, "bugfix"),
        ("refactor", None, "refactor"),
        ("style", None, "refactor"),
        ("explore", None, "exploration"),
        ("revert", None, "revert"),
        ("docs", None, "documentation"),
        ("test", None, "test"),
        ("chore", None, "configuration"),
        ("chore", "Deps", "dependency"),
        ("perf", None, "optimization"),
        ("wip", None, None),
    ],
)
def test_a_commit_type_has_a_usual_decision(
    commit_type: str, scope: str | None, decided: str | None
) -> None:
    assert kinds.usual(commit_type, scope) == decided
