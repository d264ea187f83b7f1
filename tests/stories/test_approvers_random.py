"""No commit ever names an approver whose approval does not cover its content.

Random sessions with two approvers, random commits, amends, rebases, squashes and copies, with a
real server, real hooks and real git. `ACCORD_LONG=1` tries many more, and others each time.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accord.core.provenance.commit_message.parser import parse_message
from accord.git import why
from accord.git.repository import Repository
from tests.helpers.attacks.approval_scene import PROPOSAL
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves
from tests.stories.test_approvals_cover_content import Scene
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import at_work

LONG = bool(os.environ.get("ACCORD_LONG"))
EXAMPLES, MIN_STEPS, MAX_STEPS = (40, 4, 16) if LONG else (3, 9, 11)
PATHS, APPROVERS = ("a", "b"), ("bob", "dave")
KINDS = (
    *("write", "edit", "commit", "hand", "commit", "amend", "write", "commit one"),
    *("squash", "fixup", "copied message", "rebase", "merge squash", "revert and pick"),
)


class Step(NamedTuple):
    """What is done next, with which file, and who approves it if it is a call."""

    kind: str
    path: str
    approver: str


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
    """Plays steps in a scene and keeps who approved what."""

    def __init__(self, scene: Scene, voters: dict[str, WebSocketClient]) -> None:
        self.scene, self.voters = scene, voters
        self.approved = {name: ApprovedCalls() for name in voters}
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
            case "commit":
                await self.commit("-a")
            case "commit one":
                await self.scene.git("add", step.path)
                await self.commit()
            case _ if not is_at_base:
                await self.rewrite(step.kind)
            case _:
                pass

    async def commit(self, *words: str) -> None:
        message = f"feat: {self.number}"
        await self.scene.git("commit", "-q", "--allow-empty", "-m", message, *words)

    async def write(self, step: Step) -> None:
        content = f"{step.path}{self.number}\n"
        await self.run(step, "write_file", path=step.path, content=content)
        self.approved[step.approver].writes.append((step.path, content))
        self.scene.write(step.path, content)

    async def edit(self, step: Step) -> None:
        content = self.scene.read(step.path)
        old, new = content.splitlines()[0], f"{step.path}{self.number}"
        await self.run(step, "edit_file", path=step.path, old_string=old, new_string=new)
        self.approved[step.approver].edits.append((step.path, old, new))
        self.scene.write(step.path, content.replace(old, new, 1))

    async def run(self, step: Step, tool_name: str, **arguments: str) -> None:
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
        await work.finish(proposal)

    async def rewrite(self, kind: str) -> None:
        git = self.scene.git
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
                await git("stash", "-q")
                await git("branch", "-f", "topic")
                await git("reset", "-q", "--hard", self.base)
                await git("merge", "-q", "--squash", "topic")
                await git("commit", "-q", "--allow-empty", "-m", f"Squashed {self.number}")
            case "revert and pick":
                await git("stash", "-q")
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
        await git("stash", "-q")
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
        listed = await self.scene.git("rev-list", f"{self.base}..HEAD")
        for sha in listed.split():
            named = await asyncio.to_thread(named_approvers, self.scene.repo.folder, sha)
            changed = await self.scene.git("diff", "--name-only", f"{sha}^", sha)
            for path in changed.split():
                before = await self.content_at(f"{sha}^", path)
                after = await self.content_at(sha, path)
                for name in named:
                    calls = self.approved[name.removeprefix("human:")]
                    assert calls.explain(path, before, after), (sha, path, name)
            assert changed or not named, (sha, named)

    async def content_at(self, rev: str, path: str) -> str | None:
        listed = await self.scene.git("ls-tree", rev, "--", path)
        return await self.scene.git("show", f"{rev}:{path}") if listed else None


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


@asynccontextmanager
async def played_scene(server: ServerProcess, folder: Path) -> AsyncIterator[Player]:
    """A repository bound to a session with two people who may approve."""
    repo = Repo(folder, server.home)
    repo.commit("README", "chore: begin")
    await asyncio.to_thread(repo.accord, "git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    token = server.issue_token("dave", roles=["approver"])
    dave = await work.talk.come("dave", token, roles=["approver"])
    told = {"repo": id, "session": work.session}
    await asyncio.to_thread(send_action, work.path, "session-started", **told)
    player = Player(Scene(repo, work, server), {"bob": work.bob, "dave": dave})
    await player.begin()
    yield player
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
    phases=tuple(Phase) if LONG else (Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(STEPS)
def test_no_commit_names_an_approver_whose_approval_does_not_cover_it(
    server: ServerProcess, tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    async def play_all() -> None:
        async with played_scene(server, tmp_path_factory.mktemp("code") / "repo") as player:
            for step in steps:
                await player.play(step)
            await player.check()

    asyncio.run(play_all())
