"""The few git commands that we run, on real repositories."""

from pathlib import Path

import pytest

from accord.git.process import GitError
from accord.git.repository import Repository, find_repository
from tests.helpers.git.repositories import create_repository


def test_a_repository_is_found_from_anywhere_inside(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo")
    inside = repo.root / "a" / "b"
    inside.mkdir(parents=True)

    found = find_repository(inside)

    assert found is not None
    assert (found.root, found.git_directory) == (repo.root, repo.root / ".git")
    assert find_repository(tmp_path) is None


def test_a_linked_work_tree_has_a_directory_of_its_own(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo")
    repo.run_with_hooks("worktree", "add", "-q", str(tmp_path / "other"), "-b", "side")

    other = find_repository(tmp_path / "other")

    assert other is not None
    assert other.git_directory.resolve() != other.common_git_directory.resolve()
    assert other.common_git_directory.resolve() == repo.git_directory.resolve()
    assert other.current_branch() == "side"


def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")

    assert find_repository(tmp_path) is None


def test_what_git_refuses_comes_with_its_own_words(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo")

    with pytest.raises(GitError, match="nothing-here"):
        repo.run_with_hooks("switch", "nothing-here")
    assert not repo.succeeds("rev-parse", "--verify", "nothing-here")


def test_branches_files_and_changes_are_told(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo", {"a b.txt": "one\n", "c": "x\n"})
    repo.run_with_hooks("branch", "side")
    (repo.root / "a b.txt").write_text("two\n")
    (repo.root / "new").write_text("?\n")

    assert (repo.current_branch(), repo.has_branch("side"), repo.has_branch("none")) == (
        *("main", True),
        False,
    )
    assert repo.changed_paths() == ["a b.txt"]
    assert (repo.read_file_at("HEAD", "a b.txt"), repo.read_file_at("HEAD", "new")) == (
        b"one\n",
        None,
    )
    assert (repo.is_tracked("c"), repo.is_tracked("new")) == (True, False)
    (repo.git_directory / "info" / "exclude").write_text("private/\n")
    (repo.root / "private").mkdir()
    (repo.root / "private" / "x").write_text("x")
    assert (repo.is_ignored("private/x"), repo.is_ignored("new"), repo.is_ignored("c")) == (
        *(True, False),
        False,
    )
    repo.run_with_hooks("commit", "-qam", "second")
    assert repo.differing_paths("main", "side") == {"a b.txt"}
    assert (repo.contains("main", "side"), repo.contains("side", "main")) == (True, False)
    repo.run_with_hooks("switch", "-q", "--detach")
    assert repo.current_branch() == ""


def test_a_machine_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(GitError, match="not installed"):
        repo.run_with_hooks("status")
