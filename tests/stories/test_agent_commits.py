"""An agent and a person commit in one repository, and nobody names the session to git."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.agents.script import Reply, Script, ScriptStep
from accord.client import Client
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.conversation.responses import ResponseEnd
from accord.core.room.forking.merges import MergeExecute
from tests.agents.test_loop import open_session, run_agent
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves


def runs(*argv: str, **more: Any) -> ScriptStep:
    return ScriptStep(propose="shell", arguments={"argv": list(argv)}, description=argv[0], **more)


def writes(path: str, content: str) -> ScriptStep:
    arguments = {"path": path, "content": content}
    return ScriptStep(propose="write_file", arguments=arguments, description=f"Write {path}")


# Deleting is refused; then the file is written and committed.
SCRIPT = Script(
    (
        Reply(
            (
                runs("rm", "-r", "docs"),
                writes("title.txt", "The parser\n"),
                runs("git", "add", "title.txt"),
                runs("git", "commit", "-q", "-m", "feat: give it a title"),
                ScriptStep(say="Committed."),
            ),
            when="give",
        ),
        Reply((ScriptStep(say="Then write it yourself."),), when="and"),
    )
)


@pytest.fixture
def repo(tmp_path: Path, server: ServerProcess) -> WorkTree:
    """Alice's, with hooks; her server's data lies elsewhere."""
    made = WorkTree.create(tmp_path).with_environment(
        ACCORD_HOME=str(server.home),
        ACCORD_URL=server.url,
        ACCORD_TOKEN=server.issue_token("alice", roles=["admin"]),
    )
    made.git("config", "user.email", "alice@example.org")
    made.write("docs/manual.md", "Old\n")
    made.git("commit", "-q", "-m", "chore: begin")
    assert made.accord("git", "install").code == 0
    extend_hook_timeout(made.path / ".git/hooks")
    return made


@proves("PVP-18.1-1", "PVP-18.3-1", "PVP-18.4-1", "PVP-18.4-2")
async def test_who_works_in_a_repository_gets_linked_commits_without_a_word_about_it(
    server: ServerProcess, repo: WorkTree
) -> None:
    id = repo.accord("session", "create", "--name", "Titles").out.strip()
    told = {"ACCORD_HOME": str(server.home)}
    async with (
        open_session(server, id) as room,
        run_agent(server, id, repo.path, script=SCRIPT, extra_env=told),
    ):
        await room.alice.prompt("Give it a title", "claude")
        for number in range(1, 5):
            await room.wait_for(GateRequest, number)
            gate = room.messages_of(GateRequest)[-1].id
            if number == 1:
                await room.alice.reject(gate, "We keep the docs")
            else:
                await room.alice.approve(gate, "Yes")
        await room.wait_for(ResponseEnd, 1)
        by_agent = repo.head()
        await room.alice.prompt("And a subtitle?", "claude")
        await room.wait_for(ResponseEnd, 2)
    by_hand = repo.commit("feat: give it a subtitle", "subtitle.txt")
    unasked = repo.commit("chore: tidy up", "tidy.txt")

    for sha in (by_agent, by_hand):
        assert repo.trailers(sha)["PVP-Session"] == id
        assert repo.trailers(sha)["PVP-Decision"] in repo.note(sha)
    assert repo.trailers(by_agent)["Decision-By"] == "agent:claude,human:alice"
    assert repo.trailers(by_hand)["Decision-By"] == "human:alice"
    assert repo.trailers(by_agent)["Approved-By"] == "human:alice"
    assert "Approved-By" not in repo.trailers(by_hand)
    assert repo.trailers(unasked) == {}
    (made,) = json.loads(repo.note(by_agent))["decisions"]
    assert [each["reason"] for each in made["alternatives_considered"]] == ["We keep the docs"]
    assert made["decision_type"] == "implementation"
    why = repo.accord("why", "title.txt:1").out
    assert "instead of   rm: We keep the docs" in why
    assert "approved by  human:alice" in why


BY_COMMAND = Script(
    (
        Reply(
            (
                runs("cp", "docs/manual.md", "copy.md"),
                runs("git", "add", "copy.md"),
                # Everybody sees the tree that git says, not the one that the script says.
                ScriptStep(
                    propose="shell",
                    arguments={
                        "argv": ["git", "commit", "-q", "-m", "docs: copy the manual"],
                        "tree": "0" * 40,
                    },
                ),
                ScriptStep(say="Committed."),
            )
        ),
    )
)


@proves("PVP-18.4-2")
@pytest.mark.parametrize("staged", ["", "back_door.py"])
async def test_who_approves_the_commit_call_of_an_agent_approves_the_tree_that_it_shows(
    server: ServerProcess, repo: WorkTree, staged: str
) -> None:
    """No call says what is in `copy.md`; what is staged after the call was shown is not covered."""
    id = repo.accord("session", "create", "--name", "Copy").out.strip()
    told, tree = {"ACCORD_HOME": str(server.home)}, ""
    async with (
        open_session(server, id) as room,
        run_agent(server, id, repo.path, script=BY_COMMAND, extra_env=told),
    ):
        await room.alice.prompt("Copy the manual", "claude")
        for number in range(1, 4):
            await room.wait_for(GateRequest, number)
            tree = repo.git("write-tree")
            if number == 3 and staged:
                repo.write(staged, "import os; os.system(input())\n")
            await room.alice.approve(room.messages_of(GateRequest)[-1].id)
        await room.wait_for(ResponseEnd, 1)
    proposed = room.messages_of(ToolPropose)[-1].body

    assert isinstance(proposed, ToolPropose)
    assert proposed.arguments["tree"] == tree
    assert repo.message().startswith("docs: copy the manual")
    assert (repo.git("rev-parse", "HEAD^{tree}") == tree) == (not staged)
    (made,) = json.loads(repo.note())["decisions"]
    assert made["covers"] == ("none" if staged else "whole")
    assert repo.trailers().get("Approved-By") == (None if staged else "human:alice")


ASIDE = Script(
    (
        Reply(
            (
                writes("title.txt", "The parser\n"),
                runs("git", "add", "title.txt"),
                runs("git", "commit", "-q", "-m", "explore: try a title"),
                ScriptStep(say="Committed."),
            )
        ),
    )
)


@proves("GIT-MAP-2", "PVP-1.2-5", "PVP-3.1-1", "PVP-18.5-1")
@pytest.mark.parametrize("server_runs", [True, False], ids=["", "without a server at first"])
async def test_a_fork_is_a_branch_and_its_merge_a_merge_commit(
    server: ServerProcess, repo: WorkTree, *, server_runs: bool
) -> None:
    id = repo.accord("session", "create", "--name", "Titles").out.strip()
    told = {"ACCORD_HOME": str(server.home)}
    async with (
        open_session(server, id) as room,
        run_agent(server, id, repo.path, script=ASIDE, extra_env=told),
    ):
        fork = await room.alice.fork("Try a title", ["claude"], reason="It has none")
        branch = repo.accord("git", "branch", fork).out.strip()
        repo.git("switch", "-q", branch)
        aside = room.alice.within(fork)
        await aside.prompt("Give it a title", "claude")
        for number in range(1, 4):
            await room.wait_for(GateRequest, number)
            await aside.approve(room.messages_of(GateRequest)[-1].id)
        await room.wait_for(ResponseEnd, 1)
        by_agent = repo.head()
        await aside.prompt("I write the rest myself", "claude")
        await room.wait_for(GateRequest, 4)
        by_hand = repo.commit("explore: try a subtitle", "subtitle.txt")
        repo.git("switch", "-q", "main")
        repo.commit("chore: meanwhile", "other.txt")
        merge = await room.alice.propose_merge(fork, "A title helps")
        await room.alice.execute_merge(merge)
        await room.wait_for(MergeExecute, 1)
    if not server_runs:
        server.kill()
    repo.git("merge", "-q", "--no-edit", branch)
    merged = repo.head()
    if not server_runs:
        assert repo.decision_ids() == []
        server.restart()
        repo.accord("git", "heal")

    assert branch == f"pvp/{fork}"
    for sha in (by_agent, by_hand):
        assert repo.trailers(sha)["PVP-Fork"] == fork
        assert repo.trailers(sha)["PVP-Session"] == id
    assert repo.trailers(by_agent)["Approved-By"] == "human:alice"
    assert repo.trailers(by_agent)["Assisted-by"] == "claude"
    assert repo.message(merged).startswith(f"Merge branch '{branch}'")
    (made,) = json.loads(repo.note(merged))["decisions"]
    (back,) = made["merges"]
    assert (back["fork"], back["summary"], back["done"]) == (fork, "A title helps", True)
    assert made["decided_by"] == ["human:alice"]
    tree = repo.accord("git", "tree", "--session", id).out
    assert f"← fork {fork}" in tree
    assert f"merged by {merged[:10]}" in tree
    assert f"fork {fork} ({branch}): A title helps" in repo.accord("why", merged).out


@proves("GIT-MAP-2")
async def test_a_merge_that_no_session_knows_of_has_no_record(
    server: ServerProcess, repo: WorkTree
) -> None:
    id = repo.accord("session", "create").out.strip()
    async with open_session(server, id) as room:
        fork = await room.alice.fork("Try it", [], reason="To see")
    branch = repo.accord("git", "branch", fork).out.strip()
    repo.git("switch", "-q", branch)
    repo.with_environment(PVP_SESSION_ID=id, PVP_FORK_ID=fork).commit("explore: aside", "a.txt")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", branch)

    assert repo.decision_ids("HEAD^2")
    assert repo.decision_ids() == []


@proves("OPEN-48", "PVP-18.5-1")
async def test_a_merge_typed_in_the_repository_is_approved_at_the_head_of_the_fork_branch(
    server: ServerProcess, repo: WorkTree
) -> None:
    """A commit on the fork's branch voids the approval, and the merge is proposed again."""
    id = repo.accord("session", "create", "--name", "Titles").out.strip()
    token = server.issue_token("claude", "agent", ["driver"])
    agent = repo.with_environment(ACCORD_TOKEN=token)
    async with Client(server.url, token=token) as client:
        await client.join(id, listen=False)
    fork = repo.accord("session", "fork", id, "Try a title", "--with", "claude").out.strip()
    asked = repo.accord("session", "prompt", id, "claude", "Try it", "--fork", fork)
    assert asked.code == 0, asked
    branch = repo.accord("git", "branch", fork).out.strip()
    repo.git("switch", "-q", branch)
    repo.commit("explore: try a title", "title.txt")
    merge = ("session", "merge", id, fork, "--summary", "A title helps")

    def approve_as_shown(head: str) -> None:
        assert "can be merged after approval" in agent.accord(*merge).out
        (gate,) = repo.accord("gates", "--json").json["gates"]
        assert f"{fork} at commit {head[:12]} into" in gate["request"]["message"]
        assert repo.accord("approve", gate["id"]).code == 0

    approve_as_shown(repo.head())
    later = repo.commit("explore: another title", "title.txt")
    approve_as_shown(later)
    assert "was merged into main" in agent.accord(*merge).out
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", branch)

    (made,) = json.loads(repo.note())["decisions"]
    assert made["covers"] == "whole"
    assert [each["head"] for each in made["merges"] if each.get("done")] == [later]
    assert [each["by"] for each in made["approvals"]] == ["human:alice"]
    assert "approved by  human:alice" in repo.accord("why", repo.head()).out
