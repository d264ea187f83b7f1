"""Commands as one types them: real processes, with an environment of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.server import ServerProcess

PATIENCE = 60


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it said, for a program."""
        return json.loads(self.out)


def environment(**env: str) -> dict[str, str]:
    """Ours without anything of Accord's, in one place and time, without colours."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ACCORD_")}
    return ours | {"TZ": "UTC", "COLUMNS": "100", "NO_COLOR": "1", "USER": "olga"} | env


def accord(*words: str, cwd: Path | None = None, **env: str) -> Ran:
    """Run it to its end."""
    return run("-m", "accord", *words, cwd=cwd, **env)


def run(*words: str, cwd: Path | None = None, **env: str) -> Ran:
    """Run Python with these words to its end."""
    done = subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**env),
        timeout=PATIENCE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


class Shell:
    """One person's shell: a server, a token, a home without a log."""

    def __init__(self, home: Path, server: ServerProcess, token: str) -> None:
        self.env = {
            "ACCORD_HOME": str(home),
            "ACCORD_URL": server.url,
            "ACCORD_TOKEN": token,
        }
        self.cwd = home
        home.mkdir(parents=True, exist_ok=True)

    def __call__(self, *words: str, **env: str) -> Ran:
        """Run a command as this person."""
        return accord(*words, cwd=self.cwd, **(self.env | env))

    def good(self, *words: str, **env: str) -> str:
        """What a command prints that must succeed."""
        ran = self(*words, **env)
        assert ran.code == 0, ran
        return ran.out.strip()
