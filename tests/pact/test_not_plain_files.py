"""Something else where a file should be, or far too much of it: a sentence, and nobody waits."""

import gc
import os
import shutil
from collections.abc import Callable
from copy import copy
from pathlib import Path

import pytest

from accord.cli.main import main
from accord.core.kernel.limits import MIB
from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.verbs import ActingSeat
from accord.git.repository import Repository
from accord.pact import scaffold, verbs
from accord.pact.branch_switch import COMMIT_BACKUP_FILE, MERGE_MARKER_FILE, SWITCH_BACKUP_FILE
from accord.pact.location import find_location
from accord.pact.workspace import Workspace
from tests.pact.team import assignment
from tests.pact.test_branch_switch import GitTeam

PACT, PRIVATE = ".pact", ".git/accord"
PLACES = [
    *(f"{PACT}/{name}" for name in ("log.jsonl", "STATE.yml", "tasks/T1.md", "tasks/T2.md")),
    *(f"{PRIVATE}/{name}" for name in (SWITCH_BACKUP_FILE, COMMIT_BACKUP_FILE, MERGE_MARKER_FILE)),
    *(f".git/{name}" for name in ("pactify-log.lock", "pactify-base.lock")),
]
ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a directory": lambda path: (path / "inside").mkdir(parents=True),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}
VERBS = (
    ("ann", ["status"]),
    ("ann", ["status", "--json"]),
    ("ann", ["validate"]),
    ("ann", ["log", "--replay"]),
    ("ann", assignment("T2")),
    ("bob", ["join", "bob", "--roles", "worker"]),
    ("bob", ["checkpoint", "T1", "--evidence", "x", "--commit"]),
    ("ann", ["accept", "T1"]),
    ("ann", ["merge", "cart"]),
    ("ann", ["init", "--project", "demo", "--seat", "ann:worker:A.md"]),
    ("ann", ["watch", "--first", "--timeout", "0"]),
)
INTERNAL = 1


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> GitTeam:
    made = GitTeam(tmp_path_factory.mktemp("template") / "repo")
    made.assign()
    return made


@pytest.fixture
def team(template: GitTeam, tmp_path: Path) -> GitTeam:
    made = copy(template)
    made.root = Path(shutil.copytree(template.root, tmp_path / "repo"))
    made.pact, made.repo = made.root / PACT, Repository(made.root)
    return made


@pytest.mark.timeout(120)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", PLACES)
def test_no_verb_waits_for_what_is_no_file_or_ends_without_a_sentence(
    team: GitTeam,
    name: str,
    odd: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(team.root)
    monkeypatch.setattr(gc, "disable", lambda: None)  # as a process of its own would
    path = team.root / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    ODD[odd](path)

    for seat, words in VERBS:
        monkeypatch.setenv("PACT_AGENT_ID", seat)
        code = main(["pact", *words])
        out, err = capsys.readouterr()
        assert code != INTERNAL, (words, err)
        assert code in {0, 6} or out or err, words


def at(root: Path, seat: str = "ann") -> tuple[Workspace, ActingSeat]:
    return Workspace(find_location(root), seat), ActingSeat(seat)


def test_what_is_no_file_is_told_by_its_name(team: GitTeam) -> None:
    log = team.pact / "log.jsonl"
    log.unlink()
    os.mkfifo(log)

    for words in (["status"], ["watch", "--first"], ["accept", "T1"], ["validate"]):
        ran = team("ann", *words)
        assert (ran.code, f"{log} is not a regular file, so it was not touched" in ran.err) == (
            5,
            True,
        )


def test_a_task_whose_file_cannot_be_read_is_told(team: GitTeam) -> None:
    file = team.pact / "tasks" / "T1.md"
    with file.open("r+b") as opened:
        opened.truncate(scaffold.MAX_TEXT_BYTES + 1)
    said = [each.sentence for each in at(team.root)[0].validate() if each.warning]
    assert said == [f".pact/tasks/T1.md: {file} is larger than 4 MiB, too large to read"]

    file.unlink()
    file.mkdir()
    said = [each.sentence for each in at(team.root)[0].validate() if each.warning]
    assert said == [f".pact/tasks/T1.md: {file} is not a regular file, so it was not touched"]


def test_a_state_that_is_far_too_large_is_drift(team: GitTeam) -> None:
    with (team.pact / "STATE.yml").open("r+b") as opened:
        opened.truncate(1 << 40)

    ran = team("ann", "validate")

    assert (ran.code, "STATE.yml" in ran.out) == (2, True)
    team.good("ann", "log", "--replay")
    assert team("ann", "validate").code == 0


def grown(team: GitTeam, size: int) -> Path:
    """A log of that many bytes, most of which are on no disk."""
    log = team.pact / "log.jsonl"
    with log.open("r+b") as opened:
        opened.truncate(size)
    return log


@pytest.mark.parametrize("words", [["status"], ["validate"], ["accept", "T1"], ["merge", "cart"]])
def test_a_log_that_is_too_large_is_refused_and_the_limit_is_named(
    team: GitTeam, words: list[str]
) -> None:
    grown(team, 64 * MIB + 1)

    ran = team("ann", *words)

    assert ran.code == 2, ran
    assert "log.jsonl is larger than 64 MiB, the limit pact_log" in ran.err
    assert "set ACCORD_LIMIT_PACT_LOG to raise it" in ran.err


def test_the_limit_can_be_moved(team: GitTeam, tmp_path: Path) -> None:
    """By a variable, and by the file of the data directory."""
    grown(team, 64 * MIB + 1)
    home = tmp_path / "home"
    home.mkdir()
    env = {"ACCORD_HOME": str(home)}
    assert team("ann", "status", **env).code == 2

    assert team("ann", "status", **env, ACCORD_LIMIT_PACT_LOG="65 MiB").code == 0
    (home / "accord.toml").write_text('[limits]\npact_log = "65 MiB"\n')
    assert team("ann", "status", **env).code == 0


def test_no_event_makes_a_log_too_large(team: GitTeam) -> None:
    desk, _ = at(team.root)
    log = grown(team, 64 * MIB)
    before = desk.ledger.mark()

    with pytest.raises(Refused, match="the limit pact_log"):
        desk.ledger.append(before, b"x\n")

    assert (log.stat().st_size, desk.ledger.mark()) == (64 * MIB, before)


def test_an_entry_file_that_is_far_too_large_is_left_alone(tmp_path: Path) -> None:
    team = GitTeam(tmp_path / "repo")
    shutil.rmtree(team.pact)
    entry = team.root / "CLAUDE.md"
    with entry.open("r+b") as opened:
        opened.truncate(scaffold.MAX_TEXT_BYTES + 1)

    with pytest.raises(Refused, match="is larger than 4 MiB") as no:
        verbs.init(*at(team.root), "demo", ["ann:worker:CLAUDE.md"], "")

    assert no.value.reason is Reason.TOO_LARGE
    assert entry.stat().st_size == scaffold.MAX_TEXT_BYTES + 1
    assert not team.pact.exists(), "nothing is left half done"
