"""Random histories: nobody is named for what they did not approve, and who approved all of it is.

The model keeps, for each path, who made the difference to the last commit. That decides who must be
named. Who may be named is decided by trying everything that a person's calls can make of a content,
in any order.
"""

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.provenance.coverage.coverage_extent import NONE, WHOLE, Coverage
from accord.core.provenance.coverage.coverage_rule import (
    ApprovedRun,
    CommitContent,
    FileOperation,
    cover_commit,
)
from accord.core.provenance.coverage.file_states import ChangedFile, blob_id
from accord.core.provenance.coverage.recheck import CommittedFile, recheck_coverage
from accord.core.provenance.coverage.text_changes import ReplaceText, WriteText
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
EXAMPLES = settings(max_examples=5000 if LONG else 400, deadline=None, derandomize=not LONG)
PATHS, PEOPLE, BY_HAND = ("a", "b"), ("human:bob", "human:dave"), "by hand"
MODE = "100644"
Files = dict[str, str]


class Step(NamedTuple):
    """What is done to which path, and who approves it if it is a call."""

    kind: str
    path: str
    by: str


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("write", "edit", "edit", "hand", "failed", "commit", "commit one")),
        st.sampled_from(PATHS),
        st.sampled_from(PEOPLE),
    ),
    min_size=2,
    max_size=12,
)


class Calls:
    """What one person approved and what ran."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, str]] = []
        self.edits: list[tuple[str, str, str]] = []

    def explain(self, path: str, before: str | None, after: str | None) -> bool:
        """Whether these calls alone, in some order, lead from one content to the other."""
        reached = {before, *(text for name, text in self.writes if name == path)}
        for _ in self.edits:
            reached |= {
                content.replace(old, new)
                for name, old, new in self.edits
                for content in reached
                if name == path and content is not None and content.count(old) == 1
            }
        return after in reached


class Made(NamedTuple):
    """A commit of the model, with what the rule says of it and who must be named."""

    before: Files
    after: Files
    coverage: Coverage
    makers: dict[str, frozenset[str]]

    @property
    def changed(self) -> list[str]:
        return changed_paths(self.before, self.after)

    @property
    def sole_maker(self) -> str:
        """The only person whose calls made all of it; empty if there is none."""
        makers = frozenset[str]().union(*(self.makers[path] for path in self.changed))
        return next(iter(makers)) if len(makers) == 1 and BY_HAND not in makers else ""

    def record(self) -> dict[str, Any]:
        """What the record of the commit has for a check of its rewrites."""
        changes = (committed(path, self.before, self.after) for path in self.changed)
        return {
            "changes": [change._asdict() for change in changes],
            "coverage": [
                {**entry._asdict(), "paths": list(entry.paths)} for entry in self.coverage.entries
            ],
        }


class World:
    """Files, those that are committed, and the calls that were approved."""

    def __init__(self) -> None:
        self.files: Files = {"a": "a0\n"}
        self.head = dict(self.files)
        self.runs: list[ApprovedRun] = []
        self.calls = {name: Calls() for name in PEOPLE}
        self.makers: dict[str, frozenset[str]] = {}
        self.commits: list[Made] = []

    def play(self, steps: Iterable[Step]) -> None:
        for number, step in enumerate(steps, 1):
            self.do(step, number)
        self.commit(PATHS)

    def do(self, step: Step, number: int) -> None:
        path, by = step.path, step.by
        old = self.files.get(path, "")
        match step.kind:
            case "write":
                text = f"{path}{number}\n"
                self.calls[by].writes.append((path, text))
                self.run(path, by, WriteText(text), number)
                self.change(path, text, frozenset({by}))
            case "edit" if old:
                word, text = old.splitlines()[0], f"{path}{number}"
                self.calls[by].edits.append((path, word, text))
                self.run(path, by, ReplaceText(word, text), number)
                self.change(path, old.replace(word, text), self.made(path) | {by})
            case "hand":
                self.change(path, f"{old}back door {number}\n", self.made(path) | {BY_HAND})
            case "failed":  # the call says what was written, but it is not said to have succeeded
                self.change(path, f"{path}{number}\n", frozenset({BY_HAND}))
            case "commit":
                self.commit(PATHS)
            case "commit one":
                self.commit((path,))
            case _:
                pass

    def made(self, path: str) -> frozenset[str]:
        return self.makers.get(path, frozenset())

    def change(self, path: str, text: str, makers: frozenset[str]) -> None:
        self.files[path], self.makers[path] = text, makers

    def run(self, path: str, by: str, change: WriteText | ReplaceText, number: int) -> None:
        self.runs.append(ApprovedRun(f"t{number}", (by,), (FileOperation(path, change),)))

    def commit(self, paths: Iterable[str]) -> None:
        after = {**self.head, **{path: self.files[path] for path in paths if path in self.files}}
        changed = changed_paths(self.head, after)
        files = tuple(
            ChangedFile(
                path,
                blob(self.head, path),
                blob(after, path),
                MODE if path in self.head else "",
                MODE,
                self.head.get(path),
            )
            for path in changed
        )
        coverage = cover_commit(self.runs, CommitContent(files))
        makers = {path: self.made(path) for path in changed}
        self.commits.append(Made(self.head, after, coverage, makers))
        self.head = after
        for path in paths:
            self.makers.pop(path, None)

    def check_named(self, coverage: Coverage, before: Files, after: Files) -> None:
        """Everyone who is named approved all of it, and everyone listed had a part in it."""
        changed = changed_paths(before, after)
        for name in coverage.approvers:
            for path in changed:
                assert self.calls[name].explain(path, before.get(path), after.get(path)), name
        assert changed or not coverage.approvers
        for entry in coverage.entries:
            assert entry.paths
            assert set(entry.paths) <= set(changed)
            assert {
                path
                for run in self.runs
                if run.proposal == entry.proposal
                for path in (each.path for each in run.operations)
            } >= {*entry.paths}


def changed_paths(before: Files, after: Files) -> list[str]:
    return [path for path in PATHS if before.get(path) != after.get(path)]


def blob(files: Files, path: str) -> str:
    return blob_id(files[path].encode()) if path in files else ""


def committed(path: str, before: Files, after: Files) -> CommittedFile:
    old, new = (MODE if path in files else "" for files in (before, after))
    return CommittedFile(path, blob(before, path), blob(after, path), old, new)


def recheck(commits: Iterable[Made], before: Files, after: Files) -> Coverage:
    files = [committed(path, before, after) for path in changed_paths(before, after)]
    return recheck_coverage([made.record() for made in commits], files)


def played(steps: Iterable[Step]) -> World:
    world = World()
    world.play(steps)
    return world


@proves("GIT-MAP-3", "UNI-14")
@EXAMPLES
@given(STEPS)
def test_of_each_commit_exactly_those_are_named_who_approved_all_of_it(steps: list[Step]) -> None:
    world = played(steps)
    for made in world.commits:
        world.check_named(made.coverage, made.before, made.after)
        if not made.changed:
            assert made.coverage.covers == NONE
        elif made.sole_maker:
            assert made.sole_maker in made.coverage.approvers
        if made.changed and not any(BY_HAND in makers for makers in made.makers.values()):
            assert made.coverage.covers == WHOLE


@proves("GIT-MAP-3", "UNI-14")
@EXAMPLES
@given(STEPS, st.data())
def test_of_a_rewritten_commit_those_are_named_whose_approvals_still_cover_it(
    steps: list[Step], data: st.DataObject
) -> None:
    """The same one again, a squash, a pick without what came before it, and its content changed."""
    world = played(steps)
    at = data.draw(st.integers(0, len(world.commits) - 1))
    made, squashed = world.commits[at], world.commits[at:]
    again = recheck([made], made.before, made.after)
    squash = recheck(squashed, made.before, squashed[-1].after)
    amended = {**made.after, "a": f"{made.after['a']}amended\n"}

    assert again.approvers == made.coverage.approvers
    assert again.covers == made.coverage.covers
    world.check_named(squash, made.before, squashed[-1].after)
    makers = {part.sole_maker for part in squashed if part.changed}
    if len(makers) == 1 and "" not in makers and changed_paths(made.before, squashed[-1].after):
        assert makers <= {*squash.approvers}
    for records in ([made], squashed):
        assert recheck(records, made.before, amended).approvers == ()
        back = recheck(records, made.after, made.before)
        world.check_named(back, made.after, made.before)


@EXAMPLES
@given(st.lists(st.booleans(), min_size=1, max_size=4), st.booleans())
def test_a_merge_is_covered_as_far_as_nobody_resolved_it_by_hand(
    resolved: list[bool],
    is_shown: bool,
) -> None:
    head = "a" * 40
    gate = ApprovedRun("m", ("human:bob",), head=head if is_shown else "b" * 40)
    files = tuple(
        ChangedFile(f"f{n}", after=blob_id(b"%d" % n), mode=MODE, by_hand=by_hand)
        for n, by_hand in enumerate(resolved)
    )
    coverage = cover_commit([gate], CommitContent(files, parents=("c" * 40, head)))

    covered = [] if not is_shown else [file.path for file in files if not file.by_hand]
    assert [path for entry in coverage.entries for path in entry.paths] == covered
    assert coverage.approvers == (("human:bob",) if len(covered) == len(files) else ())
