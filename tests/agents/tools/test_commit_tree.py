"""The call of a commit shows the tree that git will record."""

from pathlib import Path

import pytest

from accord.agents.tools.call_report import HOST_NAME, CallReporter
from accord.agents.tools.commit_tree import with_commit_tree
from accord.core.policy.reported_call import CallKind
from tests.helpers.git.work_tree import WorkTree


@pytest.mark.parametrize(
    "words",
    [
        "commit -m x",
        "commit -qm x",
        "commit -q -s --message=x --author=A",
        "commit --amend --no-edit",
        "commit -F message.txt --trailer Refs:1",
    ],
)
def test_a_commit_of_the_index_shows_its_tree(tmp_path: Path, words: str) -> None:
    repo = WorkTree.create(tmp_path)
    repo.write("a.txt", "a\n")
    arguments = {"argv": ["git", *words.split()], "tree": "0" * 40}

    shown = with_commit_tree(arguments, repo.path)

    assert shown == {"argv": arguments["argv"], "tree": repo.git("write-tree")}


@pytest.mark.parametrize(
    "words",
    [
        "git commit -a -m x",
        "git commit -am x",
        "git commit --all",
        "git commit -m x a.txt",
        "git commit -m x -- a.txt",
        "git commit --include a.txt",
        "git commit --only -m x",
        "git commit --patch",
        "git commit --pathspec-from-file=list",
        "git commit -m",
        "git -c alias.commit=!sh commit -m x",
        "git status",
        "env git commit -m x",
    ],
)
def test_a_commit_of_anything_else_shows_none(tmp_path: Path, words: str) -> None:
    repo = WorkTree.create(tmp_path)
    repo.write("a.txt", "a\n")

    shown = with_commit_tree({"argv": words.split(), "tree": "0" * 40}, repo.path)

    assert shown == {"argv": words.split()}


def test_without_a_repository_there_is_no_tree(tmp_path: Path) -> None:
    arguments = {"argv": ["git", "commit", "-m", "x"]}

    assert with_commit_tree(arguments, tmp_path) == arguments
    assert with_commit_tree(arguments, tmp_path / "gone") == arguments


@pytest.mark.parametrize("host", [HOST_NAME, "gemini"])
async def test_only_calls_that_we_run_ourselves_get_a_tree(tmp_path: Path, host: str) -> None:
    repo = WorkTree.create(tmp_path)
    repo.write("a.txt", "a\n")
    arguments = {"argv": ["git", "commit", "-m", "x"]}

    made = await CallReporter("claude", host=host).proposal(
        CallKind.SHELL, "shell", arguments, repo.path
    )

    assert made.arguments.get("tree") == (repo.git("write-tree") if host == HOST_NAME else None)
