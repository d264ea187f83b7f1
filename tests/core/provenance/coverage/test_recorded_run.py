"""Runs that our executor recorded in a work tree of its own."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.provenance.coverage.coverage_extent import NONE, PART, WHOLE, CoveredPaths
from accord.core.provenance.coverage.coverage_rule import (
    ApprovedRun,
    CommitContent,
    FileOperation,
    cover_commit,
)
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.coverage.recorded_run import (
    MAX_RECORDED_CHANGES,
    RecordedChange,
    RecordedRun,
    Version,
    parse_recorded_run,
)
from accord.core.provenance.coverage.text_changes import ReplaceText, WriteText

ALICE, BOB = "human:alice", "human:bob"
BASE, FIRST, SECOND = ("a" * 40, "b" * 40, "c" * 40)
ABSENT = ("", "")


def blob(content: str, mode: str = "100644") -> Version:
    return blob_id(content.encode()), mode


def ran(
    id: str, before: str, after: str, *changes: RecordedChange, by: str = BOB, base: str = BASE
) -> ApprovedRun:
    return ApprovedRun(id, (by,), recorded=RecordedRun(base, before, after, changes))


def committed(path: str, before: Version, after: Version) -> ChangedFile:
    return ChangedFile(path, before[0], after[0], before[1], after[1])


ONE, TWO, THREE = blob("1"), blob("2"), blob("3")
TO_TWO = ran("r1", BASE, FIRST, RecordedChange("p", ONE, TWO))
TO_THREE = ran("r2", FIRST, SECOND, RecordedChange("p", TWO, THREE))


def test_a_run_covers_what_it_made_of_the_parent() -> None:
    covered = cover_commit([TO_TWO], CommitContent((committed("p", ONE, TWO),)))
    other = cover_commit([TO_TWO], CommitContent((committed("p", ONE, THREE),)))
    elsewhere = cover_commit([TO_TWO], CommitContent((committed("q", ONE, TWO),)))
    rewritten = cover_commit([TO_TWO], CommitContent((committed("p", THREE, TWO),)))

    assert (covered.covers, covered.approvers) == (WHOLE, (BOB,))
    assert covered.entries == (CoveredPaths(BOB, "r1", ("p",)),)
    assert (other.covers, elsewhere.covers, rewritten.covers) == (NONE, NONE, NONE)


@pytest.mark.parametrize("after", [blob("2", "100755"), blob("target", "120000"), ABSENT])
def test_modes_links_and_deletions_are_as_recorded(after: Version) -> None:
    run = ran("r", BASE, FIRST, RecordedChange("p", ONE, after))

    assert cover_commit([run], CommitContent((committed("p", ONE, after),))).covers == WHOLE
    assert cover_commit([run], CommitContent((committed("p", ONE, TWO),))).covers == NONE


def test_runs_one_after_the_other_are_followed() -> None:
    both = cover_commit([TO_TWO, TO_THREE], CommitContent((committed("p", ONE, THREE),)))

    assert both.approvers == (BOB,)
    assert {each.proposal for each in both.entries} == {"r1", "r2"}


def test_a_run_that_found_what_nobody_approved_covers_nothing() -> None:
    """Neither a change by hand before it, nor a run between them that is not approved."""
    by_hand = ran("r2", SECOND, "d" * 40, RecordedChange("q", ABSENT, THREE))
    files = (committed("p", ONE, TWO), committed("q", ABSENT, THREE))

    found = cover_commit([TO_TWO, by_hand], CommitContent(files))
    assert (found.covers, found.entries) == (PART, (CoveredPaths(BOB, "r1", ("p",)),))
    alone = cover_commit([TO_THREE], CommitContent((committed("p", TWO, THREE),)))
    assert alone.covers == NONE


def test_a_run_on_what_another_person_approved_is_covered_by_both_together() -> None:
    """Bob's run may do what it does because of the file that Alice let in."""
    poison = ran("r1", BASE, FIRST, RecordedChange("conftest", ABSENT, ONE), by=ALICE)
    tests = ran("r2", FIRST, SECOND, RecordedChange("p", ABSENT, TWO))

    found = cover_commit([poison, tests], CommitContent((committed("p", ABSENT, TWO),)))

    assert (found.covers, found.approvers) == (WHOLE, ())
    assert {(each.approver, each.together) for each in found.entries} == {
        (ALICE, True),
        (BOB, True),
    }


def test_the_commit_in_between_begins_anew() -> None:
    later = ran("r3", SECOND, "d" * 40, RecordedChange("q", ABSENT, ONE), base=SECOND)

    found = cover_commit([TO_TWO, later], CommitContent((committed("q", ABSENT, ONE),)))

    assert found.entries == (CoveredPaths(BOB, "r3", ("q",)),)


def test_a_run_goes_on_from_an_approved_write_or_edit() -> None:
    written = ApprovedRun(
        "w",
        (BOB,),
        (FileOperation("p", WriteText("2")),),
        recorded=RecordedRun(BASE, BASE, FIRST, ()),
    )
    made = cover_commit([written, TO_THREE], CommitContent((committed("p", ABSENT, THREE),)))
    over = cover_commit([written, TO_THREE], CommitContent((committed("p", ONE, THREE),)))

    assert made.approvers == over.approvers == (BOB,)
    edit = ApprovedRun("e", (BOB,), (FileOperation("p", ReplaceText("3", "4")),))
    after_run = cover_commit(
        [TO_TWO, TO_THREE, edit], CommitContent((committed("p", ONE, blob("4")),))
    )
    assert after_run.covers == NONE  # the content that the run left is not known
    link = committed("p", blob("1", "120000"), THREE)
    assert cover_commit([written, TO_THREE], CommitContent((link,))).covers == NONE


Step = tuple[str, str]  # who made a change, and of which file
BY_HAND, UNAPPROVED = "by hand", "not approved"


@given(
    st.lists(st.tuples(st.sampled_from([ALICE, BOB, BY_HAND, UNAPPROVED]), st.sampled_from("pq"))),
    st.sets(st.sampled_from("pq")),
)
def test_whoever_is_named_approved_everything_up_to_the_last_change(
    steps: list[Step], staged: set[str]
) -> None:
    """Every step leaves another tree; those that Alice or Bob approved are recorded."""
    old = {"p": "old", "q": "old"}
    tree, runs = old, []
    for number, (who, path) in enumerate(steps):
        before, tree = tree, {**tree, path: f"{who} {number}"}
        change = RecordedChange(path, blob(before[path]), blob(tree[path]))
        base, found_tree, left_tree = (
            sha256(repr(each).encode()).hexdigest() for each in (old, before, tree)
        )
        if who in (ALICE, BOB):
            runs.append(ran(f"r{number}", found_tree, left_tree, change, by=who, base=base))
    changed = [path for path in sorted(staged) if tree[path] != "old"]

    files = tuple(committed(path, blob("old"), blob(tree[path])) for path in changed)
    found = cover_commit(runs, CommitContent(files))

    last = max((number for number, (_, path) in enumerate(steps) if path in staged), default=-1)
    makers = {who for who, _ in steps[: last + 1]}
    is_approved = bool(makers) and makers <= {ALICE, BOB}
    assert found.approvers == (tuple(makers) if is_approved and len(makers) == 1 else ())
    assert (found.covers == WHOLE) == is_approved


CHANGE = {"path": "p", "before": ONE[0], "old_mode": "100644", "after": TWO[0], "mode": "100644"}
RECORD: dict[str, Any] = {"base": BASE, "before": BASE, "after": FIRST, "changes": [CHANGE]}


def test_a_record_is_read_from_the_metadata_of_a_result() -> None:
    assert parse_recorded_run({"work_tree": RECORD}) == TO_TWO.recorded


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"work_tree": "x"},
        {"work_tree": {**RECORD, "before": "HEAD"}},
        {"work_tree": {**RECORD, "after": 1}},
        {"work_tree": {**RECORD, "changes": {}}},
        {"work_tree": {**RECORD, "changes": ["p"]}},
        {"work_tree": {**RECORD, "changes": [{**CHANGE, "mode": 1}]}},
        {"work_tree": {**RECORD, "changes": [CHANGE] * (MAX_RECORDED_CHANGES + 1)}},
    ],
)
def test_recorded_run_refuses_other_values(metadata: dict[str, Any] | None) -> None:
    assert parse_recorded_run(metadata) is None
