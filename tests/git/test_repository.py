"""The few git commands that we run, on real repositories."""

from pathlib import Path

import pytest

from accord.git.process import GitError
from accord.git.repository import Repository, find
from tests.helpers.git import a_repository


def test_a_repository_is_found_from_anywhere_inside(tmp_path: Path) -> None:
    repo = a_repository(tmp_path / "repo")
    inside = repo.root / "a" / "b"
    inside.mkdir(parents=True)

    found = find(inside)

    assert found is not None
    assert (found.root, found.directory) == (repo.root, repo.root / ".git")
    assert find(tmp_path) is None


def test_a_linked_work_tree_has_a_directory_of_its_own(tmp_path: Path) -> None:
    repo = a_repository(tmp_path / "repo")
    repo.act("worktree", "add", "-q", str(tmp_path / "other"), "-b", "side")

    other = find(tmp_path / "other")

    assert other is not None
    assert other.directory.resolve() != other.common.resolve()
    assert other.common.resolve() == repo.directory.resolve()
    assert other.branch() == "side"


def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")

    assert find(tmp_path) is None


def test_what_git_refuses_comes_with_its_own_words(tmp_path: Path) -> None:
    repo = a_repository(tmp_path / "repo")

    with pytest.raises(GitError, match="nothing-here"):
        repo.act("switch", "nothing-here")
    assert not repo.says("rev-parse", "--verify", "nothing-here")


def test_branches_files_and_changes_are_told(tmp_path: Path) -> None:
    repo = a_repository(tmp_path / "repo", {"a b.txt": "one\n", "c": "x\n"})
    repo.act("branch", "side")
    (repo.root / "a b.txt").write_text("two\n")
    (repo.root / "new").write_text("?\n")

    assert (repo.branch(), repo.has_branch("side"), repo.has_branch("none")) == (
        *("main", True),
        False,
    )
    assert repo.changed() == ["a b.txt"]
    assert (repo.show("HEAD", "a b.txt"), repo.show("HEAD", "new")) == (b"one\n", None)
    assert (repo.is_tracked("c"), repo.is_tracked("new")) == (True, False)
    (repo.directory / "info" / "exclude").write_text("private/\n")
    (repo.root / "private").mkdir()
    (repo.root / "private" / "x").write_text("x")
    assert (repo.ignores("private/x"), repo.ignores("new"), repo.ignores("c")) == (
        *(True, False),
        False,
    )
    repo.act("commit", "-qam", "second")
    assert repo.differing("main", "side") == {"a b.txt"}
    assert (repo.contains("main", "side"), repo.contains("side", "main")) == (True, False)
    repo.act("switch", "-q", "--detach")
    assert repo.branch() == ""


def test_a_machine_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(GitError, match="not installed"):
        repo.act("status")
