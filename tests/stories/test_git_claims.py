"""What anybody can write into a repository is not taken for what the server's log has."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.helpers.bridge import ask
from tests.helpers.server import ServerProcess
from tests.stories.test_git import Repo
from tests.transports.test_bridge import at_work

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
    await asyncio.to_thread(ask, server.home / "bridge.sock", "session-started", **told)
    await work.tool(await work.prompt("Add a login"))
    sha = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    yield Scene(repo, server, id, sha)
    await work.leave()


def test_a_yes_that_a_note_adds_is_not_the_servers_word(scene: Scene) -> None:
    scene.lie(scene.sha)

    asked, offline = scene.repo.accord("why", "HEAD"), scene.repo.accord("why", "HEAD", "--offline")

    assert "human:bob" in asked
    assert "the log of your server" in asked
    assert LIE not in asked
    assert LIE in offline
    assert "a record in git; no server here vouches for it" in offline
    assert "What was said, as git has it" in offline


def test_a_note_that_borrows_a_place_on_the_chain_is_vouched_for_by_nobody(scene: Scene) -> None:
    other = scene.repo.commit("evil.py", "feat: evil")
    scene.lie(other, id="dec_00000000000000000000000000", git_sha=other)

    said = scene.repo.accord("why", other)

    assert "a record in git; no server here vouches for it" in said
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
    ask(scene.server.home / "bridge.sock", "commit-created", repo=scene.id, sha=other, decision=id)
    scene.server.stop()

    scene.repo.accord("git", "export", other, "-o", "again.json")
    scene.repo.accord("git", "export", scene.sha, "-o", "first.json")

    again = scene.repo.accord("git", "verify", "again.json")
    assert f"for commit {other}, which names it again after {scene.sha}, approved by" in again
    assert "again" not in scene.repo.accord("git", "verify", "first.json")
