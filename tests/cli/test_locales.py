"""What people wrote, in a shell whose locale has no UTF-8."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.cli.test_std_streams import ASCII_LOCALE
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.servers.server_process import ServerProcess
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import Work, at_work, writes

FILE = "naïve.py"
WRITTEN = "Añadir un límite – für Jürgen: 検証 ✓ 👍"
WIDTH = 80
SHOWN = "Anadir un limite - fur Jurgen: ?? v ?"


def run_in_ascii(words: list[str], env: dict[str, str], cwd: Path) -> str:
    """The output of a command in that locale, which must be ASCII and complete."""
    done = subprocess.run(
        [sys.executable, "-m", "accord", *words],
        env={**env, **ASCII_LOCALE},
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b""), words
    return done.stdout.decode("ascii")


async def committed_work(work: Work, repo: Repo) -> None:
    """Somebody asks for a file with a name of its own, and it is committed."""
    id = repo.git("config", "accord.repo").strip()
    await asyncio.to_thread(
        send_action, work.path, "session-started", repo=id, session=work.session
    )
    await work.tool(await work.prompt(WRITTEN), **writes(FILE, f"{WRITTEN}\n"))
    (repo.folder / FILE).write_text(f"{WRITTEN}\n", "utf-8")
    await asyncio.to_thread(repo.git, "add", "-A")
    await asyncio.to_thread(repo.git, "commit", "-q", "-m", f"feat: {WRITTEN}")


async def test_what_was_written_is_readable_in_a_locale_without_utf8(
    server: ServerProcess, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "code", server.home)
    repo.accord("git", "install")
    work = await at_work(server)
    await committed_work(work, repo)
    token = server.issue_token("alice", roles=["admin"])
    env = repo.env | {"ACCORD_URL": server.url, "ACCORD_TOKEN": token, "COLUMNS": str(WIDTH)}

    log = await asyncio.to_thread(run_in_ascii, ["session", "log", work.session], env, tmp_path)
    assert SHOWN in " ".join(log.split())
    for target in ("HEAD", FILE, f"{FILE}:1"):
        why = await asyncio.to_thread(run_in_ascii, ["why", target], env, repo.folder)
        assert SHOWN in " ".join(why.split()), target
        assert "human:bob" in why
        assert max(map(len, why.splitlines())) <= WIDTH
    await work.leave()
