"""The coverage rule: which approvals cover what of a commit."""

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
from accord.core.provenance.coverage.file_states import MAX_STATES, ChangedFile, blob_id
from accord.core.provenance.coverage.text_changes import DeleteText, ReplaceText, WriteText

ALICE, BOB = "human:alice", "human:bob"


def write(path: str, content: str, *by: str, id: str = "w") -> ApprovedRun:
    return ApprovedRun(id, by or (BOB,), (FileOperation(path, WriteText(content)),))


def edit(path: str, old: str, new: str, *by: str, id: str = "e") -> ApprovedRun:
    return ApprovedRun(id, by or (BOB,), (FileOperation(path, ReplaceText(old, new)),))


def new(path: str, content: str, mode: str = "100644") -> ChangedFile:
    return ChangedFile(path, after=blob_id(content.encode()), mode=mode)


def changed(path: str, before: str, after: str, mode: str = "100644") -> ChangedFile:
    return ChangedFile(
        path, blob_id(before.encode()), blob_id(after.encode()), mode, mode, content=before
    )


def commit(*files: ChangedFile, tree: str = "", parents: tuple[str, ...] = ()) -> CommitContent:
    return CommitContent(files, tree, parents)


def test_a_write_covers_its_content_and_no_other() -> None:
    covered = cover_commit([write("a", "x")], commit(new("a", "x")))
    other = cover_commit([write("a", "x")], commit(new("a", "y")))
    elsewhere = cover_commit([write("a", "x")], commit(new("b", "x")))

    assert (covered.covers, covered.approvers) == (WHOLE, (BOB,))
    assert covered.entries == (CoveredPaths(BOB, "w", ("a",)),)
    assert covered.entries_of("a") == covered.entries
    assert (other.covers, other.entries, other.approvers) == (NONE, (), ())
    assert elsewhere.covers == NONE


def test_edits_cover_what_they_make_of_the_parent_or_of_a_covered_content() -> None:
    runs = [edit("a", "1", "2", id="e1"), edit("a", "2", "3", id="e2")]

    both = cover_commit(runs, commit(changed("a", "x1", "x3")))
    first = cover_commit(runs, commit(changed("a", "x1", "x2")))
    unknown = changed("a", "x1", "x3")._replace(content=None)
    lied = changed("a", "x1", "x3")._replace(content="y1")
    after_write = cover_commit(
        [write("a", "1"), *runs], commit(unknown._replace(after=blob_id(b"3")))
    )

    assert [entry.proposal for entry in both.entries] == ["e1", "e2"]
    assert [entry.proposal for entry in first.entries] == ["e1"]
    assert cover_commit(runs, commit(unknown)).covers == NONE
    assert cover_commit(runs, commit(lied)).covers == NONE
    assert (after_write.covers, len(after_write.entries)) == (WHOLE, 3)


def test_what_is_covered_in_part_names_nobody() -> None:
    found = cover_commit([write("a", "x")], commit(new("a", "x"), new("b", "back door")))

    assert (found.covers, found.approvers) == (PART, ())
    assert found.entries == (CoveredPaths(BOB, "w", ("a",)),)


def test_two_who_approved_one_file_each_cover_it_but_none_is_named() -> None:
    runs = [write("a", "x", ALICE, id="wa"), write("b", "y", BOB, id="wb")]

    found = cover_commit(runs, commit(new("a", "x"), new("b", "y")))

    assert (found.covers, found.approvers) == (WHOLE, ())
    assert {entry.approver for entry in found.entries} == {ALICE, BOB}


def test_two_who_approved_one_edit_each_of_a_file_cover_it_together() -> None:
    runs = [edit("a", "1", "2", ALICE, id="e1"), edit("a", "2", "3", BOB, id="e2")]

    found = cover_commit(runs, commit(changed("a", "1", "3")))

    assert (found.covers, found.approvers) == (WHOLE, ())
    assert found.entries == (
        CoveredPaths(ALICE, "e1", ("a",), together=True),
        CoveredPaths(BOB, "e2", ("a",), together=True),
    )


def test_two_who_both_approved_everything_are_both_named() -> None:
    runs = [write("a", "x", ALICE, BOB, id="wa"), edit("a", "x", "y", ALICE, BOB)]

    assert cover_commit(runs, commit(new("a", "y"))).approvers == (ALICE, BOB)


@pytest.mark.parametrize(
    "file",
    [
        new("a", "x", "100755"),
        new("a", "x", "120000"),
        new("a", "x", ""),
        changed("a", "old", "x")._replace(mode="100755"),
        changed("a", "old", "x", "120000"),
    ],
)
def test_a_call_on_a_file_covers_no_link_and_no_change_of_mode(file: ChangedFile) -> None:
    assert cover_commit([write("a", "x")], commit(file)).covers == NONE


def test_an_executable_stays_one() -> None:
    assert cover_commit([write("a", "x")], commit(changed("a", "o", "x", "100755"))).covers == WHOLE


def test_a_deletion_is_covered_by_a_call_that_deletes() -> None:
    gone = changed("a", "x", "")._replace(after="", mode="")
    run = ApprovedRun("d", (BOB,), (FileOperation("a", DeleteText()),))

    assert cover_commit([run], commit(gone)).covers == WHOLE
    assert cover_commit([run], commit(gone._replace(old_mode="120000"))).covers == NONE
    assert cover_commit([write("a", "")], commit(gone)).covers == NONE


def test_a_move_covers_both_paths() -> None:
    run = ApprovedRun(
        "m",
        (BOB,),
        (
            FileOperation("b", ReplaceText("1", "2"), "a"),
            FileOperation("a", DeleteText()),
        ),
    )
    gone = changed("a", "1", "")._replace(after="", mode="")

    assert cover_commit([run], commit(gone, new("b", "2"))).covers == WHOLE
    assert cover_commit([run], commit(new("b", "2"))).covers == NONE


def test_line_endings_count_as_git_stores_them() -> None:
    stored = new("a", "1\n2\n")
    run = write("a", "1\r\n2\r\n")
    parent = changed("a", "1\n2\n", "1\n3\n")

    assert cover_commit([run], commit(stored)).covers == NONE
    assert cover_commit([run], commit(stored._replace(converts=True))).covers == WHOLE
    edited = cover_commit([edit("a", "2\r\n", "3\r\n")], commit(parent._replace(converts=True)))
    assert edited.covers == WHOLE


def test_a_commit_call_covers_the_tree_that_it_showed() -> None:
    run = ApprovedRun("c", (BOB,), tree="a" * 40)
    files = (new("a", "x"), new("l", "target", "120000"))

    assert cover_commit([run], commit(*files, tree="a" * 40)).approvers == (BOB,)
    assert cover_commit([run], commit(*files, tree="b" * 40)).covers == NONE
    assert cover_commit([run], commit(*files)).covers == NONE
    assert cover_commit([run], commit(tree="a" * 40)).approvers == ()


def test_a_merge_gate_covers_the_head_that_it_showed_but_no_hunk_resolved_by_hand() -> None:
    run = ApprovedRun("m", (BOB,), head="a" * 40)
    clean, resolved = new("a", "x")._replace(by_hand=False), new("b", "y")
    parents = ("f" * 40, "a" * 40)

    assert cover_commit([run], commit(clean, parents=parents)).approvers == (BOB,)
    assert cover_commit([run], commit(clean, resolved, parents=parents)).covers == PART
    assert cover_commit([run], commit(clean, parents=("f" * 40, "b" * 40))).covers == NONE
    assert cover_commit([run], commit(clean, parents=(*parents, "c" * 40))).covers == NONE


def test_many_runs_on_one_file_are_followed_within_a_bound() -> None:
    runs = [edit("a", f"<{n}>", f"<{n + 1}>", id=f"e{n}") for n in range(3 * MAX_STATES)]

    found = cover_commit(runs, commit(changed("a", "<0>", f"<{3 * MAX_STATES}>")))

    assert (found.covers, len(found.entries)) == (WHOLE, len(runs))


def test_ids_are_git_s_own_in_both_formats() -> None:
    assert blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert len(blob_id(b"hello\n", "0" * 64)) == 64


TEXTS = st.text("ab\n", max_size=6)
RUNS = st.lists(
    st.tuples(
        st.sampled_from(["w", "e"]),
        st.sampled_from("pq"),
        TEXTS,
        TEXTS,
        st.sets(st.sampled_from([ALICE, BOB]), min_size=1),
    ),
    max_size=5,
)


@given(RUNS, st.dictionaries(st.sampled_from("pq"), st.tuples(TEXTS, TEXTS), min_size=1))
def test_who_is_named_could_have_made_the_commit_from_their_own_approvals(
    calls: list[tuple[str, str, str, str, set[str]]], files: dict[str, tuple[str, str]]
) -> None:
    runs = [
        write(path, two, *sorted(by), id=str(n))
        if kind == "w"
        else edit(path, one, two, *sorted(by), id=str(n))
        for n, (kind, path, one, two, by) in enumerate(calls)
    ]
    content = commit(*(changed(path, before, after) for path, (before, after) in files.items()))

    found = cover_commit(runs, content)

    for name in found.approvers:
        own = [run for run in runs if name in run.approvers]
        for path, (before, after) in files.items():
            assert after in reachable(before, path, own)


def reachable(before: str, path: str, runs: list[ApprovedRun]) -> set[str | None]:
    """By brute force: everything that some of the runs, in their order, make of a content."""
    contents: set[str | None] = {before}
    for run in runs:
        for operation in run.operations:
            for content in [*contents] if operation.path == path else []:
                try:
                    contents.add(operation.change.apply(content))
                except ValueError:
                    continue
    return contents
