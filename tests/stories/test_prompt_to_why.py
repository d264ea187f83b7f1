"""From a prompt to `accord why`: a real server, real hooks, a real repository."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves
from tests.transports.bridge.test_handlers import at_work, writes

WHO = ("-c", "user.name=Bot", "-c", "user.email=bot@example.org", "-c", "commit.gpgsign=false")


class Repo:
    """A repository of somebody whose server has its data in `home`."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PVP_", "ACCORD"))}
        self.env = kept | {"ACCORD_HOME": str(home), "HOME": str(folder), "NO_COLOR": "1"}
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def git(self, *words: str) -> str:
        return self.run("git", *WHO, *words)

    def accord(self, *words: str) -> str:
        said = self.run(sys.executable, "-m", "accord", *words)
        if words[:2] == ("git", "install"):
            extend_hook_timeout(self.folder / ".git/hooks")
        return said

    def commit(self, name: str, message: str) -> str:
        (self.folder / name).write_text(f"{name}\n")
        self.git("add", name)
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def trailer(self, key: str, rev: str = "HEAD") -> str:
        return self.git("log", "-1", f"--format=%(trailers:key={key},valueonly)", rev).strip()

    def note(self, rev: str = "HEAD") -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.git("notes", "--ref=pvp", "show", rev))
        return told


@proves("PVP-18.1-1", "PVP-18.3-1", "PVP-18.4-1", "PVP-18.4-2", "GIT-MAP-2")
async def test_git_remembers_who_asked_and_who_approved(
    server: ServerProcess, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "code", server.home)
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    path = server.home / "bridge.sock"
    await asyncio.to_thread(send_action, path, "session-started", repo=id, session=work.session)

    await work.tool(await work.prompt("Add a login"), **writes("login.py"))
    first = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    await work.tool(await work.prompt("Now log out"), **writes("logout.py"))
    second = await asyncio.to_thread(repo.commit, "logout.py", "feat: log out")
    await work.leave()

    for rev in (first, second):
        assert repo.trailer("PVP-Session", rev) == work.session
        assert repo.trailer("Approved-By", rev) == "human:bob"
        assert repo.trailer("Assisted-by", rev) == "bot"
        assert repo.trailer("PVP-Confidence", rev) == "0.87"
        assert repo.trailer("PVP-Decision", rev) in json.dumps(repo.note(rev))
    assert "Add a login" in json.dumps(repo.note(first))
    assert "Add a login" not in json.dumps(repo.note(second))
    assert "Now log out" in json.dumps(repo.note(second))
    why = repo.accord("why", "login.py:1")
    assert "bob" in why
    assert "Add a login" in why

    amended = repo.git("commit", "-q", "--amend", "-m", repo.git("log", "-1", "--format=%B"))
    assert amended == ""
    assert repo.trailer("PVP-Decision") == repo.trailer("PVP-Decision", second)
    assert "Now log out" in json.dumps(repo.note())

    server.stop()
    repo.accord("git", "export", first, "-o", "proof.json")
    said = repo.accord("git", "verify", "proof.json")
    assert first in said
    assert "approved by human:bob" in said


async def test_a_hook_that_was_killed_takes_nothing_from_the_commits_around_it(
    server: ServerProcess, tmp_path: Path
) -> None:
    """The record of each is what the server knows: of its own stretch, and of no other."""
    repo = Repo(tmp_path / "code", server.home)
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = await at_work(server)
    path = server.home / "bridge.sock"
    await asyncio.to_thread(send_action, path, "session-started", repo=id, session=work.session)
    fatal = repo.folder / ".git/hooks/earlier-than-accord/post-commit"
    fatal.parent.mkdir()
    fatal.write_text("#!/bin/sh\nkill -9 $PPID\n")
    fatal.chmod(0o755)

    await work.tool(await work.prompt("Add a login"), **writes("login.py"))
    first = await asyncio.to_thread(repo.commit, "login.py", "feat: add a login")
    assert repo.git("for-each-ref", "refs/notes/") == ""
    fatal.unlink()
    await work.tool(await work.prompt("Now log out"), **writes("logout.py"))
    second = await asyncio.to_thread(repo.commit, "logout.py", "feat: log out")
    await work.leave()

    for rev, said in ((first, "Add a login"), (second, "Now log out")):
        (made,) = repo.note(rev)["decisions"]
        assert (made["git_sha"], made["id"]) == (rev, repo.trailer("PVP-Decision", rev))
        assert [each["by"] for each in made["approvals"]] == ["human:bob"]
        told = json.dumps(repo.note(rev))
        assert [each for each in ("Add a login", "Now log out") if each in told] == [said]
    assert "the log of your server" in repo.accord("why", "login.py:1")
