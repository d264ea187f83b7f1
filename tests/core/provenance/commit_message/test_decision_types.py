"""Types of commits and of decisions."""

import pytest

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.parser import parse_message
from accord.core.provenance.commit_message.trailers import FULL, trailers_from_context
from tests.spec import proves


@proves("GIT-TYPE-1", "GIT-TYPE-2", "GIT-TYPE-3", "GIT-TYPE-4")
def test_there_are_nine_types_of_commits() -> None:
    assert " ".join(trailer_values.COMMIT_TYPES) == (
        "feat fix refactor explore revert docs test chore style"
    )
    assert all(trailer_values.COMMIT_TYPES.values())


@proves("PVP-18.2-2", "GIT-DECTYPE-1", "OPEN-62")
def test_decision_types_of_both_vocabularies_are_known() -> None:
    assert len(trailer_values.RECORD_DECISION_TYPES) == 10
    assert len(trailer_values.TRAILER_DECISION_TYPES) == 6
    assert len(trailer_values.DECISION_TYPES) == 14


@proves("OPEN-62", "OPEN-61")
@pytest.mark.parametrize("word", trailer_values.DECISION_TYPES)
def test_a_decision_type_goes_through_trailers_without_loss(word: str) -> None:
    trailers = trailers_from_context({"decision_type": word}, style=FULL)
    message = parse_message("feat: x\n\n" + "\n".join(map(str, trailers)) + "\n")

    assert message.value("PVP-Decision-Type") in trailer_values.TRAILER_DECISION_TYPES
    assert message.decision_type is not None
    assert trailer_values.to_record_type(message.decision_type) == trailer_values.to_record_type(
        word
    )
    assert trailer_values.to_record_type(word) in trailer_values.RECORD_DECISION_TYPES
    if word in trailer_values.TRAILER_DECISION_TYPES:
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
    assert trailer_values.combine_trailer_types(decision_type, pvp_type) == told


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
    assert trailer_values.default_decision_type(commit_type, scope) == decided
