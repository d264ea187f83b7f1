"""No commit ever names an approver whose approval does not cover its content.

Random sessions with two approvers, random commits, amends, rebases, squashes, merges and copies,
with a real server, real hooks, real git and a second clone. A plain commit of what one person
approved names that person. `ACCORD_LONG=1` tries many more, and others each time; without
a server, `tests/core/provenance/coverage/test_coverage_random.py` tries hundreds.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from accord.core.provenance.attestation import parse_envelope, parse_statement
from accord.core.provenance.commit_message.parser import parse_message
from accord.git import why
from accord.git.repository import Repository
from tests.helpers.attacks.approval_scene import PROPOSAL
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves
from tests.stories.test_approvals_cover_content import BACK_DOOR, Scene
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import Work, at_work

LONG = bool(os.environ.get("ACCORD_LONG"))
EXAMPLES, MIN_STEPS, MAX_STEPS = (40, 4, 16) if LONG else (2, 9, 11)
PATHS, APPROVERS = ("a", "b"), ("bob", "dave")
NOBODY = "nobody"  # who changed something by hand, or by a call whose approval does not count
KINDS = (
    *("write", "edit", "commit", "hand", "commit", "amend", "write", "commit one"),
    *("squash", "fixup", "copied message", "rebase", "merge squash", "revert and pick"),
    *("failed write", "taken back", "merge", "other clone"),
)


class Step(NamedTuple):
    """What is done next, with which file, and who approves it if it is a call."""

    kind: str
    path: str
    approver: str


# Every kind of commit and every call that does not count, once: the random ones may miss some.
WHOLE_STORY = tuple(
    Step(*words.rsplit(maxsplit=2))
    for words in (
        *("write a bob", "write b bob", "commit one a bob", "commit one b bob"),
        *("taken back a dave", "write b dave", "commit one b dave", "commit a dave"),
        *("failed write b bob", "edit a dave", "commit one a dave", "commit b bob", "merge a bob"),
        *("write b bob", "other clone b bob", "edit a bob", "commit a bob", "hand b bob"),
        *("amend b bob", "rebase a bob", "write a dave", "squash a bob", "write a bob"),
        "commit a bob",
    )
)
STORY_NAMES = {"bob": 3, "dave": 2}  # how many of these commits name whom
STEPS = st.lists(
    st.builds(Step, st.sampled_from(KINDS), st.sampled_from(PATHS), st.sampled_from(APPROVERS)),
    min_size=MIN_STEPS,
    max_size=MAX_STEPS,
)


class ApprovedCalls:
    """What one person approved and what ran, kept apart from what the product records of it."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, str]] = []
        self.edits: list[tuple[str, str, str]] = []

    def explain(self, path: str, before: str | None, after: str | None) -> bool:
        """Whether these calls alone, in any order, lead from one content to the other."""
        reached = {before, *(text for name, text in self.writes if name == path)}
        for _ in self.edits:
            reached |= {
                content.replace(old, new)
                for name, old, new in self.edits
                for content in reached
                if name == path and content is not None and content.count(old) == 1
            }
        return after in reached and after != before


class Player:
    """Plays steps in a scene and keeps who approved what.

    `makers` are those whose calls made the difference of a path to the last commit.
    """

    def __init__(self, scene: Scene, clone: Scene, voters: dict[str, WebSocketClient]) -> None:
        self.scene, self.clone, self.voters = scene, clone, voters
        self.approved = {name: ApprovedCalls() for name in voters}
        self.makers: dict[str, set[str]] = {}
        self.named = dict.fromkeys(voters, 0)
        self.number = 0
        self.base = ""

    async def begin(self) -> None:
        for path in PATHS:
            self.scene.write(path, f"{path}0\n")
        self.base = await self.scene.commit("chore: by hand")

    async def play(self, step: Step) -> None:
        """Play one step; what is not possible now is left out."""
        self.number += 1
        is_at_base = await self.scene.sha("HEAD") == self.base
        match step.kind:
            case "write":
                await self.write(step)
            case "edit":
                await self.edit(step)
            case "hand":
                old = self.scene.read(step.path)
                self.scene.write(step.path, f"{old}back door {self.number}\n")
                self.makers.setdefault(step.path, set()).add(NOBODY)
            case "failed write" | "taken back":
                await self.write_without_approval(step)
            case "commit":
                await self.commit("-a")
            case "commit one":
                await self.scene.git("add", step.path)
                await self.commit()
            case "other clone":
                await self.commit_in_clone(step.path)
            case "merge":
                await self.merge()
            case _ if not is_at_base:
                await self.rewrite(step.kind)
            case _:
                pass

    async def commit(self, *words: str) -> None:
        """Commit; the only person whose calls made all of it must be named."""
        message = f"feat: {self.number}"
        await self.scene.git("commit", "-q", "--allow-empty", "-m", message, *words)
        changed = (await self.scene.git("diff", "--name-only", "HEAD^", "HEAD")).split()
        makers = set().union(*(self.makers.pop(path, {NOBODY}) for path in changed))
        if len(makers) == 1 and makers != {NOBODY}:
            (name,) = makers
            assert name in self.scene.approvers(), (self.number, changed)
            self.named[name] += 1

    async def commit_in_clone(self, path: str) -> None:
        """Commit this file, as it is, in the other clone, which then has its runs."""
        self.clone.write(path, self.scene.read(path))
        await self.clone.git("add", path)
        await self.clone.git("commit", "-q", "--allow-empty", "-m", f"feat: {self.number}")
        if path in self.makers:
            self.makers[path].add(NOBODY)

    async def merge(self) -> None:
        """Merge what was committed by hand on another branch."""
        git = self.scene.git
        await self.stash()
        await git("switch", "-q", "--detach", self.base)
        self.scene.write(f"side{self.number}", BACK_DOOR)
        await self.scene.commit("chore: by hand")
        await git("branch", "-f", "side")
        await git("switch", "-q", "main")
        await git("merge", "-q", "--no-ff", "--no-edit", "side")

    async def stash(self) -> None:
        await self.scene.git("stash", "-q")
        self.makers.clear()

    async def write(self, step: Step) -> None:
        content = f"{step.path}{self.number}\n"
        await self.run(step, "write_file", path=step.path, content=content)
        self.approved[step.approver].writes.append((step.path, content))
        self.change(step.path, content, {step.approver})

    async def write_without_approval(self, step: Step) -> None:
        """The file is written, although the call failed or its grant was taken back."""
        content = f"{step.path}{self.number}\n"
        arguments = {"path": step.path, "content": content}
        await self.run(step, "write_file", counts=False, **arguments)
        self.change(step.path, content, {NOBODY})

    def change(self, path: str, content: str, makers: set[str]) -> None:
        self.scene.write(path, content)
        self.makers[path] = makers

    async def edit(self, step: Step) -> None:
        content = self.scene.read(step.path)
        old, new = content.splitlines()[0], f"{step.path}{self.number}"
        await self.run(step, "edit_file", path=step.path, old_string=old, new_string=new)
        self.approved[step.approver].edits.append((step.path, old, new))
        makers = self.makers.get(step.path, set()) | {step.approver}
        self.change(step.path, content.replace(old, new, 1), makers)

    async def run(
        self, step: Step, tool_name: str, *, counts: bool = True, **arguments: str
    ) -> None:
        """The agent proposes, one of the approvers says yes, it runs."""
        work, voter = self.scene.work, self.voters[step.approver]
        prompt = await work.prompt(f"Step {self.number}")
        call = {"tool_name": tool_name, "arguments": arguments, "category": "file_write"}
        bot, session = work.talk.bot, work.session
        proposal = await bot.send("tool.propose", session, PROPOSAL | call, ref=prompt)
        await voter.receive_until("gate.request", action_ref=proposal)
        vote = {"tool_proposal": proposal, "approver": step.approver}
        await voter.send("tool.approve", session, vote)
        await bot.receive_until("tool.execute", tool_proposal=proposal)
        if step.kind == "taken back":
            said = {"tool_proposal": proposal, "rejector": step.approver, "reason": "Wait"}
            await voter.send("tool.reject", session, said)
            await bot.receive_until("tool.reject", tool_proposal=proposal)
        else:
            await work.finish(proposal, success=counts)

    async def rewrite(self, kind: str) -> None:
        git = self.scene.git
        is_merge = await git("rev-list", "--merges", "-1", "HEAD^!")
        is_empty = not await git("diff", "--name-only", "HEAD^", "HEAD")
        if kind in ("amend", "copied message"):  # of everything that lies there
            self.makers.clear()
        if kind == "revert and pick" and (is_merge or is_empty):
            return
        match kind:
            case "amend":
                await git("commit", "-q", "-a", "--amend", "--no-edit", "--allow-empty")
            case "squash":
                message = await git("log", "-1", "--format=%B")
                await git("reset", "-q", "--soft", self.base)
                await git("commit", "-q", "--allow-empty", "-m", message)
            case "copied message":
                await git("commit", "-q", "-a", "--allow-empty", "-C", "HEAD")
            case "merge squash":
                await self.stash()
                await git("branch", "-f", "topic")
                await git("reset", "-q", "--hard", self.base)
                await git("merge", "-q", "--squash", "topic")
                await git("commit", "-q", "--allow-empty", "-m", f"chore: squash {self.number}")
            case "revert and pick":
                await self.stash()
                head = await self.scene.sha("HEAD")
                await git("revert", "--no-edit", head)
                await git("cherry-pick", "--allow-empty", "--keep-redundant-commits", head)
            case "rebase":
                await self.rebase("1s/^pick/pick/")
            case _:
                await self.rebase("2s/^pick/fixup/")

    async def rebase(self, script: str) -> None:
        """Rebase onto another commit by hand, with this change of the list of steps."""
        git = self.scene.git
        await self.stash()
        await git("branch", "-f", "topic")
        await git("switch", "-q", "--detach", self.base)
        self.scene.write("other", f"{self.number}\n")
        onto = await self.scene.commit("chore: by hand")
        await git("switch", "-q", "main")
        edit = f"sequence.editor=sed -i.bak '{script}'"
        words = ("rebase", "-q", "-i", "--empty=keep", "--onto", onto, self.base)
        await git("-c", edit, *words)
        self.base = onto

    async def check(self) -> None:
        """Everyone whom a commit names approved all of its changes."""
        first = (await self.clone.git("rev-list", "--max-parents=0", "HEAD")).strip()
        for scene, base in ((self.scene, self.base), (self.clone, first)):
            listed = await scene.git("rev-list", f"{base}..HEAD")
            for sha in listed.split():
                await self.check_commit(scene, sha)

    async def check_commit(self, scene: Scene, sha: str) -> None:
        named = await asyncio.to_thread(named_approvers, scene.repo.folder, sha)
        named |= await asyncio.to_thread(exported_approvers, scene, sha)
        changed = await scene.git("diff", "--name-only", f"{sha}^", sha)
        for path in changed.split():
            before = await content_at(scene, f"{sha}^", path)
            after = await content_at(scene, sha, path)
            for name in named:
                calls = self.approved[name.removeprefix("human:")]
                assert calls.explain(path, before, after), (sha, path, name)
        assert changed or not named, (sha, named)


async def content_at(scene: Scene, rev: str, path: str) -> str | None:
    listed = await scene.git("ls-tree", rev, "--", path)
    return await scene.git("show", f"{rev}:{path}") if listed else None


def exported_approvers(scene: Scene, sha: str) -> set[str]:
    """Whom the server's signed statement names for a commit; nobody if it has none."""
    id = scene.repo.git("config", "accord.repo").strip()
    try:
        envelope = scene.server.admin_request("GET", f"/admin/repos/{id}/commits/{sha}/statement")
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return set()
    statement = parse_statement(parse_envelope(json.dumps(envelope)).payload)
    assert statement.commit == sha
    return {name for made in statement.decisions for name in made.approved_by}


def named_approvers(folder: Path, sha: str) -> set[str]:
    """Whom trailers, note and `accord why` name for a commit."""
    with Repository(folder) as repo:
        (explained,) = why.with_coverage(repo, [why.explain_commit(repo, sha)])
        message = parse_message(repo.commit(sha).message)
    recorded = {
        vote["by"]
        for made in explained.record.get("decisions", ())
        if made.get("git_sha") == sha
        for vote in made.get("approvals", ())
    }
    return {*explained.coverage.approvers, *map(str, message.approved_by), *recorded}


async def bound_repository(work: Work, server: ServerProcess, folder: Path) -> Scene:
    repo = Repo(folder, server.home)
    repo.commit("README", "chore: begin")
    await asyncio.to_thread(repo.accord, "git", "install")
    told = {"repo": repo.git("config", "accord.repo").strip(), "session": work.session}
    await asyncio.to_thread(send_action, work.path, "session-started", **told)
    return Scene(repo, work, server)


@asynccontextmanager
async def played_scene(server: ServerProcess, folder: Path) -> AsyncIterator[Player]:
    """A repository bound to a session with two people who may approve."""
    work = await at_work(server)
    token = server.issue_token("dave", roles=["approver"])
    dave = await work.talk.come("dave", token, roles=["approver"])
    scene = await bound_repository(work, server, folder)
    clone = await bound_repository(work, server, folder.with_name("clone"))
    player = Player(scene, clone, {"bob": work.bob, "dave": dave})
    try:
        await player.begin()
        yield player
    finally:
        await dave.socket.close()
        await work.leave()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@proves("GIT-MAP-3", "UNI-14")
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not LONG,
    phases=(Phase.explicit, Phase.generate),  # a smaller example would take many minutes
    suppress_health_check=list(HealthCheck),
)
@given(STEPS)
@example(list(WHOLE_STORY))
def test_no_commit_names_an_approver_whose_approval_does_not_cover_it(
    server: ServerProcess, tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    async def play_all() -> None:
        async with played_scene(server, tmp_path_factory.mktemp("code") / "repo") as player:
            for step in steps:
                await player.play(step)
            await player.check()
            assert steps != [*WHOLE_STORY] or player.named == STORY_NAMES

    asyncio.run(play_all())
