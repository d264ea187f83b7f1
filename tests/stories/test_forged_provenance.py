"""What anybody can write into a repository is not taken for what the server's log has."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.servers.server_process import ServerProcess
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import at_work, writes

LIE = "human:mallory"


class Scene(NamedTuple):
    """A repository with a commit that Bob approved."""

    repo: Repo
    server: ServerProcess
    id: str
    sha: str

    def told(self, *words: str) -> dict[str, Any]:
        """What `accord why` says of one commit, for programs."""
        reason: dict[str, Any] = json.loads(self.repo.accord("why", *words, "--json"))["reasons"][0]
        return reason

    def lie(self, sha: str, **more: Any) -> None:
        """A note by hand, after the record of the true commit, with somebody's yes besides."""
        note: Any = self.repo.note(self.sha)
        (made,) = note["decisions"]
        made.update(more)
        made["approvals"] += [{"gate": "g", "by": LIE}]
        note["conversation"]["messages"] += [
            {
                "id": "x",
                "type": "gate.approve",
                "from": LIE,
                "content": "Of course",
                "timestamp": "",
            }
        ]
        self.repo.git("notes", "--ref=pvp", "add", "-f", "-m", json.dumps(note), sha)


@pytest.fixture
async def scene(server: ServerProcess, tmp_path: Path) -> AsyncIterator[Scene]:
    repo = Repo(tmp_path / "code", server.home)
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    told = {"repo": id, "session": work.session}
    await asyncio.to_thread(send_action, server.home / "bridge.sock", "session-started", **told)
    await work.tool(await work.prompt("Add a login"), **writes("login.py"))
    sha = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    yield Scene(repo, server, id, sha)
    await work.leave()


def test_approval_added_to_a_note_is_not_believed(scene: Scene) -> None:
    scene.lie(scene.sha)

    asked, offline = scene.repo.accord("why", "HEAD"), scene.repo.accord("why", "HEAD", "--offline")

    assert "human:bob" in asked
    assert "the log of your server" in asked
    assert LIE not in asked
    assert LIE in offline
    assert "a record in git, not confirmed by a server" in offline
    assert "Conversation, from the record in git" in offline
    for said, is_confirmed in ((asked, True), (offline, False)):
        approved = " ".join(said.partition("approved by  ")[2].split())
        words = approved.partition(" session ")[0]
        assert ("by a record in git that no server confirmed" not in words) is is_confirmed


def test_a_note_that_borrows_a_place_on_the_chain_is_vouched_for_by_nobody(scene: Scene) -> None:
    other = scene.repo.commit("evil.py", "feat: evil")
    scene.lie(other, id="dec_00000000000000000000000000", git_sha=other)

    said = scene.repo.accord("why", other)

    assert "a record in git, not confirmed by a server" in said
    assert scene.told(other)["vouched"] == {}


def test_a_commit_that_copies_trailers_is_told_from_the_one_that_was_decided(scene: Scene) -> None:
    copied = scene.repo.git("log", "-1", "--format=%(trailers:unfold)", scene.sha)
    other = scene.repo.commit("evil.py", f"feat: evil\n\n{copied}")
    id = scene.repo.trailer("PVP-Decision")

    said = scene.repo.accord("why", other)

    assert f"the log of your server, for {scene.sha[:10]}" in said
    assert f"first as     {scene.sha[:10]}" in said
    assert scene.told(other)["vouched"] == {id: scene.sha}


def test_a_proof_says_which_commit_had_the_decision_first(scene: Scene) -> None:
    """Whoever may ask the bridge may name a decision again, as an amended commit does."""
    other = scene.repo.commit("evil.py", "chore: evil")
    id = scene.repo.trailer("PVP-Decision", scene.sha)
    send_action(
        scene.server.home / "bridge.sock", "commit-created", repo=scene.id, sha=other, decision=id
    )
    scene.server.stop()

    scene.repo.accord("git", "export", other, "-o", "again.json")
    scene.repo.accord("git", "export", scene.sha, "-o", "first.json")

    again = scene.repo.accord("git", "verify", "again.json")
    assert f"for commit {other} (a rewrite of {scene.sha}), without an approval" in again
    assert "again" not in scene.repo.accord("git", "verify", "first.json")
