"""Runs `accord` commands as real processes with a clean environment."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.servers.server_process import ServerProcess

COMMAND_TIMEOUT_S = 60


class CommandRun(NamedTuple):
    """The exit code and output of a finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, decoded as JSON."""
        return json.loads(self.out)


def clean_environment(**env: str) -> dict[str, str]:
    """This process's environment without Accord's variables, with fixed time zone and width."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("ACCORD_")
    }
    return inherited | {"TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1", "USER": "olga"} | env


def run_accord(*words: str, cwd: Path | None = None, **env: str) -> CommandRun:
    """Run an `accord` command and wait for it."""
    return run_python("-m", "accord", *words, cwd=cwd, **env)


def run_python(*words: str, cwd: Path | None = None, **env: str) -> CommandRun:
    """Run Python with these arguments and wait for it."""
    done = subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=clean_environment(**env),
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    return CommandRun(done.returncode, done.stdout, done.stderr)


class UserShell:
    """Runs commands as one member: with a server, a token and a separate home."""

    def __init__(self, home: Path, server: ServerProcess, token: str) -> None:
        self.env = {
            "ACCORD_HOME": str(home),
            "ACCORD_URL": server.url,
            "ACCORD_TOKEN": token,
        }
        self.cwd = home
        home.mkdir(parents=True, exist_ok=True)

    def __call__(self, *words: str, **env: str) -> CommandRun:
        """Run a command as this member."""
        return run_accord(*words, cwd=self.cwd, **(self.env | env))

    def output_of(self, *words: str, **env: str) -> str:
        """The output of a command that must succeed."""
        ran = self(*words, **env)
        assert ran.code == 0, ran
        return ran.out.strip()
