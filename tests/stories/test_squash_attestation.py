"""Attestations of a squashed commit: one for each commit it came from, signed by the server.

Building the scene takes most of the time, so the tests of this module share one. Each test asks for
the server as it needs it, running or stopped; the one that rewrites history works on a copy.
"""

import asyncio
import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import at_work, writes


class Squashed(NamedTuple):
    """Two commits of one session on a branch, and the commit that they were squashed into."""

    repo: Repo
    server: ServerProcess
    parts: tuple[str, str]
    sha: str

    def export(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.accord_git("export", *words, **env)

    def accord_git(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "accord", "git", *words],
            cwd=self.repo.folder,
            env=self.repo.env | env,
            capture_output=True,
            text=True,
            check=False,
        )


async def build_scene(server: ServerProcess, folder: Path) -> Squashed:
    repo = Repo(folder, server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    started = {"repo": id, "session": work.session}
    await asyncio.to_thread(send_action, server.home / "bridge.sock", "session-started", **started)
    repo.git("switch", "-q", "-c", "topic")
    await work.tool(await work.prompt("Add a login"), **writes("login.py"))
    first = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    await work.tool(await work.prompt("Now log out"), **writes("logout.py"))
    second = await asyncio.to_thread(repo.commit, "logout.py", "feat: log out")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--squash", "topic")
    repo.git("commit", "-q", "-m", "Sign in and out (#7)")
    sha = repo.git("rev-parse", "HEAD").strip()
    for wire in (work.talk.alice, work.talk.bot, work.bob):
        # Not close(): it would wait until everything that was received has been read.
        wire.socket.transport.abort()
    return Squashed(repo, server, (first, second), sha)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squashed]:
    folder = tmp_path_factory.mktemp("squash")
    with run_server(folder / "server") as server:
        yield asyncio.run(build_scene(server, folder / "code"))


@pytest.fixture
def squashed(scene: Squashed) -> Squashed:
    """The scene with its server running."""
    if not scene.server.is_running:
        scene.server.start()
    return scene


@pytest.fixture
def stopped(scene: Squashed) -> Squashed:
    """The scene with its server stopped, so that its data can be read directly."""
    if scene.server.is_running:
        scene.server.stop()
    return scene


def test_proof_of_a_squashed_commit_covers_the_commits_it_came_from(squashed: Squashed) -> None:
    first, second = squashed.parts
    operator = {"ACCORD_URL": squashed.server.url, "ACCORD_TOKEN": squashed.server.admin_token}

    export = squashed.export("HEAD", "-o", "proof.jsonl", **operator)
    verified = squashed.repo.accord("git", "verify", "proof.jsonl")
    rows = squashed.repo.accord("git", "verify", "proof.jsonl", "--json").splitlines()

    assert export.returncode == 0, export.stderr
    assert f"the log does not have {squashed.sha[:10]} itself" in export.stderr
    assert f"but its source commits: {first[:10]} and {second[:10]}\n" in export.stderr
    assert [json.loads(row)["commit"] for row in rows] == [first, second]
    assert verified.count("approved by human:bob") == 2
    assert squashed.sha not in verified


def test_verify_refuses_the_whole_proof_if_one_line_was_changed(stopped: Squashed) -> None:
    first, second = stopped.export("HEAD").stdout.splitlines()
    changed = second.replace('"payload": "ey', '"payload": "eX')
    (stopped.repo.folder / "proof.jsonl").write_text(f"{first}\n{changed}\n")

    verify = stopped.accord_git("verify", "proof.jsonl")

    assert (verify.returncode, verify.stdout) == (5, "")
    assert "it proves nothing" in verify.stderr


def test_commit_that_lost_its_trailers_is_proven_by_its_original(
    squashed: Squashed, tmp_path: Path
) -> None:
    repo = copy.copy(squashed.repo)
    repo.folder = tmp_path / "code"
    shutil.copytree(squashed.repo.folder, repo.folder, symlinks=True)
    amended = squashed._replace(repo=repo)
    repo.git("switch", "-q", "topic")
    repo.git("commit", "-q", "--amend", "-m", "Log out")
    amended.server.stop()

    export = amended.export("HEAD", "-o", "proof.json")

    assert export.returncode == 0, export.stderr
    assert f"but its source commits: {amended.parts[1][:10]}\n" in export.stderr
    assert amended.parts[1] in repo.accord("git", "verify", "proof.json")


def test_export_tells_other_members_that_only_an_operator_can_sign(squashed: Squashed) -> None:
    url = {"ACCORD_URL": squashed.server.url}
    for token in ("", squashed.server.issue_token("bob", roles=["approver"])):
        export = squashed.export("HEAD", ACCORD_TOKEN=token, **url)

        assert (export.returncode, export.stdout) == (3, "")
        assert "Only an operator can export a signed statement" in export.stderr
        assert "`accord git export HEAD --data-dir DIR`" in export.stderr


def test_export_refuses_a_commit_without_a_session(stopped: Squashed) -> None:
    export = stopped.export("HEAD~1")

    assert export.returncode == 4
    assert "has no decision for" in export.stderr
    assert "`accord why " in export.stderr


def test_export_without_server_data_creates_nothing(squashed: Squashed, tmp_path: Path) -> None:
    export = squashed.export("HEAD", "--data-dir", str(tmp_path / "empty"))

    assert export.returncode == 4
    assert "start `accord serve` to create one, or name another --data-dir" in export.stderr
    assert not (tmp_path / "empty").exists()
