"""A person's shell in a repository, from which hosts are connected."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.clients.cli import CommandRun, clean_environment
from tests.helpers.servers.server_process import ServerProcess

ACCORD = [sys.executable, "-m", "accord"]


class ConnectingShell:
    """A person's shell in a repository."""

    def __init__(
        self, house: ServerProcess, home: Path, who: str, *roles: str, **environment: str
    ) -> None:
        self.who = who
        self._environment = environment
        self.home = home
        self.repo = home / "repo"
        self.repo.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.repo)], check=True)
        request = {"id": who, "roles": roles or ["admin"]}
        code = house.admin_request("POST", "/admin/invitations", request)["code"]
        assert self("login", f"{house.url}#code={code}").code == 0

    @property
    def environment(self) -> dict[str, str]:
        config = str(self.home / ".config")
        return clean_environment(HOME=str(self.home), XDG_CONFIG_HOME=config, **self._environment)

    def __call__(self, *words: str, cwd: Path | None = None) -> CommandRun:
        done = subprocess.run(
            [*ACCORD, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd or self.repo,
            env=self.environment,
            timeout=60,
            check=False,
        )
        return CommandRun(done.returncode, done.stdout, done.stderr)

    def json(self, *words: str, code: int = 0) -> Any:
        done = self(*words, "--json")
        assert done.code == code, done
        return json.loads(done.out)

    def on_terminal(self, answer: str, *words: str) -> tuple[int, str]:
        """The exit code and all that is shown; `answer` is typed at the first question."""
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [*ACCORD, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.repo,
            env=self.environment,
            start_new_session=True,
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        shown = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        os.close(ours)
        return child.wait(), shown.decode(errors="replace")

    def config_files(self) -> dict[str, bytes]:
        """All files below home but our own and the repository's."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in self.home.rglob("*")
            if path.is_file()
            and not path.is_relative_to(self.repo)
            and not path.is_relative_to(self.home / ".config" / "accord")
        }

    def devices(self) -> set[str]:
        """This person's devices and those of their agents."""
        listed = self.json("people", "devices")["devices"]
        return {each["principal"] for each in listed if self.who in (each["principal"], each["by"])}


StartShell = Callable[..., ConnectingShell]
