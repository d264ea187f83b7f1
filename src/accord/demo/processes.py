"""A throw-away repository, and a real server process that can be killed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

PROCESS_TIMEOUT_S = 20.0
POLL_INTERVAL_S = 0.02
BASE_BRANCH, TOPIC_BRANCH = "main", "fix/title"
README_TEXT = "# Teh parser\n\nTakes text apart.\n"
GIT_ENVIRONMENT = {
    "ACCORD_DEBUG": "1",  # hooks say why, should the record be incomplete
    "ACCORD_TIMEOUT": "30",  # a busy machine must not spoil what is shown
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Alice",
    "GIT_AUTHOR_EMAIL": "alice@example.org",
    "GIT_COMMITTER_NAME": "Alice",
    "GIT_COMMITTER_EMAIL": "alice@example.org",
}


class ReadyInfo(msgspec.Struct, frozen=True):
    """The contents of a started server's ready file."""

    url: str
    pid: int
    admin_token: str


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without variables that redirect Accord or git."""
    prefixes = ("ACCORD_", "GIT_", "PVP_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return inherited | more


class DemoRepository:
    """A repository with a typo in README.md, a branch to fix it on, and old docs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.readme = path / "README.md"
        self.docs = path / "docs" / "manual.md"

    def create(self) -> None:
        """Create the files, the first commit and the branch."""
        self.docs.parent.mkdir(parents=True)
        self.readme.write_text(README_TEXT)
        self.docs.write_text("# Manual\n\nOut of date, but all there is.\n")
        (self.path / ".gitignore").write_text("*.orig\n")
        self.git("init", "--quiet", f"--initial-branch={BASE_BRANCH}")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "chore: begin")
        self.git("switch", "--quiet", "--create", TOPIC_BRANCH)

    @property
    def readme_title(self) -> str:
        """The first line of README.md."""
        return self.readme.read_text().splitlines()[0]

    @property
    def head_subject(self) -> str:
        """The subject line of the latest commit."""
        return self.git("log", "-1", "--format=%s")

    def git(self, *words: str) -> str:
        """Run git and return its output."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.path,
            env=clean_environment(**GIT_ENVIRONMENT),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.strip()


class ServerProcess:
    """`accord serve` on one data directory, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "data"
        self._ready_file = folder / "ready.json"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    async def start(self) -> ReadyInfo:
        """Start the server and wait until it accepts connections."""
        self._ready_file.unlink(missing_ok=True)
        flags = ["--data-dir", str(self.home), "--ready-file", str(self._ready_file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time
                [sys.executable, "-m", "accord", "serve", "--port", str(self._port), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environment(),
            )
        ready = await self._until_ready(self._process)
        self._port = int(ready.url.rpartition(":")[2])
        return ready

    async def _until_ready(self, process: subprocess.Popen[bytes]) -> ReadyInfo:
        async with asyncio.timeout(PROCESS_TIMEOUT_S):
            while not self._ready_file.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"The server did not start:\n{self._log.read_text()}")
                await asyncio.sleep(POLL_INTERVAL_S)
        return msgspec.json.decode(self._ready_file.read_bytes(), type=ReadyInfo)

    async def kill(self) -> None:
        """Kill the server with SIGKILL, as a crash would."""
        if self._process:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    async def stop(self) -> int:
        """Stop the server gracefully; returns its exit code."""
        if not self._process:
            return 0
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, PROCESS_TIMEOUT_S)

    def clean_up(self) -> None:
        """Kill the server if it still runs."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PROCESS_TIMEOUT_S)


async def run_accord(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run an `accord` command; returns its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "accord", *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=clean_environment(**(env or {})),
    )
    out, err = await asyncio.wait_for(process.communicate(), PROCESS_TIMEOUT_S)
    code = process.returncode or 0
    return code, (out if code == 0 else out + err).decode().strip()
