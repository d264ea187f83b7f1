"""`accord agent --worktree`: an approved command covers what it left in the fork's work tree."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord.agents.tools.work_tree_record import WorkTreeRecorder
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from tests.agents.test_loop import open_session
from tests.cli.agent.test_agent import agent_env, joined
from tests.helpers.clients.agent_process import agent_process
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

ACP_EXAMPLE = Path(__file__).parents[1] / "helpers" / "hosts" / "acp_example.py"
BACK_DOOR = "import os; os.system(input())\n"
RUNS = (
    ["cp", "base.py", "copy.py"],
    ["sh", "-c", "cat copy.py base.py > both.py"],
)
SCRIPT = {
    "reply": [
        {"steps": [*({"propose": "shell", "arguments": {"argv": each}} for each in RUNS)]},
    ]
}


@pytest.fixture
def repo(tmp_path: Path, server: ServerProcess) -> WorkTree:
    made = WorkTree.create(tmp_path).with_environment(
        ACCORD_HOME=str(server.home),
        ACCORD_URL=server.url,
        ACCORD_TOKEN=server.issue_token("alice", roles=["admin"]),
    )
    made.commit("chore: begin", "base.py", "x = 1\n")
    assert made.accord("git", "install").code == 0
    extend_hook_timeout(made.path / ".git/hooks")
    return made


async def run_in_fork(
    server: ServerProcess,
    repo: WorkTree,
    labels: tuple[str, ...],
    between: Callable[[WorkTree], Any],
) -> WorkTree:
    """The agent runs both commands, which Alice approves; the work tree of the fork afterwards."""
    folder = repo.path.parent
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    id = repo.accord("session", "create", "--name", "Copies").out.strip()
    words = ("--provider", "scripted", "--script", str(folder / "script.json"), "--worktree")
    env = agent_env(server, folder / "helper") | {
        "ACCORD_TOKEN": server.issue_token("helper", "agent", ["driver"], labels)
    }
    async with open_session(server, id) as room:
        with agent_process(id, *words, cwd=repo.path, log=folder / "log", env=env):
            await joined(room, "helper")
            fork = await room.alice.fork("Try it", ["helper"])
            await room.alice.within(fork).prompt("Copy it", "helper")
            await room.wait_for(GateRequest)
            (directory,) = (folder / f"{repo.path.name}.worktrees").iterdir()
            tree = repo.in_directory(directory)
            for number in (1, 2):
                await room.wait_for(GateRequest, number)
                if number == 2:
                    between(tree)
                proposal = room.messages_of(ToolPropose)[-1].id
                await room.alice.within(fork).approve(proposal)
                result: ToolResult = await room.wait_for(ToolResult, number)
                assert result.success
    return tree


def approvers(tree: WorkTree) -> str | None:
    return tree.trailers().get("Approved-By")


def decision(tree: WorkTree) -> dict[str, Any]:
    (made,) = json.loads(tree.note())["decisions"]
    told: dict[str, Any] = made
    return told


@proves("PVP-18.4-2")
async def test_approved_commands_in_a_work_tree_of_their_own_cover_what_they_left(
    server: ServerProcess, repo: WorkTree
) -> None:
    tree = await run_in_fork(server, repo, ("executor",), lambda _: None)
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "explore: copies")

    assert approvers(tree) == "human:alice"
    assert decision(tree)["covers"] == "whole"
    assert "approved by  human:alice" in tree.accord("why", "both.py:1").out

    tree.write("both.py", BACK_DOOR)
    tree.git("commit", "-q", "--amend", "--no-edit")
    assert approvers(tree) is None
    assert "No approval covers both.py" in tree.accord("why", "both.py:1").out


async def test_what_lay_there_by_hand_makes_a_run_context(
    server: ServerProcess, repo: WorkTree
) -> None:
    """The second command reads a file that somebody changed after the first one."""
    tree = await run_in_fork(
        server, repo, ("executor",), lambda tree: (tree.path / "copy.py").write_text(BACK_DOOR)
    )
    tree.git("add", "both.py")
    tree.git("commit", "-q", "-m", "explore: copies")

    assert (tree.path / "both.py").read_text().startswith(BACK_DOOR)
    assert approvers(tree) is None
    assert decision(tree)["covers"] == "none"


async def test_an_edit_after_the_runs_is_not_theirs(server: ServerProcess, repo: WorkTree) -> None:
    tree = await run_in_fork(server, repo, ("executor",), lambda _: None)
    tree.write("base.py", BACK_DOOR)
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "explore: copies")

    assert approvers(tree) is None
    made = decision(tree)
    assert made["covers"] == "part"
    assert {path for each in made["coverage"] for path in each["paths"]} == {"copy.py", "both.py"}


async def test_the_record_of_a_token_without_the_label_is_no_evidence(
    server: ServerProcess, repo: WorkTree
) -> None:
    tree = await run_in_fork(server, repo, (), lambda _: None)
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "explore: copies")

    assert approvers(tree) is None
    assert decision(tree)["covers"] == "none"


async def test_a_host_in_a_work_tree_is_not_recorded_and_keeps_others_from_recording(
    server: ServerProcess, repo: WorkTree
) -> None:
    folder = repo.path.parent
    id = repo.accord("session", "create", "--name", "Copies").out.strip()
    env = agent_env(server, folder / "helper") | {
        "ACCORD_TOKEN": server.issue_token("helper", "agent", ["driver"], ["executor"])
    }
    words = ("--acp", f"{sys.executable} {ACP_EXAMPLE}", "--worktree")
    async with open_session(server, id) as room:
        with agent_process(id, *words, cwd=repo.path, log=folder / "log", env=env):
            await joined(room, "helper")
            fork = await room.alice.fork("Try it", ["helper"])
            aside = room.alice.within(fork)
            await aside.prompt("touch", "helper")
            await room.wait_for(GateRequest)
            (directory,) = (folder / f"{repo.path.name}.worktrees").iterdir()
            async with WorkTreeRecorder(directory).run() as run:
                assert await run.metadata() is None
            await aside.approve(room.messages_of(ToolPropose)[-1].id)
            result: ToolResult = await room.wait_for(ToolResult)
    async with WorkTreeRecorder(directory).run() as run:
        assert await run.metadata() is not None

    assert (result.success, result.metadata) == (True, None)
    assert (directory / "mark").exists()
