"""An approval covers what was approved: attacks on trailers, notes, `accord why` and exports.

Real server, real hooks, real git; Bob approves what the agent proposes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.provenance.call_digest import call_digest
from accord.core.views.commit_decision.decision_builder import MAX_CALL_TEXT
from tests.helpers.attacks.approval_scene import PROMPT, error
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import Work, at_work, writes

BOB = "human:bob"
BACK_DOOR = "import os; os.system(input())\n"


class Scene:
    """A repository bound to a session, in which calls are approved and files are committed."""

    def __init__(self, repo: Repo, work: Work, server: ServerProcess) -> None:
        self.repo, self.work, self.server = repo, work, server

    async def approved(self, tool_name: str, *, success: bool = True, **arguments: Any) -> str:
        """Run an approved call of a tool that changes files; the file is written as it says."""
        prompt = await self.work.prompt(f"Use {tool_name}")
        proposal = await self.work.tool(
            prompt,
            finish=False,
            tool_name=tool_name,
            arguments=arguments,
            category="file_write",
            description=f"{tool_name} {arguments.get('path', '')}",
        )
        await self.work.finish(proposal, success=success)
        return proposal

    async def approved_write(self, name: str, content: str, **more: Any) -> str:
        """An approved write, done."""
        proposal = await self.approved("write_file", path=name, content=content, **more)
        self.write(name, content)
        return proposal

    async def approved_edit(self, name: str, old: str, new: str) -> str:
        """An approved edit, done."""
        proposal = await self.approved("edit_file", path=name, old_string=old, new_string=new)
        self.write(name, self.read(name).replace(old, new))
        return proposal

    def write(self, name: str, content: str) -> None:
        file = self.repo.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())

    def read(self, name: str) -> str:
        return (self.repo.folder / name).read_bytes().decode()

    async def git(self, *words: str) -> str:
        """Run git in a thread, because its hooks ask the server of this test."""
        return await asyncio.to_thread(self.repo.git, *words)

    async def commit(self, message: str = "feat: go on", *words: str) -> str:
        await self.git("add", "-A")
        await self.git("commit", "-q", "-m", message, *words)
        return (await self.git("rev-parse", "HEAD")).strip()

    def approvers(self, rev: str = "HEAD") -> str:
        """Whom the trailers name."""
        return self.repo.trailer("Approved-By", rev) + self.repo.trailer("PVP-Approvers", rev)

    def decision(self, rev: str = "HEAD") -> dict[str, Any]:
        """The only decision in the note of a commit."""
        (made,) = self.repo.note(rev)["decisions"]
        told: dict[str, Any] = made
        return told

    async def why(self, target: str = "HEAD") -> dict[str, Any]:
        """What `accord why --json` says of the first commit behind a target."""
        said = await asyncio.to_thread(self.repo.accord, "why", target, "--json")
        reason: dict[str, Any] = json.loads(said)["reasons"][0]
        return reason

    async def is_nobodys(self, rev: str = "HEAD") -> bool:
        """Whether trailers, note, `why` and a signed export name nobody for the commit."""
        shown = await asyncio.to_thread(self.repo.accord, "why", rev)
        notes = self.repo.note(rev)["decisions"]
        exported = [made for made in notes if made["git_sha"] == await self.sha(rev)]
        return (
            not self.approvers(rev)
            and not (await self.why(rev))["coverage"]["approved_by"]
            and "approved by" not in shown
            and not any(made.get("approvals") for made in exported)
        )

    async def sha(self, rev: str) -> str:
        return (await self.git("rev-parse", rev)).strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for all tests of this module, each of which has its own session and repository."""
    with run_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
async def scene(server: ServerProcess, tmp_path: Path) -> AsyncIterator[Scene]:
    repo = Repo(tmp_path / "code", server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    told = {"repo": id, "session": work.session}
    await asyncio.to_thread(send_action, server.home / "bridge.sock", "session-started", **told)
    yield Scene(repo, work, server)
    await work.leave()


async def test_an_approved_write_covers_the_commit_of_its_content(scene: Scene) -> None:
    proposal = await scene.approved_write("login.py", "def login(): ...\n")
    await scene.commit()

    made = scene.decision()
    assert scene.approvers() == BOB
    assert made["covers"] == "whole"
    assert made["coverage"] == [{"approver": BOB, "proposal": proposal, "paths": ["login.py"]}]
    assert [each["by"] for each in made["approvals"]] == [BOB]
    (tool,) = made["tool_executions"]
    assert tool["arguments"] == {"path": "login.py", "content": "def login(): ...\n"}
    assert (tool["outcome"], tool["paths"]) == ("success", ["login.py"])
    assert (await scene.why())["coverage"]["approved_by"] == [BOB]


async def test_a_call_that_the_record_cuts_says_so_with_the_digest_of_all_of_it(
    scene: Scene,
) -> None:
    content = "x" * MAX_CALL_TEXT + "the end\n"
    await scene.approved_write("long.txt", content)
    sha = await scene.commit()

    (tool,) = scene.decision()["tool_executions"]
    digest = call_digest("write_file", {"path": "long.txt", "content": content})
    assert scene.approvers() == BOB
    assert "the end" not in tool["arguments"]["content"]
    assert tool["call_digest"] == digest
    why = await asyncio.to_thread(scene.repo.accord, "why", sha)
    assert digest in why
    assert "the record has the beginnings of its long texts" in " ".join(why.split())
    scene.repo.env |= {"ACCORD_URL": scene.server.url, "ACCORD_TOKEN": scene.server.admin_token}
    await asyncio.to_thread(scene.repo.accord, "git", "export", sha, "-o", "proof.json")
    said = await asyncio.to_thread(scene.repo.accord, "git", "verify", "proof.json")
    assert "calls of which it has only beginnings and a digest: 1" in said


async def test_approving_a_command_approves_no_back_door(scene: Scene) -> None:
    await scene.approved("shell", argv=["ls"])
    scene.write("login.py", BACK_DOOR)
    await scene.commit()

    assert await scene.is_nobodys()
    made = scene.decision()
    assert made["covers"] == "none"
    assert [each["approver"] for each in made["context"]] == [BOB]


async def test_an_approved_edit_covers_the_call_applied_to_the_parent(scene: Scene) -> None:
    scene.write("a.py", "one\ntwo\n")
    await scene.commit("chore: by hand")
    await scene.approved_edit("a.py", "two", "2")
    await scene.approved_edit("a.py", "one", "1")
    await scene.commit()

    assert scene.approvers() == BOB
    assert scene.decision()["covers"] == "whole"


@pytest.mark.parametrize("hunk", ["same file", "same line", "other file", "mode", "symlink"])
async def test_what_is_changed_beside_the_approved_content_is_covered_by_nothing(
    scene: Scene, hunk: str
) -> None:
    """`git commit -a` takes everything that lies there."""
    scene.write("other.py", "x\n")
    scene.write("a.py", "one\ntwo\n")
    await scene.commit("chore: by hand")
    await scene.approved_edit("a.py", "two", "2")
    file = scene.repo.folder / "a.py"
    match hunk:
        case "same file":
            scene.write("a.py", BACK_DOOR + scene.read("a.py"))
        case "same line":
            scene.write("a.py", "one\n2; import os\n")
        case "other file":
            scene.write("other.py", BACK_DOOR)
        case "mode":
            file.chmod(0o755)
        case _:
            content = scene.read("a.py")
            file.unlink()
            file.symlink_to(content)
    await scene.git("commit", "-q", "-a", "-m", "feat: go on")

    covered = [path for entry in scene.decision().get("coverage", ()) for path in entry["paths"]]
    assert await scene.is_nobodys()
    assert covered == (["a.py"] if hunk == "other file" else [])
    if hunk == "other file":
        assert scene.decision()["covers"] == "part"
        assert "The approval of human:bob covers a.py" in await asyncio.to_thread(
            scene.repo.accord, "why", "a.py:2"
        )
        assert "No approval covers other.py" in await asyncio.to_thread(
            scene.repo.accord, "why", "other.py:1"
        )


async def test_a_hand_edit_while_an_approved_command_runs_is_context(scene: Scene) -> None:
    prompt = await scene.work.prompt("Run the tests")
    proposal = await scene.work.tool(prompt, finish=False, arguments={"argv": ["pytest"]})
    scene.write("login.py", BACK_DOOR)
    await scene.work.finish(proposal, result={"files": ["login.py"]})
    await scene.commit()

    assert await scene.is_nobodys()
    assert scene.decision()["context"] == [
        {"approver": BOB, "proposal": proposal, "paths": ["login.py"]}
    ]
    (state,) = (await scene.why())["coverage"]["files"]
    assert (state["path"], state["state"]) == ("login.py", "context")


async def test_a_lying_list_of_files_covers_nothing(scene: Scene) -> None:
    """The agent says of an approved write that it wrote the back door as well."""
    prompt = await scene.work.prompt("Write it")
    proposal = await scene.work.tool(
        prompt,
        finish=False,
        tool_name="write_file",
        arguments={"path": "a.py", "content": "fine\n"},
        category="file_write",
    )
    await scene.work.finish(proposal, metadata={"files": ["a.py", "evil.py"]})
    scene.write("a.py", "fine\n")
    scene.write("evil.py", BACK_DOOR)
    await scene.commit()

    assert await scene.is_nobodys()
    assert scene.decision()["coverage"][0]["paths"] == ["a.py"]


async def test_an_agent_that_says_how_it_left_its_work_tree_is_not_believed(scene: Scene) -> None:
    """Only the record of a token with the label `executor` counts, and this agent has none."""
    base = (await scene.git("rev-parse", "HEAD^{tree}")).strip()
    prompt = await scene.work.prompt("Run the tests")
    proposal = await scene.work.tool(prompt, finish=False, arguments={"argv": ["pytest"]})
    scene.write("login.py", BACK_DOOR)
    await scene.git("add", "-A")
    after = (await scene.git("write-tree")).strip()
    blob = (await scene.git("rev-parse", ":login.py")).strip()
    changes = [{"path": "login.py", "after": blob, "mode": "100644"}]
    record = {"base": base, "before": base, "after": after, "changes": changes}
    await scene.work.finish(proposal, metadata={"work_tree": record})
    await scene.commit()

    assert await scene.is_nobodys()
    assert scene.decision()["covers"] == "none"


@pytest.mark.parametrize("reported", ["failure", "nothing"])
async def test_a_run_that_did_not_succeed_covers_nothing(scene: Scene, reported: str) -> None:
    if reported == "failure":
        await scene.approved_write("a.py", "fine\n", success=False)
    else:
        prompt = await scene.work.prompt("Write it")
        arguments = {"path": "a.py", "content": "fine\n"}
        await scene.work.tool(prompt, finish=False, tool_name="write_file", arguments=arguments)
        scene.write("a.py", "fine\n")
    await scene.commit()

    assert await scene.is_nobodys()


async def test_amended_content_loses_its_approver_and_an_amended_message_does_not(
    scene: Scene,
) -> None:
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    await scene.git("commit", "-q", "--amend", "--no-edit", "--date=2030-01-01T00:00:00Z")
    assert scene.approvers() == BOB
    assert (await scene.why())["coverage"]["approved_by"] == [BOB]

    scene.write("a.py", BACK_DOOR)
    await scene.git("commit", "-q", "-a", "--amend", "--no-edit")

    assert "PVP-Session" in scene.repo.git("log", "-1", "--format=%B")
    assert await scene.is_nobodys()


async def test_a_rebase_that_edits_loses_the_approver(scene: Scene) -> None:
    base = await scene.sha("HEAD")
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    await scene.approved_write("b.py", "fine\n")
    await scene.commit()
    edit = "sed -i.bak 1s/^pick/edit/"
    await scene.git("-c", f"sequence.editor={edit}", "rebase", "-q", "-i", base)
    scene.write("a.py", BACK_DOOR)
    await scene.git("commit", "-q", "-a", "--amend", "--no-edit")
    await scene.git("rebase", "--continue")

    assert await scene.is_nobodys("HEAD~1")
    assert scene.approvers("HEAD") == BOB
    assert (await scene.why("HEAD"))["coverage"]["approved_by"] == [BOB]


async def test_a_rebase_onto_other_work_keeps_what_is_still_the_approved_content(
    scene: Scene,
) -> None:
    await scene.git("switch", "-q", "-c", "topic")
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    await scene.git("switch", "-q", "main")
    scene.write("other.py", "x\n")
    await scene.commit("chore: by hand")
    await scene.git("switch", "-q", "topic")
    await scene.git("rebase", "-q", "main")

    assert scene.approvers() == BOB
    assert (await scene.why())["coverage"]["approved_by"] == [BOB]


@pytest.mark.parametrize("way", ["fixup", "merge --squash"])
async def test_a_squash_of_covered_and_uncovered_names_nobody(scene: Scene, way: str) -> None:
    base = await scene.sha("HEAD")
    await scene.git("switch", "-q", "-c", "topic")
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    scene.write("a.py", "fine\n" + BACK_DOOR)
    await scene.commit("fix: by hand")
    if way == "fixup":
        edit = "sed -i.bak 2s/^pick/fixup/"
        await scene.git("-c", f"sequence.editor={edit}", "rebase", "-q", "-i", base)
    else:
        await scene.git("switch", "-q", "main")
        await scene.git("merge", "-q", "--squash", "topic")
        await scene.git("commit", "-q", "-m", "Squashed (#1)")

    assert await scene.is_nobodys()


async def test_a_squash_of_what_one_person_approved_is_covered(scene: Scene) -> None:
    await scene.git("switch", "-q", "-c", "topic")
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    await scene.approved_edit("a.py", "fine", "finer")
    await scene.commit()
    await scene.git("switch", "-q", "main")
    await scene.git("merge", "-q", "--squash", "topic")
    await scene.git("commit", "-q", "-m", "Squashed (#1)")

    assert (await scene.why())["coverage"]["approved_by"] == [BOB]
    shown = await asyncio.to_thread(scene.repo.accord, "why", "a.py:1", "--offline")
    assert "approved by  human:bob" in shown


async def test_a_cherry_pick_and_a_revert_are_judged_by_their_own_content(scene: Scene) -> None:
    scene.write("a.py", "one\ntwo\nthree\n")
    await scene.commit("chore: by hand")
    await scene.git("switch", "-q", "-c", "topic")
    await scene.approved_edit("a.py", "three", "3")
    picked = await scene.commit()
    await scene.git("switch", "-q", "main")
    await scene.git("cherry-pick", picked)
    assert scene.approvers() == BOB
    assert (await scene.why())["coverage"]["approved_by"] == [BOB]

    await scene.git("revert", "--no-edit", "HEAD")
    assert scene.approvers() == ""
    scene.write("a.py", BACK_DOOR + scene.read("a.py"))
    await scene.commit("chore: by hand")
    await scene.git("cherry-pick", picked)
    assert await scene.is_nobodys()


@pytest.mark.parametrize("way", ["-C", "-m"])
async def test_a_message_reused_for_other_content_names_nobody(scene: Scene, way: str) -> None:
    await scene.approved_write("a.py", "fine\n")
    await scene.commit()
    scene.write("b.py", BACK_DOOR)
    await scene.git("add", "-A")
    message = "HEAD" if way == "-C" else await scene.git("log", "-1", "--format=%B")
    await scene.git("commit", "-q", way, message)

    assert await scene.is_nobodys()


async def test_line_endings_that_git_converts_are_covered_as_git_stores_them(
    scene: Scene,
) -> None:
    scene.write(".gitattributes", "*.txt text\n")
    await scene.commit("chore: by hand")
    await scene.approved_write("a.txt", "one\r\ntwo\r\n")
    await scene.approved_write("b.bin", "one\r\ntwo\r\n")
    await scene.commit()

    assert scene.approvers() == BOB
    assert scene.repo.git("show", "HEAD:a.txt") == "one\ntwo\n"


async def test_a_commit_call_that_showed_its_tree_covers_the_commit(scene: Scene) -> None:
    scene.write("a.py", "by any tool\n")
    await scene.git("add", "-A")
    tree = (await scene.git("write-tree")).strip()
    argv = ["git", "commit", "-q", "-m", "feat: go on"]
    for shown, expected in ((tree, BOB), ("0" * 40, "")):
        prompt = await scene.work.prompt("Commit it")
        await scene.work.tool(prompt, finish=False, arguments={"argv": argv, "tree": shown})
        await scene.git(*argv[1:])
        assert scene.approvers() == expected
        scene.write("a.py", "by another tool\n")
        await scene.git("add", "-A")


async def test_what_a_hook_lies_about_is_seen_by_whoever_has_the_commit(scene: Scene) -> None:
    """A hostile committer tells the server of blobs that the commit does not have."""
    await scene.approved_write("a.py", "fine\n")
    blob = (await scene.git("hash-object", "a.py")).strip()
    scene.write("a.py", BACK_DOOR)
    await scene.git("add", "-A")
    await scene.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "feat: evil")
    sha = await scene.sha("HEAD")
    change = {"path": "a.py", "after": blob, "mode": "100644"}
    response = await scene.work.ask(
        "commit-created",
        repo=scene.repo.git("config", "accord.repo").strip(),
        sha=sha,
        changes=[change],
        files=["a.py"],
    )
    assert response["note"]["decisions"][0]["approvals"]

    shown = await asyncio.to_thread(scene.repo.accord, "why", "a.py:1")
    assert "approved by" not in shown
    assert "No approval covers a.py" in shown
    scene.repo.env |= {
        "ACCORD_URL": scene.server.url,
        "ACCORD_TOKEN": scene.server.admin_token,
    }
    await asyncio.to_thread(scene.repo.accord, "git", "export", sha, "-o", "proof.json")
    with pytest.raises(AssertionError, match="does not have the content"):
        await asyncio.to_thread(scene.repo.accord, "git", "verify", "proof.json")


@proves("GIT-MAP-3")
async def test_a_second_clone_names_nobody_for_what_the_first_one_committed(
    scene: Scene, tmp_path: Path
) -> None:
    """Carol prompts the work of the first clone, Alice that of the second."""
    second = Scene(Repo(tmp_path / "clone", scene.server.home), scene.work, scene.server)
    second.repo.commit("README", "chore: begin")
    await asyncio.to_thread(second.repo.accord, "git", "install")
    id = second.repo.git("config", "accord.repo").strip()
    await scene.work.ask("session-started", repo=id)
    token = scene.server.issue_token("carol", roles=["driver"])
    carol = await scene.work.talk.come("carol", token, roles=["driver"])
    first_prompt = await carol.send(
        "prompt.submit", scene.work.session, PROMPT | {"content": "Log in"}
    )
    await scene.work.talk.bot.receive_until("prompt.submit", content="Log in")
    await scene.work.tool(first_prompt, **writes("login.py", "x\n"))
    scene.write("login.py", "x\n")
    await scene.commit()
    await second.approved_write("logout.py", "y\n")
    await second.approved_write("later.py", "z\n")
    await second.git("add", "logout.py")
    await second.git("commit", "-q", "-m", "feat: log out")
    await carol.socket.close()

    assert scene.repo.trailer("Decision-By") == "agent:bot,human:Bot,human:carol"
    assert second.repo.trailer("Decision-By") == "agent:bot,human:Bot,human:alice"
    assert second.approvers() == BOB
    (made,) = second.repo.note()["decisions"]
    assert [tool.get("elsewhere", False) for tool in made["tool_executions"]] == [False, True]
    assert made["decided_by"] == ["agent:bot", "human:Bot", "human:alice"]
    assert "Log in" not in json.dumps(second.repo.note())


class Fork:
    """A fork with a branch of its own, where the agent changes `a.py` and adds `b.py`."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.id = scene, ""

    async def begin(self) -> None:
        scene, alice = self.scene, self.scene.work.talk.alice
        scene.write("a.py", "one\ntwo\nthree\n")
        await scene.commit("chore: by hand")
        point = await scene.work.prompt("Try it aside")
        said = {"name": "aside", "from_point": point, "reason": "To see", "copy_context": False}
        await alice.send("fork.create", scene.work.session, said | {"participants": ["bot"]})
        self.id = (await alice.receive_until("fork.create"))["fork"]
        await scene.git("branch", f"pvp/{self.id}")
        scene.write("a.py", "eins\ntwo\nthree\n")
        await scene.commit("chore: by hand")
        await scene.git("switch", "-q", f"pvp/{self.id}")
        await self.commit(**{"a.py": "1\ntwo\nthree\n", "b.py": "new\n"})

    async def commit(self, **files: str) -> None:
        """Somebody prompts in the fork, and what comes of it is committed on its branch."""
        work = self.scene.work
        content = f"Change {', '.join(files)}"
        said = PROMPT | {"content": content}
        await work.talk.alice.send("prompt.submit", work.session, said, fork=self.id)
        await work.talk.bot.receive_until("prompt.submit", content=content)
        for name, text in files.items():
            self.scene.write(name, text)
        await self.scene.commit()

    async def approved_merge(self, **metadata: str) -> str:
        """The agent proposes the merge, and Bob approves it."""
        bot, bob, session = (
            self.scene.work.talk.bot,
            self.scene.work.bob,
            self.scene.work.session,
        )
        said = {"source_fork": self.id, "target_fork": "main", "strategy": "append"}
        more = {"summary": "Done", "metadata": metadata}
        proposal = await bot.send("merge.propose", session, said | more)
        gate = await bob.receive_until("gate.request", action_ref=proposal)
        await bob.send("gate.approve", session, {"gate": gate["id"], "approver": "bob"})
        await bot.receive_until("gate.approve", gate=gate["id"], approver="system")
        return proposal

    async def execute(self, proposal: str) -> None:
        await self.scene.work.talk.alice.send(
            "merge.execute", self.scene.work.session, {"merge_proposal": proposal}
        )

    async def merge_in_git(self) -> None:
        """Merge the branch; `a.py` changed on both sides, and the conflict is resolved by hand."""
        scene = self.scene
        await scene.git("switch", "-q", "main")
        with pytest.raises(AssertionError):
            await scene.git("merge", "-q", f"pvp/{self.id}")
        scene.write("a.py", f"1\n{BACK_DOOR}two\nthree\n")
        await scene.git("add", "-A")
        await scene.git("commit", "-q", "--no-edit")


@proves("OPEN-48", "PVP-18.5-1")
@pytest.mark.parametrize("shows_head", [True, False])
async def test_a_merge_is_covered_as_shown_except_what_was_resolved_by_hand(
    scene: Scene, *, shows_head: bool
) -> None:
    fork = Fork(scene)
    await fork.begin()
    head = await scene.sha("HEAD")
    proposal = await fork.approved_merge(**({"head": head} if shows_head else {}))
    await fork.execute(proposal)
    await scene.work.bob.receive_until("merge.execute", merge_proposal=proposal)
    await fork.merge_in_git()

    made = next(each for each in scene.repo.note()["decisions"] if each.get("merges"))
    assert made["git_sha"] == await scene.sha("HEAD")
    assert await scene.is_nobodys()
    covered = [{"approver": BOB, "proposal": proposal, "paths": ["b.py"]}]
    assert made.get("coverage", []) == (covered if shows_head else [])
    states = {each["path"]: each["state"] for each in (await scene.why())["coverage"]["files"]}
    assert states["a.py"] == "uncovered"
    assert states["b.py"] == ("covered" if shows_head else "uncovered")


@proves("OPEN-48")
async def test_a_commit_after_the_head_that_was_shown_voids_the_approved_merge(
    scene: Scene,
) -> None:
    fork = Fork(scene)
    await fork.begin()
    shown = await scene.sha("HEAD")
    proposal = await fork.approved_merge(head=shown)
    scene.write("b.py", BACK_DOOR)
    await scene.git("commit", "-q", "-a", "--amend", "--no-edit")
    amended = await scene.sha("HEAD")
    await fork.execute(proposal)

    refusal = await error(scene.work.talk.alice)
    assert refusal["code"] == "GATE_FAILED"
    assert f"(commit {amended[:12]}); propose it again" in refusal["message"]
    again = await fork.approved_merge(head=amended)
    await fork.execute(again)
    await scene.work.bob.receive_until("merge.execute", merge_proposal=again)


@pytest.mark.parametrize("typed", ["human:eve", "human:bob,human:eve", "Eve <eve@example.org>"])
@pytest.mark.parametrize("covered", [True, False])
async def test_an_approver_typed_into_the_editor_is_removed_if_not_covered(
    scene: Scene, typed: str, *, covered: bool
) -> None:
    await scene.approved_write("a.py", "fine\n")
    if not covered:
        scene.write("a.py", BACK_DOOR)
    await scene.git("add", "-A")
    editor = f"sed -i.bak -e '1s/^/feat: go on/' -e 's/^Decision-By:/Approved-By: {typed}\\n&/'"
    await scene.git("-c", f"core.editor={editor}", "commit", "-q")

    names = scene.approvers().replace("\n", ",").split(",")
    others = ["Eve <eve@example.org>"] if "<" in typed else []
    assert {*names} - {""} == {*([BOB] if covered else []), *others}
    assert scene.decision()["covers"] == ("whole" if covered else "none")
