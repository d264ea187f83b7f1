"""Whatever is committed, amended, shown and accepted: no name on work that was not accepted."""

import json
import shutil
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.work.event import Draft
from accord.core.work.verbs import Assignment, Caller
from accord.core.work.words import Kind
from accord.git import decisions
from accord.git.decisions import Link
from accord.git.process import GitError
from accord.git.repository import Repository
from accord.pact import verbs
from accord.pact.desk import Desk, World
from accord.pact.place import place
from tests.helpers.git import a_repository
from tests.pact.team import SEATS
from tests.spec import proves

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

    def desk(self, seat: str) -> tuple[Desk, Caller]:
        return Desk(place(self.root), seat, World(now=lambda: float(next(self.clock)))), Caller(
            seat
        )

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
        self.repo.act("commit", "-qm", "more", "--", FILE)

    def amend(self) -> None:
        if self.at("HEAD") != self.at("main"):
            self.edit()
            self.repo.act("commit", "-q", "--amend", "--no-edit", "--", FILE)

    def reword(self) -> None:
        if self.at("HEAD") != self.at("main"):
            self.repo.act("commit", "-q", "--amend", "-m", f"other words {next(self.numbers)}")

    def squash(self) -> None:
        if len(self.history("main..HEAD")) > 1:
            self.repo.act("reset", "-q", "--soft", "HEAD~2")
            self.repo.act("commit", "-qm", "squashed")

    def ledger(self) -> None:
        self.repo.act("commit", "-qm", "the ledger", "--", ".pact")

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

        def decide(work: Any) -> list[Draft]:
            return [Draft(Kind.ACCEPT, {}, task, work.tasks[task].feature)]

        before = desk.view().work.tasks[task].status
        desk.write(decide)
        if before == "awaiting_review":
            self.accepted[task] = self.shown[task]

    def changes(self, task: str) -> None:
        verbs.changes(*self.desk("ann"), task, "more")

    # What there is

    def at(self, name: str) -> str:
        return self.repo.ask("rev-parse", name)

    def content(self, commit: str) -> str:
        return (self.repo.show(commit, FILE) or b"").decode()

    def history(self, span: str) -> list[str]:
        return self.repo.ask("rev-list", span).split()

    def merged(self) -> bool:
        """Whether all of it ships now."""
        self.repo.act("checkout", "-q", "--", FILE)
        self.work = self.history("main..cart")
        for sha in self.work:
            id = f"dec_{sha[:12]}"
            note = {"version": 1, "decisions": [{"id": id, "pvp_session": "s"}]}
            decisions.attach(self.repo, {sha: Link(frozenset({id}))}, {id: note})
        self.tip = self.content("cart")
        try:
            verbs.merge(*self.desk("ann"), "cart", git=True)
        except Refused:
            return False
        return True

    def reviewers(self, sha: str) -> list[str]:
        note = json.loads(self.repo.ask("notes", "--ref=pvp", "show", sha))
        return [each["by"] for each in note.get("reviews", []) if each["commit"] == sha]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "repo"
    repo = a_repository(root, {FILE: "0\n"})
    model = Model(root)
    verbs.init(*model.desk("ann"), "demo", SEATS, "")
    for task in TASKS:
        verbs.assign(*model.desk("ann"), Assignment(task, "cart", "cart", "bob", "ann"))
    for words in (("add", "."), ("commit", "-qm", "the pact"), ("switch", "-qc", "cart")):
        repo.act(*words)
    return root


@proves("UNI-14")
@settings(max_examples=40, deadline=None)
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
        named = "Reviewed-By" in model.repo.ask("log", "-1", "--format=%B", "main")
        assert not named or model.tip in {content for content, _ in model.accepted.values()}
        seen = frozenset().union(*(history for _, history in model.accepted.values()))
        assert {sha for sha in model.work if model.reviewers(sha)} <= seen
