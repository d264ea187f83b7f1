"""`watch` tells the next actor, as soon as there is something to tell."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from accord.core.work.seat_inbox import InboxItem
from accord.core.work.verbs import ActingSeat, Assignment
from accord.pact import verbs
from accord.pact.location import find_location
from accord.pact.watch import watch_inbox
from accord.pact.workspace import LedgerState, Workspace, WorkspacePorts
from tests.helpers.clients.cli import COMMAND_TIMEOUT_S, clean_environment
from tests.pact.team import SEATS, Team


class Story:
    """What happens while somebody waits: the next of these steps at each nap."""

    def __init__(self, root: Path, *steps: Callable[[], object]) -> None:
        self.root = root
        self.steps = list(steps)
        self.naps = list[float]()
        self.told = list[list[tuple[str, str]]]()

    def desk(self, seat: str, *, waits: bool = False) -> Workspace:
        return Workspace(
            find_location(self.root),
            seat,
            WorkspacePorts(sleep=self.nap) if waits else WorkspacePorts(),
        )

    def nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        if self.steps:
            self.steps.pop(0)()

    def tell(self, things: Sequence[InboxItem]) -> None:
        self.told.append([(each.do, each.about) for each in things])


def begun(root: Path) -> Story:
    story = Story(root)
    verbs.init(story.desk("ann"), ActingSeat("ann"), "demo", SEATS, "")
    said = Assignment("T1", "F", "b", "bob", "ann")
    story.steps = [
        lambda: verbs.assign(story.desk("ann"), ActingSeat("ann"), said),
        lambda: None,
        lambda: verbs.checkpoint(story.desk("bob"), ActingSeat("bob"), "T1", "x", commit=False),
        lambda: verbs.accept(story.desk("ann"), ActingSeat("ann"), "T1"),
    ]
    return story


def test_each_thing_is_told_once_when_it_comes(tmp_path: Path) -> None:
    story = begun(tmp_path)
    here = story.desk("ann", waits=True)

    in_time = watch_inbox(here, story.tell, interval=2, timeout_s=12, stop_at_first=False)

    assert story.told == [[("review", "T1")], [("merge", "F")]]
    assert (in_time, story.naps) == (False, [2] * 6)


def test_the_first_thing_ends_it_when_that_was_asked_for(tmp_path: Path) -> None:
    story = begun(tmp_path)
    here = story.desk("bob", waits=True)

    assert watch_inbox(here, story.tell, interval=1, timeout_s=None, stop_at_first=True)
    assert (story.told, story.naps) == ([[("work", "T1")]], [1])


def test_a_ledger_that_does_not_change_is_not_read_again(tmp_path: Path) -> None:
    story = begun(tmp_path)
    story.steps = []
    here = story.desk("bob", waits=True)
    looks, load = list[int](), here.load

    def look() -> LedgerState:
        looks.append(1)
        return load()

    here.load = look  # type: ignore[method-assign]

    watch_inbox(here, story.tell, interval=1, timeout_s=50, stop_at_first=False)

    assert (len(looks), len(story.naps)) == (1, 50)


def test_a_ledger_that_git_is_putting_in_place_is_waited_for(tmp_path: Path) -> None:
    """A switch of branches takes the file away and puts another there."""
    story = begun(tmp_path)
    log = tmp_path / ".pact" / "log.jsonl"
    assign, _, shown, *_ = story.steps
    assign()
    before = log.read_bytes()
    story.steps = [log.unlink, lambda: log.write_bytes(before), shown]

    watch_inbox(
        story.desk("bob", waits=True), story.tell, interval=1, timeout_s=2, stop_at_first=False
    )
    assert story.told == [[("work", "T1")]], "it is not told again"
    watch_inbox(
        story.desk("ann", waits=True), story.tell, interval=1, timeout_s=2, stop_at_first=False
    )
    assert story.told[1:] == [[("review", "T1")]]


def test_a_real_watcher_hears_of_a_real_checkpoint(tmp_path: Path) -> None:
    team = Team(tmp_path / "work").init()
    team.assign()
    watcher = subprocess.Popen(
        [sys.executable, "-m", "accord", "pact", "watch", "--first", "--json"],
        cwd=team.root,
        env=clean_environment(PACT_AGENT_ID="ann"),
        stdout=subprocess.PIPE,
        text=True,
    )
    team.good("bob", "checkpoint", "T1", "--evidence", "all good")

    out, _ = watcher.communicate(timeout=COMMAND_TIMEOUT_S)

    assert watcher.returncode == 0
    assert json.loads(out) == {
        "do": "review",
        "about": "T1",
        "reason": "bob submitted: all good",
        "spec": ".pact/tasks/T1.md",
    }
    late = team("cy", "watch", "--timeout", "0")
    assert (late.code, late.out) == (6, "")
    assert team("ann", "watch", "--timeout", "0").out.startswith("review  T1 ")
