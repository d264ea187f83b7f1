"""Whatever is committed, amended, shown and accepted: no name on work that was not accepted.

`ACCORD_LONG=1` tries many more sequences, and others each time.
"""

import json
import os
import shutil
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.work.event import EventDraft
from accord.core.work.verbs import ActingSeat, Assignment
from accord.core.work.vocabulary import EventKind
from accord.git.process import GitError
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import DecisionLink
from accord.git.repository import Repository
from accord.pact import verbs
from accord.pact.location import find_location
from accord.pact.workspace import Workspace, WorkspacePorts
from tests.helpers.git.repositories import create_repository
from tests.pact.team import SEATS
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
FILE = "code.py"
TASKS = ("T1", "T2")
WORK = st.sampled_from(["edit", "commit", "amend", "reword", "squash", "ledger"])
SOME = st.lists(WORK, max_size=2)
VERDICTS = st.sampled_from(
    [("accept", ""), ("accept", "cart"), ("accept", "HEAD~1"), ("changes",), ("foreign",), ()]
)
# Work, a checkpoint, more work, a verdict.
ROUNDS = st.tuples(SOME, st.sampled_from(TASKS), st.booleans(), SOME, VERDICTS)
Round = tuple[list[str], str, bool, list[str], tuple[str, ...]]


class Model:
    """A repository, and beside it what each task showed when it was accepted."""

    def __init__(self, root: Path) -> None:
        self.repo = Repository(root)
        self.root = root
        self.numbers = count(1)
        self.clock = count(1_800_000_000, 2)
        self.shown: dict[str, tuple[str, frozenset[str]]] = {}
        self.accepted: dict[str, tuple[str, frozenset[str]]] = {}

    def desk(self, seat: str) -> tuple[Workspace, ActingSeat]:
        return Workspace(
            find_location(self.root), seat, WorkspacePorts(now=lambda: float(next(self.clock)))
        ), ActingSeat(seat)

    def step(self, kind: str, *words: Any) -> None:
        try:
            getattr(self, kind)(*words)
        except (Refused, GitError):
            return

    def round(self, said: Round) -> None:
        before, task, own, between, verdict = said
        for kind in before:
            self.step(kind)
        self.step("checkpoint", task, own)
        for kind in between:
            self.step(kind)
        for kind, *rest in [verdict] if verdict else []:
            self.step(kind, task, *rest)

    # Work

    def edit(self) -> None:
        (self.root / FILE).write_text(f"{next(self.numbers)}\n")

    def commit(self) -> None:
        self.edit()
        self.repo.run_with_hooks("commit", "-qm", "more", "--", FILE)

    def amend(self) -> None:
        if self.at("HEAD") != self.at("main"):
            self.edit()
            self.repo.run_with_hooks("commit", "-q", "--amend", "--no-edit", "--", FILE)

    def reword(self) -> None:
        if self.at("HEAD") != self.at("main"):
            self.repo.run_with_hooks(
                "commit", "-q", "--amend", "-m", f"other words {next(self.numbers)}"
            )

    def squash(self) -> None:
        if len(self.history("main..HEAD")) > 1:
            self.repo.run_with_hooks("reset", "-q", "--soft", "HEAD~2")
            self.repo.run_with_hooks("commit", "-qm", "squashed")

    def ledger(self) -> None:
        self.repo.run_with_hooks("commit", "-qm", "the ledger", "--", ".pact")

    # Verbs

    def checkpoint(self, task: str, commit: bool) -> None:
        verbs.checkpoint(*self.desk("bob"), task, "it works", commit=commit)
        self.shown[task] = self.content("cart"), frozenset(self.history("cart"))

    def accept(self, task: str, commit: str) -> None:
        done = verbs.accept(*self.desk("ann"), task, commit)
        content, history = self.shown[task]
        assert self.content(done.commit) == content, "accepted, and never shown"
        self.accepted[task] = content, history | {done.commit}

    def foreign(self, task: str) -> None:
        """A tool that checks the rules, and names no commit."""
        desk, _ = self.desk("ann")

        def decide(work: Any) -> list[EventDraft]:
            return [EventDraft(EventKind.ACCEPT, {}, task, work.tasks[task].feature)]

        before = desk.load_checked().work.tasks[task].status
        desk.write(decide)
        if before == "awaiting_review":
            self.accepted[task] = self.shown[task]

    def changes(self, task: str) -> None:
        verbs.changes(*self.desk("ann"), task, "more")

    # What there is

    def at(self, name: str) -> str:
        return self.repo.run_text("rev-parse", name)

    def content(self, commit: str) -> str:
        return (self.repo.read_file_at(commit, FILE) or b"").decode()

    def history(self, span: str) -> list[str]:
        return self.repo.run_text("rev-list", span).split()

    def merged(self) -> bool:
        """Whether all of it ships now."""
        self.repo.run_with_hooks("checkout", "-q", "--", FILE)
        self.work = self.history("main..cart")
        for sha in self.work:
            id = f"dec_{sha[:12]}"
            note = {"version": 1, "decisions": [{"id": id, "pvp_session": "s"}]}
            decisions_ref.attach_decisions(
                self.repo, {sha: DecisionLink(frozenset({id}))}, {id: note}
            )
        self.tip = self.content("cart")
        try:
            verbs.merge(*self.desk("ann"), "cart", git=True)
        except Refused:
            return False
        return True

    def reviewers(self, sha: str) -> list[str]:
        note = json.loads(self.repo.run_text("notes", "--ref=pvp", "show", sha))
        return [each["by"] for each in note.get("reviews", []) if each["commit"] == sha]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "repo"
    repo = create_repository(root, {FILE: "0\n"})
    model = Model(root)
    verbs.init(*model.desk("ann"), "demo", SEATS, "")
    for task in TASKS:
        verbs.assign(*model.desk("ann"), Assignment(task, "cart", "cart", "bob", "ann"))
    for words in (("add", "."), ("commit", "-qm", "the pact"), ("switch", "-qc", "cart")):
        repo.run_with_hooks(*words)
    return root


@proves("UNI-14")
@pytest.mark.timeout(1200 if LONG else 300)
@settings(max_examples=200 if LONG else 12, deadline=None, derandomize=not LONG)
@given(st.lists(ROUNDS, max_size=3))
def test_no_sequence_puts_a_reviewer_on_work_that_was_not_accepted(
    template: Path, rounds: list[Round]
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(shutil.copytree(template, Path(folder) / "repo"))
        model = Model(root)
        model.clock = count(1_900_000_000, 2)
        for each in rounds:
            model.round(each)
        for task in TASKS:  # so that most stories end in a merge
            if task not in model.accepted:
                model.step("checkpoint", task, False)
                model.step("accept", task, "")

        if not model.merged():
            return
        named = "Reviewed-By" in model.repo.run_text("log", "-1", "--format=%B", "main")
        assert not named or model.tip in {content for content, _ in model.accepted.values()}
        seen = frozenset().union(*(history for _, history in model.accepted.values()))
        assert {sha for sha in model.work if model.reviewers(sha)} <= seen
