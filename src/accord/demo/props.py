"""Things the story needs: a throw-away repository, and a real server that may be killed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

PATIENCE_S = 20.0
POLL_S = 0.02
TRUNK, TOPIC = "main", "fix/title"
README = "# Teh parser\n\nTakes text apart.\n"
QUIET = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_AUTHOR_EMAIL": "alice@example.org",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.org",
}


class Ready(msgspec.Struct, frozen=True):
    """What a started server tells."""

    url: str
    pid: int
    admin_token: str


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would lead a command elsewhere."""
    led = ("ACCORD_", "GIT_", "PVP_")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(led)}
    return ours | more


class Repository:
    """A repository with a typo in README.md, a branch to correct it on, and old docs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.readme = path / "README.md"
        self.docs = path / "docs" / "manual.md"

    def make(self) -> None:
        """From nothing."""
        self.docs.parent.mkdir(parents=True)
        self.readme.write_text(README)
        self.docs.write_text("# Manual\n\nOut of date, but all there is.\n")
        (self.path / ".gitignore").write_text("*.orig\n")
        self.git("init", "--quiet", f"--initial-branch={TRUNK}")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "chore: begin")
        self.git("switch", "--quiet", "--create", TOPIC)

    @property
    def title(self) -> str:
        """The first line of README.md."""
        return self.readme.read_text().splitlines()[0]

    @property
    def title_of_head(self) -> str:
        """The first line of the last commit's message."""
        return self.git("log", "-1", "--format=%s")

    def git(self, *words: str) -> str:
        """What git prints."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.path,
            env=environment(**QUIET),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.strip()


class ServerProcess:
    """`accord serve` on one data directory; its address stays the same."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "data"
        self._ready_file = folder / "ready.json"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    async def start(self) -> Ready:
        """Accepting connections."""
        self._ready_file.unlink(missing_ok=True)
        flags = ["--data-dir", str(self.home), "--ready-file", str(self._ready_file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
                [sys.executable, "-m", "accord", "serve", "--port", str(self._port), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
            )
        ready = await self._until_ready(self._process)
        self._port = int(ready.url.rpartition(":")[2])
        return ready

    async def _until_ready(self, process: subprocess.Popen[bytes]) -> Ready:
        async with asyncio.timeout(PATIENCE_S):
            while not self._ready_file.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"The server did not start:\n{self._log.read_text()}")
                await asyncio.sleep(POLL_S)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=Ready)

    async def kill(self) -> None:
        """Without a chance to say goodbye."""
        if self._process:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    async def stop(self) -> int:
        """Properly; returns the exit code."""
        if not self._process:
            return 0
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, PATIENCE_S)

    def clean_up(self) -> None:
        """Nothing runs on, whatever went wrong."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)


async def accord(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """A command as one types it: its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=environment(**(env or {})),
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    code = process.returncode or 0
    return code, (out if code == 0 else out + err).decode().strip()
