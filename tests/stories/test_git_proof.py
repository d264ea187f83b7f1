"""A proof of what was squashed: of the commits that it came of, each signed by the server."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.bridge import ask
from tests.helpers.server import ServerProcess
from tests.stories.test_git import Repo
from tests.transports.test_bridge import at_work


class Squashed(NamedTuple):
    """Two commits of one session on a branch, and the one that they became."""

    repo: Repo
    server: ServerProcess
    parts: tuple[str, str]
    sha: str

    def export(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "accord", "git", "export", *words],
            cwd=self.repo.folder,
            env=self.repo.env | env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
async def squashed(server: ServerProcess, tmp_path: Path) -> AsyncIterator[Squashed]:
    repo = Repo(tmp_path / "code", server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    told = {"repo": id, "session": work.session}
    await asyncio.to_thread(ask, server.home / "bridge.sock", "session-started", **told)
    repo.git("switch", "-q", "-c", "topic")
    await work.tool(await work.prompt("Add a login"))
    first = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    await work.tool(await work.prompt("Now log out"))
    second = await asyncio.to_thread(repo.commit, "logout.py", "feat: log out")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--squash", "topic")
    repo.git("commit", "-q", "-m", "Sign in and out (#7)")
    sha = repo.git("rev-parse", "HEAD").strip()
    yield Squashed(repo, server, (first, second), sha)
    await work.leave()


def test_the_proof_of_a_squashed_commit_is_of_those_that_it_came_of(squashed: Squashed) -> None:
    first, second = squashed.parts
    shown = {"ACCORD_URL": squashed.server.url, "ACCORD_TOKEN": squashed.server.admin_token}

    ran = squashed.export("HEAD", "-o", "proof.jsonl", **shown)
    said = squashed.repo.accord("git", "verify", "proof.jsonl")
    told = squashed.repo.accord("git", "verify", "proof.jsonl", "--json").splitlines()

    assert ran.returncode == 0, ran.stderr
    assert f"the log does not have {squashed.sha[:10]} itself" in ran.stderr
    assert f"the proof is of what it came of: {first[:10]} and {second[:10]}\n" in ran.stderr
    assert [json.loads(line)["commit"] for line in told] == [first, second]
    assert said.count("approved by human:bob") == 2
    assert squashed.sha not in said


def test_one_line_that_was_changed_spoils_all_of_it(squashed: Squashed) -> None:
    squashed.server.stop()
    text = squashed.export("HEAD").stdout
    first, second = text.splitlines()
    changed = second.replace('"payload": "ey', '"payload": "eX')
    (squashed.repo.folder / "proof.jsonl").write_text(f"{first}\n{changed}\n")

    ran = subprocess.run(
        [sys.executable, "-m", "accord", "git", "verify", "proof.jsonl"],
        cwd=squashed.repo.folder,
        env=squashed.repo.env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout) == (5, "")
    assert "it proves nothing" in ran.stderr


def test_a_commit_that_lost_its_trailers_is_proven_by_what_it_was(squashed: Squashed) -> None:
    squashed.repo.git("switch", "-q", "topic")
    squashed.repo.git("commit", "-q", "--amend", "-m", "Log out")
    squashed.server.stop()

    ran = squashed.export("HEAD", "-o", "proof.json")

    assert ran.returncode == 0, ran.stderr
    assert f"the proof is of what it came of: {squashed.parts[1][:10]}\n" in ran.stderr
    assert squashed.parts[1] in squashed.repo.accord("git", "verify", "proof.json")


def test_who_is_no_operator_is_told_what_is_missing_and_what_to_type(squashed: Squashed) -> None:
    url = {"ACCORD_URL": squashed.server.url}
    for token in ("", squashed.server.issue("bob", roles=["approver"])):
        ran = squashed.export("HEAD", ACCORD_TOKEN=token, **url)

        assert (ran.returncode, ran.stdout) == (3, "")
        assert "Only an operator can have a proof signed" in ran.stderr
        assert "`accord git export HEAD --data-dir DIR`" in ran.stderr


def test_what_no_session_led_to_cannot_be_proven(squashed: Squashed) -> None:
    squashed.server.stop()

    ran = squashed.export("HEAD~1")

    assert ran.returncode == 4
    assert "has no decision of" in ran.stderr
    assert "`accord why " in ran.stderr


def test_without_a_server_and_its_data_nothing_is_made_up(
    squashed: Squashed, tmp_path: Path
) -> None:
    ran = squashed.export("HEAD", "--data-dir", str(tmp_path / "empty"))

    assert ran.returncode == 4
    assert "`accord serve` makes one, --data-dir names another" in ran.stderr
    assert not (tmp_path / "empty").exists()
