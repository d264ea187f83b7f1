"""Starts servers fast: forks them from a process that has imported all of their code.

Starting Python and importing the code take most of the time of a short-lived server, and the tests
start many. A forked server is a process like any other: it runs `accord serve` with its own
arguments, environment, files, locks and memory, and signals reach it. Tests of how a server starts
(`tests/cli/serve`, `tests/setup`, some restarts in `tests/chaos`) run the command itself.
"""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

POLL_INTERVAL_S = 0.002
EXIT_TIMEOUT_S = 60.0
EXIT_FAILED = 70


class ForkedProcess:
    """A forked process, with the interface of `subprocess.Popen` that the tests use."""

    def __init__(self, parent: "ForkServer", pid: int) -> None:
        self._parent = parent
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        if self._status is None:
            self._status = self._parent.request("exit_status", self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit; returns the exit code."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} does not end")
            time.sleep(POLL_INTERVAL_S)
        return status

    def send_signal(self, which: signal.Signals) -> None:
        """Send a signal, unless the process has ended.

        Until its parent has waited for it, the process id is not given to another process.
        """
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, which)


class ForkServer:
    """The parent process of forked servers; it starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def spawn(self, words: list[str], log: Path) -> ForkedProcess:
        """Start the `accord` command of these words; it writes its output to `log`."""
        arguments = words[words.index("accord") + 1 :]
        pid = self.request("fork", arguments, str(log), str(Path.cwd()), dict(os.environ))
        return ForkedProcess(self, pid)

    def request(self, *request: Any) -> Any:
        """Send a request to the parent process; returns its answer."""
        with self._lock:
            process = self._process = self._process or start_parent()
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

    def close(self) -> None:
        """End the parent process; servers that still run are left alone."""
        with self._lock:
            if self._process:
                self._process.communicate(timeout=EXIT_TIMEOUT_S)
                self._process = None


def start_parent() -> subprocess.Popen[str]:
    """Start the process that others are forked from."""
    words = [sys.executable, "-m", __name__]
    root = Path(__file__).parents[3]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=root)


# All servers of a test run that need nothing else come from here.
FORK_SERVER = ForkServer()


# In the parent process

statuses: dict[int, int] = {}


def fork(words: list[str], log: str, directory: str, env: dict[str, str]) -> int:
    """Fork a process that runs this command; returns its id."""
    pid = os.fork()
    if pid:
        # The kernel gives ids again, within one long test run: an earlier process may have had it.
        statuses.pop(pid, None)
        return pid
    try:
        run_command(words, log, directory, env)
    except BaseException:  # noqa: BLE001 - the child must never return into the parent's loop
        traceback.print_exc()
        os._exit(EXIT_FAILED)


def run_command(words: list[str], log: str, directory: str, env: dict[str, str]) -> NoReturn:
    """Become the process of this command, and end with its exit code."""
    from accord.cli.main import main

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    source = os.open(os.devnull, os.O_RDONLY)
    target = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for opened, standard in ((source, 0), (target, 1), (target, 2)):
        os.dup2(opened, standard)
    os.close(source)
    os.close(target)
    sys.argv = ["accord", *words]
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def exit_status(pid: int) -> int | None:
    """The exit code of a child, negative for a signal as with Popen; None while it runs."""
    if pid not in statuses:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            statuses[pid] = os.waitstatus_to_exitcode(status)
    return statuses.get(pid)


def import_server() -> None:
    """Import what a server imports before it accepts connections."""
    import uvloop  # noqa: F401

    from accord.cli import main
    from accord.cli.serve import signals  # noqa: F401
    from accord.server import serving  # noqa: F401

    main.build_parser("serve", main.load_command("serve"))


def answer_requests(requests: TextIO) -> None:
    """Answer each line until the test run closes its end."""
    import_server()
    gc.collect()
    gc.freeze()
    actions: dict[str, Callable[..., Any]] = {"fork": fork, "exit_status": exit_status}
    for line in requests:
        action, *arguments = json.loads(line)
        print(json.dumps(actions[action](*arguments)), flush=True)


if __name__ == "__main__":
    answer_requests(sys.stdin)
