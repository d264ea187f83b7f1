"""Whatever branches recorded and however git merges them, one sound state comes of it."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from accord.core.kernel.refusal import Refused
from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from accord.core.work.format.state_and_task_files import render_state_yml
from accord.core.work.state import Work
from accord.core.work.verbs import ActingSeat, Assignment
from accord.core.work.vocabulary import TaskStatus
from accord.git.repository import Repository
from accord.pact import verbs
from accord.pact.location import find_location
from accord.pact.workspace import Workspace, WorkspacePorts
from tests.helpers.git.repositories import create_repository
from tests.pact.team import SEATS
from tests.spec import proves

NAMES = ("ann", "bob", "cy")
BRANCHES = ("one", "two", "three")


class Repo:
    """A repository in which anybody does anything; each event has a second of its own."""

    def __init__(self, root: Path, random: Random) -> None:
        self.git: Repository = create_repository(root)
        self.random = random
        self.now = 1_800_000_000
        verbs.init(self.desk("ann"), ActingSeat("ann"), "demo", SEATS, "main")
        self.commit()

    def desk(self, seat: str) -> Workspace:
        return Workspace(find_location(self.git.root), seat, WorkspacePorts(now=self.tick))

    def tick(self) -> float:
        self.now += 2
        return self.now

    def commit(self) -> None:
        self.git.run("add", ".")
        self.git.run("commit", "-q", "--allow-empty", "-m", "more")

    def anything(self) -> None:
        """One verb by one seat; most are refused, as they should be."""
        pick, seat = self.random.choice, self.random.choice(NAMES)
        desk, caller = self.desk(seat), ActingSeat(seat)
        task, feature = pick(("T1", "T2", "T3")), pick(("F", "G"))
        said = Assignment(task, feature, feature, pick(NAMES), pick(NAMES))
        acts: tuple[Callable[[], object], ...] = (
            lambda: verbs.assign(desk, caller, said),
            lambda: verbs.join(desk, caller, "worker", seat, git=False),
            lambda: verbs.checkpoint(desk, caller, task, "shown", commit=False),
            lambda: verbs.accept(desk, caller, task),
            lambda: verbs.changes(desk, caller, task, "more"),
            lambda: verbs.merge(desk, caller, feature, git=False),
        )
        try:
            pick(acts)()
        except Refused:
            return

    @property
    def log(self) -> bytes:
        return (self.git.root / ".pact" / "log.jsonl").read_bytes()

    def merged(self, order: list[str]) -> bytes:
        """The log after these branches were merged one into the other."""
        self.git.run("switch", "-q", "-C", "all", order[0])
        for branch in order[1:]:
            self.git.run("merge", "-q", "-X", "ours", "-m", "merge", branch)
        return self.log


def sound(work: Work) -> None:
    for task in work.tasks.values():
        assert task.status is not TaskStatus.ACCEPTED or task.owner != task.reviewer
    for feature in work.features.values():
        assert not feature.shipped or not work.open_tasks(feature)


@proves("PACT-2.5-2", "PACT-8-1", "OPEN-103", "PACT-5-2", "PACT-5-3")
@pytest.mark.parametrize("seed", range(4))
def test_every_order_of_merging_comes_to_one_sound_state(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    repo = Repo(tmp_path / "repo", random)
    for branch in BRANCHES:
        repo.git.run_with_hooks("switch", "-q", "-c", branch, "main")
        for _ in range(12):
            repo.anything()
        repo.commit()
    # Branches that know of each other leave lines that both have, in other places.
    repo.git.run_with_hooks("merge", "-q", "-X", "ours", "-m", "met", "one")
    repo.desk("ann").rebuild_state_file()
    for _ in range(6):
        repo.anything()
    repo.commit()
    states, ids = set[str](), set[frozenset[str]]()
    for order in (["one", "two", "three"], ["three", "two", "one"], ["two", "one", "three"]):
        data = repo.merged(order)
        reading = log_lines.parse_log(data)
        work = fold(reading.entries)
        sound(work)
        assert reading.faults == []
        states.add(render_state_yml(work))
        ids.add(frozenset(entry.event.event_id for entry in reading.entries))
        repo.desk("ann").rebuild_state_file()
        assert (repo.git.root / ".pact" / "STATE.yml").read_text() == render_state_yml(work)
        repo.git.run_with_hooks("checkout", "-q", "HEAD", "--", ".pact")
    assert (len(states), len(ids)) == (1, 1)


@proves("PACT-2.5-2", "PACT-8-1", "OPEN-103")
@pytest.mark.parametrize("seed", range(2))
def test_a_merge_a_rebase_and_cherry_picks_come_to_one_state(tmp_path: Path, seed: int) -> None:
    """Git brings the same events together in three ways; each puts them into another order."""
    repo = Repo(tmp_path / "repo", Random(100 + seed))
    for branch in BRANCHES[:2]:
        repo.git.run("switch", "-q", "-c", branch, "main")
        for _ in range(3):
            for _ in range(5):
                repo.anything()
            repo.commit()
    one, two = BRANCHES[:2]
    ways = {
        "merge": (one, ("merge", "-q", "--no-edit", two)),
        "other way": (two, ("merge", "-q", "--no-edit", one)),
        "rebase": (two, ("rebase", "-q", one)),
        "cherry-pick": (one, ("cherry-pick", "--allow-empty", f"main..{two}")),
    }
    states, ids = set[str](), set[frozenset[str]]()
    for start, words in ways.values():
        repo.git.run("switch", "-q", "-C", "all", start)
        repo.git.run(*words)
        reading = log_lines.parse_log(repo.log)
        work = fold(reading.entries)
        sound(work)
        assert reading.faults == []
        states.add(render_state_yml(work))
        ids.add(frozenset(entry.event.event_id for entry in reading.entries))
    assert (len(states), len(ids)) == (1, 1)

    # One commit out of the middle: what it builds on is missing, and nothing is made up for it.
    repo.git.run("switch", "-q", "-C", "all", "main")
    repo.git.run("cherry-pick", "--allow-empty", f"{two}~1")
    sound(fold(log_lines.parse_log(repo.log).entries))
    assert log_lines.parse_log(repo.log).faults == []
