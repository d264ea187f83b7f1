"""The hook has an opinion in its repository alone, and no agent leaves it with `cd`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from accord.hosts.connections import hook_arguments
from accord.hosts.gate_hook import is_inside
from accord.hosts.hook_events import PRE_TOOL


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record of a repository, in a configuration directory whose daemon cannot start."""
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    git("init", "-q", str(root))
    path = tmp_path / "config" / "connections" / "r.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"root": str(root)}))
    (tmp_path / "config" / "daemon.sock").mkdir()  # connecting fails at once
    return path


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)


def is_silent(
    record: Path,
    cwd: Path,
    *,
    said: Path | None = None,
    asked: dict[str, object] | None = None,
    **env: str,
) -> bool:
    """Whether the hook lets the call pass without asking the daemon."""
    call = {"tool_name": "Bash", "tool_input": asked or {"command": "x"}, "cwd": str(said or cwd)}
    done = subprocess.run(
        hook_arguments(record, "claude-code", PRE_TOOL),
        input=json.dumps(call),
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **env},
        check=False,
    )
    refused = "deny" in done.stdout
    assert refused != (done.stdout == "" and done.returncode == 0), done
    return not refused


def test_in_the_repository_and_below_it_decides(record: Path, tmp_path: Path) -> None:
    assert not is_silent(record, tmp_path / "repo")
    assert not is_silent(record, tmp_path / "repo" / "src")


def test_elsewhere_it_is_silent_even_while_the_daemon_is_broken(
    record: Path, tmp_path: Path
) -> None:
    assert is_silent(record, tmp_path / "elsewhere")
    (tmp_path / "repository").mkdir()
    assert is_silent(record, tmp_path / "repository"), "a name that only begins alike"


def test_an_agent_that_changed_the_directory_is_still_gated(record: Path, tmp_path: Path) -> None:
    outside, repo = tmp_path / "elsewhere", tmp_path / "repo"

    assert not is_silent(record, outside, CLAUDE_PROJECT_DIR=str(repo))
    assert not is_silent(record, outside, said=repo)
    assert not is_silent(record, repo, said=outside)


def test_a_symbolic_link_into_the_repository_is_inside(record: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "repo")

    assert not is_silent(record, tmp_path / "elsewhere", said=link / "src")


def test_a_record_that_cannot_be_read_refuses(record: Path, tmp_path: Path) -> None:
    record.write_text("{")

    assert not is_silent(record, tmp_path / "elsewhere")


def test_other_work_trees_of_the_repository_are_inside(record: Path, tmp_path: Path) -> None:
    root, tree, other = tmp_path / "repo", tmp_path / "tree", tmp_path / "other"
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git("-C", str(root), *name, "commit", "-q", "--allow-empty", "-m", "x")
    git("-C", str(root), "worktree", "add", "-q", str(tree))
    git("clone", "-q", str(root), str(other))

    assert is_inside(str(root), str(tree / "deep"))
    assert not is_inside(str(root), str(other))
    assert not is_silent(record, tree)
    assert is_silent(record, other)


@pytest.mark.parametrize(
    "asked",
    [
        {"command": "echo x > {repo}/made"},
        {"command": "cd '{repo}' && touch made"},
        {"command": "git -C {repo} push"},
        {"command": "tool --out={repo}/made"},
        {"command": "touch ../repo/made"},
        {"command": "touch ~/repo/made"},
        {"command": "cp x ${{HOME}}/repo"},
        {"command": "touch {link}/made"},
        {"file_path": "{repo}/made", "content": "x"},
        {"edits": [{"path": "../repo/src/made"}]},
        {"patch": "*** Add File: {repo}/made\n+x\n"},
    ],
)
def test_a_call_from_elsewhere_that_names_the_repository_is_gated(
    record: Path, tmp_path: Path, asked: dict[str, object]
) -> None:
    outside, repo, link = (tmp_path / name for name in ("elsewhere", "repo", "link"))
    link.symlink_to(repo)
    text = json.dumps(asked).replace("{repo}", str(repo)).replace("{link}", str(link))
    named = json.loads(text.replace("${{HOME}}", "${HOME}"))

    assert not is_silent(record, outside, asked=named, HOME=str(tmp_path))


@pytest.mark.parametrize("command", ["touch made", "cat ../repository/x", "ls /", "echo repo"])
def test_a_call_from_elsewhere_that_does_not_is_left_alone(
    record: Path, tmp_path: Path, command: str
) -> None:
    assert is_silent(record, tmp_path / "elsewhere", asked={"command": command})
