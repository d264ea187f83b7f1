"""Killed at any step: what was promised is there, what was not done is not claimed.

By default every fourth step is tried; `ACCORD_LONG=1` tries all of them.
"""

import os
import shutil
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.refusal import Refused
from accord.core.work.format import log_lines
from accord.core.work.verbs import ActingSeat, Assignment
from accord.core.work.vocabulary import TaskStatus
from accord.git.repository import Repository, find_repository
from accord.pact import branch_switch, ledger, scaffold, verbs, workspace
from accord.pact.ledger import FileLedger
from accord.pact.location import find_location
from accord.pact.workspace import Workspace, WorkspacePorts
from tests.helpers.git.repositories import create_repository
from tests.pact.team import SEATS
from tests.spec import proves

Act = Callable[[Path], object]
EVERY_STEPS = 1 if os.environ.get("ACCORD_LONG") else 4


def at(root: Path, seat: str) -> tuple[Workspace, ActingSeat]:
    return Workspace(find_location(root), seat, WorkspacePorts()), ActingSeat(seat)


def joins(root: Path) -> object:
    here, bob = at(root, "bob")
    return verbs.join(here, bob, "worker", "bob", git=True)


def commits(root: Path) -> object:
    here, bob = at(root, "bob")
    return verbs.checkpoint(here, bob, "T1", "it works", commit=True)


def merges(root: Path) -> object:
    here, ann = at(root, "ann")
    return verbs.merge(here, ann, "cart", git=True)


def prepared(root: Path, until: Act) -> Repository:
    """A repository in which `until` is what comes next."""
    repo = create_repository(root, {"code.py": "one\n"})
    here, ann = at(root, "ann")
    verbs.init(here, ann, "demo", SEATS, "")
    repo.run_with_hooks("add", ".")
    repo.run_with_hooks("commit", "-qm", "the pact")
    repo.run_with_hooks("branch", "cart")
    verbs.assign(here, ann, Assignment("T1", "cart", "cart", "bob", "ann"))
    for step in (joins, commits, merges):
        if step is until:
            break
        if step is commits:
            (root / "code.py").write_text("two\n")
        step(root)
        if step is commits:
            verbs.accept(here, ann, "T1")
    if until is commits:
        (root / "code.py").write_text("two\n")
    return repo


def killed(root: Path, act: Act, step: int) -> bool:
    """Do it in a process that is killed before its n-th touch of the world; whether it was."""
    child = os.fork()
    if not child:
        try:
            die_before(step)
            act(root)
        except BaseException:  # noqa: BLE001 - the parent's tests must not run on in the child
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, os.waitstatus_to_exitcode(status)
    return os.WIFSIGNALED(status)


def die_before(step: int) -> None:
    """Every write, every git command, every removal is a step."""
    left = [step]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*words, **more)

        return call

    replaced = counted(ledger.replace_file)
    for module in (branch_switch, workspace, scaffold):
        module.replace_file = replaced  # type: ignore[attr-defined]
    FileLedger.append = counted(FileLedger.append)  # type: ignore[method-assign]
    Repository.run = counted(Repository.run)  # type: ignore[method-assign]
    Path.unlink = counted(Path.unlink)  # type: ignore[method-assign]


def honest(root: Path) -> None:
    """What the log says is done, git has; what was recorded is there once, on a whole line."""
    repo = find_repository(root)
    assert repo is not None
    data = (root / ".pact" / "log.jsonl").read_bytes()
    reading = log_lines.parse_log(data)
    assert reading.faults == []
    ids = [entry.event.event_id for entry in reading.entries]
    assert len(set(ids)) == len(ids)
    kinds = [entry.event.event_type for entry in reading.entries]
    if "checkpoint" in kinds:
        assert repo.read_file_at("cart", "code.py") == b"two\n"
    if "merge" in kinds:
        assert repo.contains("main", "cart")
        assert b'"event_type":"merge"' in (repo.read_file_at("main", ".pact/log.jsonl") or b"")


@pytest.mark.parametrize("act", [joins, commits, merges])
@pytest.mark.timeout(300)
def test_a_kill_at_any_step_is_recovered_and_never_a_phantom(tmp_path: Path, act: Act) -> None:
    prepared(tmp_path / "before", act)
    before, tried = (tmp_path / "before" / ".pact" / "log.jsonl").read_bytes(), 0
    for step in count(1, EVERY_STEPS):
        root = tmp_path / str(step)
        shutil.copytree(tmp_path / "before", root, symlinks=True)
        if not killed(root, act, step):
            break
        if (root / ".pact" / "log.jsonl").exists():
            honest(root)
        again(root, act)

        here, _ = at(root, "ann")
        data = (root / ".pact" / "log.jsonl").read_bytes()
        honest(root)
        assert log_lines.missing_lines(data, before) == b"", f"step {step} lost events"
        # An event without its STATE.yml is told of, and mended from the log.
        assert {found.check for found in here.validate() if not found.warning} <= {"a"}
        here.rebuild_state_file()
        assert [found for found in here.validate() if not found.warning] == []
        assert not here.branch_switch.is_pending()
        told(here, act)
        shutil.rmtree(root)
        tried += 1
    assert tried * EVERY_STEPS > 10


def inits(root: Path) -> object:
    here, ann = at(root, "ann")
    return verbs.init(here, ann, "demo", SEATS, "")


FOREIGN = b'{"event_id":"1","ts":"2026-01-01T00:00:00Z","agent_id":"ann","event_type":"note"}\n'


@proves("OPEN-101")
@pytest.mark.parametrize("there", [b"", FOREIGN])
def test_an_init_that_is_killed_at_any_step_is_done_by_the_next(
    tmp_path: Path, there: bytes
) -> None:
    """And what another tool had recorded before is never cut off."""
    step = 0
    while True:
        step += 1
        root = tmp_path / str(step)
        create_repository(root)
        (root / ".pact").mkdir()
        (root / ".pact" / "log.jsonl").write_bytes(there)
        was_killed = killed(root, inits, step)
        left = (root / ".pact" / "log.jsonl").read_bytes()
        inits(root)

        log = (root / ".pact" / "log.jsonl").read_bytes()
        assert log.startswith(there)
        assert log.startswith(left)
        assert log.count(b'"event_type":"init"') == 1
        here, _ = at(root, "ann")
        assert [found for found in here.validate() if not found.warning] == []
        for name in ("PROJECT.md", "STATE.yml", "bin/pact.sh", "tasks"):
            assert (root / ".pact" / name).exists()
        assert "PACT_AGENT_ID=bob" in (root / "AGENTS.md").read_text()
        if not was_killed:
            break
    assert step > 5


def again(root: Path, act: Act) -> None:
    """Whoever was killed tries once more; that it was done already is a good answer."""
    try:
        act(root)
    except Refused as refusal:
        if act is not merges or "already shipped" not in refusal.detail:
            raise


def find_repo(root: Path) -> Repository:
    found = find_repository(root)
    assert found is not None
    return found


def told(here: Workspace, act: Act) -> None:
    work = here.load().work
    if act is joins:
        assert work.tasks["T1"].status is TaskStatus.IN_PROGRESS
        assert find_repo(here.location.root).current_branch() == "cart"
    elif act is commits:
        assert work.tasks["T1"].status is TaskStatus.AWAITING_REVIEW
    else:
        assert work.features["cart"].shipped
        assert not find_repo(here.location.root).has_git_file("MERGE_HEAD")
