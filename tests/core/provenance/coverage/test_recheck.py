"""Coverage on record, checked against a commit that may be another one by now."""

from typing import Any

import pytest

from accord.core.provenance.coverage.coverage_extent import NONE, PART, WHOLE
from accord.core.provenance.coverage.recheck import CommittedFile, recheck_coverage

ALICE, BOB = "human:alice", "human:bob"
A, B, C, D = "a" * 40, "b" * 40, "c" * 40, "d" * 40
MODE = "100644"


def file(before: str, after: str, path: str = "p", **more: Any) -> CommittedFile:
    return CommittedFile(path, before, after, MODE if before else "", MODE, **more)


def decision(
    before: str, after: str, *by: str, path: str = "p", together: bool = False, id: str = "t"
) -> dict[str, Any]:
    change = {"path": path, "before": before, "after": after, "old_mode": MODE, "mode": MODE}
    if not before:
        del change["before"], change["old_mode"]
    entries = [
        {"approver": name, "proposal": id, "paths": [path], "together": together} for name in by
    ]
    return {"changes": [change], "coverage": entries}


def test_the_same_change_is_still_covered() -> None:
    found = recheck_coverage([decision("", A, BOB)], [file("", A)])

    assert (found.covers, found.approvers) == (WHOLE, (BOB,))


@pytest.mark.parametrize(
    "actual",
    [
        file("", B),
        file(B, A),
        file("", A, "q"),
        file("", A)._replace(mode="100755"),
    ],
)
def test_recheck_does_not_cover_another_change(actual: CommittedFile) -> None:
    assert recheck_coverage([decision("", A, BOB)], [actual]).covers == NONE


def test_a_squash_is_covered_if_every_step_is() -> None:
    first, second = decision(A, B, BOB), decision(B, C, BOB)

    assert recheck_coverage([second, first], [file(A, C)]).approvers == (BOB,)
    assert recheck_coverage([first], [file(A, C)]).covers == NONE
    assert recheck_coverage([first, decision(C, D, BOB)], [file(A, D)]).covers == NONE
    assert recheck_coverage([first, second, decision(B, A, BOB)], [file(A, C)]).covers == WHOLE


def test_steps_of_two_people_cover_it_together() -> None:
    found = recheck_coverage([decision(A, B, ALICE), decision(B, C, BOB, id="u")], [file(A, C)])

    assert (found.covers, found.approvers) == (WHOLE, ())
    assert [(e.approver, e.proposal, e.together) for e in found.entries] == [
        (ALICE, "t", True),
        (BOB, "u", True),
    ]
    kept = recheck_coverage([decision(A, B, ALICE, BOB, together=True)], [file(A, B)])
    assert (kept.covers, kept.approvers, len(kept.entries)) == (WHOLE, (), 2)


def test_one_more_file_makes_it_a_part() -> None:
    found = recheck_coverage([decision("", A, BOB)], [file("", A), file("", B, "q")])

    assert (found.covers, found.approvers) == (PART, ())


def test_a_merge_gate_covers_no_path_that_was_resolved_by_hand() -> None:
    merged = decision(A, B, BOB, id="m") | {"merges": [{"id": "m"}, "x"]}

    assert recheck_coverage([merged], [file(A, B)]).covers == WHOLE
    assert recheck_coverage([merged], [file(A, B, by_hand=True)]).covers == NONE
    assert recheck_coverage([decision(A, B, BOB)], [file(A, B, by_hand=True)]).covers == WHOLE


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"coverage": "all", "changes": 1},
        {"coverage": [1, {"approver": 1, "proposal": "t", "paths": ["p"]}], "changes": [{}]},
        decision("", A, BOB) | {"changes": []},
        decision("", A, BOB) | {"changes": [{"path": "p", "after": 1}]},
        decision("", A, BOB) | {"coverage": [{"approver": BOB, "proposal": "t", "paths": 3}]},
        decision("", A, BOB) | {"coverage": [{"approver": BOB, "proposal": "t", "paths": [3]}]},
    ],
)
def test_a_record_that_does_not_say_covers_nothing(broken: dict[str, Any]) -> None:
    assert recheck_coverage([broken], [file("", A)]).covers == NONE
