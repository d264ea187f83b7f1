"""A work tree for each fork: made once, reused, and never over other files."""

import subprocess
from pathlib import Path

import pytest

from accord.agents.worktrees import WorktreeError, Worktrees, worktree_name
from accord.core.provenance.commit_message.trailer_values import branch_of
from accord.git.repository import Repository, find_repository
from tests.helpers.git.work_tree import git_environment


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "shop"
    env = git_environment(tmp_path)
    subprocess.run(["git", "init", "-q", str(root)], env=env, check=True)
    subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "chore: begin"],
        cwd=root,
        env=env,
        check=True,
    )
    found = find_repository(root)
    assert found is not None
    return found


async def test_forks_have_their_own_files_and_branches(repository: Repository) -> None:
    trees = Worktrees(repository, "ses_1")
    left, right = await trees.directory("ses_1/left"), await trees.directory("ses_1/right")
    (left / "a.txt").write_text("left")

    assert await trees.directory(None) == repository.root
    assert await trees.directory("ses_1/left") == left
    assert left.parent == repository.root.parent / "shop.worktrees"
    assert not (right / "a.txt").exists()
    assert repository.has_branch(branch_of("ses_1/left"))
    assert await Worktrees(repository, "ses_1").directory("ses_1/left") == left


async def test_a_removed_work_tree_comes_back_on_its_branch(repository: Repository) -> None:
    trees = Worktrees(repository, "ses_1")
    path = await trees.directory("left")
    repository.run_text("worktree", "remove", str(path))

    assert await trees.directory("left") == path
    assert path.is_dir()


async def test_files_that_are_in_the_way_stay(repository: Repository) -> None:
    name = worktree_name("ses_1", "left")
    place = repository.root.parent / "shop.worktrees" / name
    place.mkdir(parents=True)
    (place / "mine").touch()

    with pytest.raises(WorktreeError, match="move it away"):
        await Worktrees(repository, "ses_1").directory("left")
    assert (place / "mine").exists()


@pytest.mark.parametrize("fork", ["../../etc", "-b", "", "ä", "a" * 300, "left"])
def test_names_are_safe_for_directories_and_branches(fork: str) -> None:
    name = worktree_name("s", fork)

    assert name.replace("-", "").isalnum()
    assert name.isascii()
    assert not name.startswith("-")
    assert len(name) < 64
    assert name != worktree_name("s", f"{fork}x")
