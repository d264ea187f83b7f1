"""Codex' own view of our hooks: whether it trusts them, asked of `codex app-server`.

Codex runs a hook only if its hash is trusted, and skips it silently otherwise. The answer comes
from the program itself, so that it holds for the version that is installed.
"""

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from accord import __version__
from accord.hosts.configuration.entry import Entry

TIMEOUT_S = 30.0
END_TIMEOUT_S = 5.0
TRUST_PATH = ("hooks", "state")
TRUSTED = frozenset({"trusted", "managed"})


class CodexError(Exception):
    """Codex could not be asked; the message says why."""


class CodexHook(NamedTuple):
    """One of our hooks as Codex sees it."""

    key: str
    event: str
    hash: str
    trust: str
    enabled: bool

    @property
    def will_run(self) -> bool:
        """Whether Codex runs this hook."""
        return self.enabled and self.trust in TRUSTED


class AppServer:
    """One `codex app-server`, with JSON lines on its standard input and output."""

    def __init__(self, process: "subprocess.Popen[bytes]", deadline: float) -> None:
        self._process = process
        self._deadline = deadline
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(b"")

    def notify(self, method: str) -> None:
        """Send what has no answer."""
        self._write({"method": method})

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request; raises CodexError."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": dict(params)})
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
            except queue.Empty:
                raise CodexError(f"Codex did not answer {method} in {TIMEOUT_S:.0f} s") from None
            if not line:
                raise CodexError(f"Codex ended before it answered {method}")
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict) and answer.get("id") == self._number:
                if "error" in answer:
                    problem = answer["error"]
                    told = problem.get("message") if isinstance(problem, dict) else problem
                    raise CodexError(f"Codex refused {method}: {str(told)[:300]}")
                return answer.get("result")

    def _write(self, message: Mapping[str, Any]) -> None:
        try:
            assert self._process.stdin is not None  # noqa: S101 - started with a pipe
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise CodexError("Codex ended before it could be asked") from None


@contextmanager
def app_server(program: Sequence[str], root: Path, env: Mapping[str, str]) -> Iterator[AppServer]:
    """A running app-server; raises CodexError."""
    try:
        process = subprocess.Popen(
            [*program, "app-server"],
            cwd=root,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise CodexError(f"{program[0]} cannot be started: {error.strerror}") from None
    try:
        server = AppServer(process, time.monotonic() + TIMEOUT_S)
        about = {"name": "accord", "title": "Accord", "version": __version__}
        server.call("initialize", {"clientInfo": about})
        server.notify("initialized")
        yield server
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def our_hooks(
    program: Sequence[str], root: Path, env: Mapping[str, str], record: Path
) -> list[CodexHook]:
    """Our hooks of one connection, as Codex lists them; raises CodexError."""
    with app_server(program, root, env) as server:
        return list(_listed(server, root, record))


def trust_entries(hooks: Sequence[CodexHook]) -> tuple[Entry, ...]:
    """What makes Codex trust these hooks as they are now, for its configuration file."""
    return tuple(
        Entry(path=TRUST_PATH, key=hook.key, value={"trusted_hash": hook.hash}) for hook in hooks
    )


def _listed(server: AppServer, root: Path, record: Path) -> Iterator[CodexHook]:
    answer = server.call("hooks/list", {"cwds": [os.fspath(root)]})
    folders = answer.get("data", ()) if isinstance(answer, dict) else ()
    for hook in (hook for folder in folders for hook in folder.get("hooks", ())):
        if os.fspath(record) in str(hook.get("command", "")):
            yield CodexHook(
                key=str(hook.get("key", "")),
                event=str(hook.get("eventName", "")),
                hash=str(hook.get("currentHash", "")),
                trust=str(hook.get("trustStatus", "")),
                enabled=hook.get("enabled") is not False,
            )
