"""The team's own hooks still run beside ours: husky, pre-commit and lefthook, before and after."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.git.hooks.marker_files import BLOCK_BEGIN
from tests.helpers.git import npm_programs
from tests.helpers.git.work_tree import WorkTree

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

SESSION = {"PVP_SESSION_ID": "ses_1"}
# What the team checks: a message that says `forbidden` is refused, and each run leaves a line.
TEAM_CHECK = """\
echo "checked $(basename "$1")" >> team.log
if grep -q forbidden "$1"; then echo "the team forbids this" >&2; exit 1; fi
"""
PRE_COMMIT_CONFIG = """\
repos:
  - repo: local
    hooks:
      - {id: team, name: team, entry: sh team-check.sh, language: system, stages: [commit-msg]}
"""
LEFTHOOK_CONFIG = """\
commit-msg:
  commands:
    team:
      run: sh team-check.sh {1}
"""


@pytest.fixture(scope="module")
def npm_commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_programs.install(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def repo(plain: WorkTree, npm_commands: Path) -> WorkTree:
    """A repository whose user has the managers on the path."""
    folders = [npm_commands, npm_programs.NODE_DIR, Path(sys.executable).parent]
    path = os.pathsep.join([*map(str, folders), plain.env["PATH"]])
    team = plain.with_environment(PATH=path, LEFTHOOK_QUIET="meta,summary", **SESSION)
    (plain.path / "team-check.sh").write_text(TEAM_CHECK)
    return team


def add_husky(repo: WorkTree) -> None:
    (repo.path / ".husky").mkdir(exist_ok=True)
    (repo.path / ".husky" / "commit-msg").write_text('sh team-check.sh "$1"\n')
    run(repo, "husky")


def add_pre_commit(repo: WorkTree) -> None:
    (repo.path / ".pre-commit-config.yaml").write_text(PRE_COMMIT_CONFIG)
    run(repo, "pre-commit", "install", "--hook-type", "commit-msg")


def add_lefthook(repo: WorkTree) -> None:
    (repo.path / "lefthook.yml").write_text(LEFTHOOK_CONFIG)
    run(repo, "lefthook", "install")


def run(repo: WorkTree, *words: str) -> None:
    done = repo.run(*words)
    assert done.code == 0, done


Manager = Callable[[WorkTree], None]
MANAGERS: list[Manager] = [add_husky, add_pre_commit, add_lefthook]
each_manager = pytest.mark.parametrize("add_manager", MANAGERS, ids=lambda each: each.__name__)


def install(repo: WorkTree) -> str:
    done = repo.accord("git", "install")
    assert done.code == 0, done
    return done.out


def team_check_runs(repo: WorkTree, content: str) -> bool:
    """Whether the team's check refuses a forbidden message and sees a good one."""
    log = repo.path / "team.log"
    log.unlink(missing_ok=True)
    repo.write("file.txt", content)
    refused = repo.run("git", "commit", "-qm", "feat: forbidden")
    made = repo.run("git", "commit", "-qm", "feat: begin")
    assert made.code == 0, made
    return (
        refused.code == 1 and "the team forbids this" in refused.err + refused.out and log.exists()
    )


@each_manager
def test_hook_manager_installed_before_ours_still_checks_messages(
    repo: WorkTree, add_manager: Manager
) -> None:
    add_manager(repo)
    before = hook_texts(repo)
    install(repo)

    assert team_check_runs(repo, "one")
    assert repo.decision_ids()
    assert repo.accord("git", "uninstall").code == 0
    assert hook_texts(repo) == before
    assert team_check_runs(repo, "two")


@each_manager
def test_hook_manager_installed_after_ours_runs_with_ours_once_ours_is_installed_again(
    repo: WorkTree, add_manager: Manager
) -> None:
    install(repo)
    add_manager(repo)
    install(repo)

    assert team_check_runs(repo, "one")
    assert len(repo.decision_ids()) == 1
    assert repo.accord("git", "uninstall").code == 0
    assert not any(BLOCK_BEGIN.encode() in text for text in hook_texts(repo).values())
    assert team_check_runs(repo, "two")


@each_manager
def test_hook_manager_uninstalled_after_ours_leaves_ours_or_says_what_to_do(
    repo: WorkTree, add_manager: Manager
) -> None:
    removal: dict[Manager, tuple[str, ...]] = {
        add_husky: ("git", "config", "--unset", "core.hooksPath"),
        add_pre_commit: ("pre-commit", "uninstall", "--hook-type", "commit-msg"),
        add_lefthook: ("lefthook", "uninstall", "--force"),
    }
    add_manager(repo)
    install(repo)
    run(repo, *removal[add_manager])
    shown = repo.accord("git", "status").out
    assert "not installed" in shown or "none in" in shown
    install(repo)
    repo.commit("feat: begin")

    assert repo.decision_ids()


def test_install_beside_husky_says_how_to_survive_npm_install(repo: WorkTree) -> None:
    add_husky(repo)
    said = install(repo)

    assert "husky && accord git install" in said
    assert "outside this repository" not in said


def test_a_lost_hook_is_reported_once_by_the_hooks_that_are_left(repo: WorkTree) -> None:
    install(repo)
    add_lefthook(repo)  # replaces commit-msg alone
    repo.write("file.txt", "one")
    first = repo.run("git", "commit", "-qm", "feat: begin")
    repo.write("file.txt", "two")
    second = repo.run("git", "commit", "-qm", "feat: go on")

    assert "commit-msg was replaced by another tool; run `accord git install`" in first.err
    assert "was replaced" not in second.err


def hook_texts(repo: WorkTree) -> dict[str, bytes]:
    folder = Path(repo.git("rev-parse", "--git-path", "hooks"))
    found = (repo.path / folder).glob("*")
    return {
        each.name: each.read_bytes()
        for each in found
        if each.suffix != ".sample" and each.is_file()
    }
