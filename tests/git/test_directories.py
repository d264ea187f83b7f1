"""What files and the environment say of a repository is what git says, or nothing."""

import sys
from pathlib import Path

import pytest

from accord.git import repository
from accord.git.repository import Repository, find_repository
from tests.git.conftest import SESSION
from tests.helpers.git.work_tree import WorkTree

# A hook that compares the two where git has put it.
ASKS = f"""#!{sys.executable}
import os, subprocess, sys
sys.path.insert(0, {str(Path(repository.__file__).parents[2])!r})
from accord.git import repository
from accord.git.repository import Repository
asked = ["git", "rev-parse", "--git-dir", "--git-common-dir"]
said = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.split("\\n")
found = repository.directories_from_env(os.environ)
same = found and [os.path.realpath(each) for each in found] == [
    os.path.realpath(each) for each in (".", *said[:2])]
branch = Repository(where=found).current_branch() == Repository().current_branch()
with open({{log!r}}, "a") as log:
    print(found is not None, same, branch, file=log)
"""


@pytest.fixture
def log(plain: WorkTree) -> Path:
    """Where the hook writes what it found."""
    place = plain.home / "found"
    hooks = plain.home / "hooks"
    hooks.mkdir()
    (hooks / "post-commit").write_text(ASKS.format(log=str(place)))
    (hooks / "post-commit").chmod(0o755)
    (plain.home / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    return place


def test_hook_finds_its_directories_in_any_kind_of_repository(
    plain: WorkTree, log: Path, tmp_path: Path
) -> None:
    plain.commit("begin")
    plain.in_directory(plain.path / "sub").path.mkdir()
    plain.in_directory(plain.path / "sub").git(
        "commit", "-q", "--allow-empty", "-m", "from a folder"
    )
    plain.git("switch", "-q", "--detach")
    plain.commit("on no branch")
    plain.git("switch", "-q", "--orphan", "a/new/one")
    plain.commit("on another")
    plain.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"), "main")
    plain.in_directory(tmp_path / "tree").commit("in a work tree beside")
    flags = ("-c", "protocol.file.allow=always", "submodule", "add", "-q")
    plain.git(*flags, str(tmp_path / "tree"), "inner")
    plain.in_directory(plain.path / "inner").commit("in a repository within")
    plain.git("init", "-q", "--separate-git-dir", str(tmp_path / "apart"))
    plain.commit("whose directory is elsewhere", "b.txt")
    (plain.path / ".git").unlink()
    led = plain.with_environment(GIT_DIR=str(tmp_path / "apart"), GIT_WORK_TREE=str(plain.path))
    led.commit("and named by the environment", "c.txt")

    assert log.read_text().splitlines() == ["True True True"] * 8


def test_a_bare_repository_is_git_s_to_tell(
    plain: WorkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.git("init", "-q", "--bare", str(tmp_path / "bare"))
    monkeypatch.chdir(tmp_path / "bare")

    assert repository.directories_from_env({"GIT_DIR": "."}) is None
    assert repository.directories_from_env({"GIT_DIR": str(tmp_path / "bare")}) is None
    assert repository.directories_from_env({"GIT_DIR": "nowhere"}) is None
    assert repository.directories_from_env({}) is None


@pytest.mark.parametrize(
    "said", ["ref: refs/heads/.invalid\n", "ref: refs/remotes/origin/main\n", "?\n", ""]
)
def test_a_head_that_does_not_say_a_branch_says_nothing(tmp_path: Path, said: str) -> None:
    (tmp_path / "HEAD").write_text(said)

    assert repository.head_ref(str(tmp_path)) is None


def test_where_a_link_names_the_branch_git_is_asked(plain: WorkTree) -> None:
    """As old versions of git did it; what it leads to holds the name of a commit."""
    plain.commit("begin")
    head = plain.path / ".git" / "HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    found = find_repository(plain.path)

    assert found is not None
    assert repository.head_ref(str(found.git_directory)) is None
    assert found.current_branch() == "main"


def test_hooks_of_a_session_work_where_git_is_asked(session: WorkTree) -> None:
    session.git("config", "core.preferSymlinkRefs", "true")
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    session.commit("feat: go on", "a.txt")

    assert Repository(session.path).current_branch() == "topic"
    assert session.decision_ids()
    assert SESSION["PVP_SESSION_ID"] in session.message()
    assert '"branch": "topic"' in session.note()
