"""The only place that runs git: arguments as a list, with limits on time and output.

Hooks run git at every commit, and importing `subprocess` takes longer than git itself, so this
module uses `posix_spawn` directly.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping, Sequence

from accord.git.light_namedtuple import NamedTuple

SIGKILL, SIGPIPE = 9, 13  # same on all systems; importing `signal` takes a millisecond
GIT_TIMEOUT_S = 20.0
MAX_OUTPUT_BYTES = 64 << 20
MAX_STDERR_BYTES = 64 << 10
PIPE_CHUNK_BYTES = 1 << 16
EXIT_POLL_S = 0.002
# Variables of the caller that would change what git does or prints.
DROPPED_VARIABLES = frozenset(
    {
        *("GIT_INDEX_FILE", "GIT_PREFIX", "GIT_REFLOG_ACTION", "GIT_EXTERNAL_DIFF"),
        *("GIT_DIFF_OPTS", "GIT_NOTES_REF", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS"),
        *("GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    }
)
# Variables that select a repository; dropped when the caller names one by path.
REPOSITORY_VARIABLES = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    }
)


class GitError(Exception):
    """Git failed or is not installed; the message is git's own where there is one."""


class OutputTooLargeError(GitError):
    """Git printed more than the limit."""


class GitResult(NamedTuple):
    """Exit code and output of a finished git process."""

    code: int
    out: bytes
    err: str


class GitLimits(NamedTuple):
    """Timeout and output limit of one git process."""

    timeout_s: float = GIT_TIMEOUT_S
    max_bytes: int = MAX_OUTPUT_BYTES


def git_environment(*, inherit_repository: bool) -> dict[str, str]:
    """Environment for git; `inherit_repository` keeps the caller's GIT_DIR and similar."""
    dropped = DROPPED_VARIABLES if inherit_repository else DROPPED_VARIABLES | REPOSITORY_VARIABLES
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"LC_ALL": "C"}


def run_git(
    arguments: Sequence[str],
    env: Mapping[str, str],
    data: bytes = b"",
    limits: GitLimits | None = None,
) -> GitResult:
    """Run git to completion; GitError if it is missing, times out or prints too much."""
    git = _GitProcess(arguments, env, limits or GitLimits())
    try:
        git.send(data)
        return git.wait()
    finally:
        git.terminate()


class BatchProcess:
    """A long-running git process that answers queries in turn, such as `cat-file --batch`."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._git = _GitProcess(words, env, GitLimits(), stays=True)

    def query(self, question: bytes, last: bytes) -> bytes:
        """Send a query and return the output before `last`, which must end the response."""
        self._git.send(question)
        return self._git.read_until(last)

    def close(self) -> None:
        self._git.terminate()


class _GitProcess:
    """One git process, written to and read from concurrently so that full pipes cannot deadlock.

    With `stays`, standard input remains open for further queries.
    """

    def __init__(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        bounds: GitLimits,
        *,
        stays: bool = False,
    ) -> None:
        self.limits, self.keeps_stdin = bounds, stays
        self.deadline = 0.0
        pipes = [os.pipe() for _ in range(3)]
        (reads, self.feed), (self.out, says), (self.err, complains) = pipes
        theirs = (reads, says, complains)
        self.open_pipes = {self.feed, self.out, self.err}
        self.unsent = memoryview(b"")
        self.output = {self.out: bytearray(), self.err: bytearray()}
        self.pid = 0
        try:
            self.pid = os.posix_spawnp(
                "git",
                [b"git", *map(os.fsencode, words)],
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, pipe, to) for to, pipe in enumerate(theirs)],
                setsigdef=[SIGPIPE],
            )
        except FileNotFoundError:
            self.terminate()
            raise GitError("git is not installed, or not on PATH") from None
        except (OSError, ValueError) as no:
            self.terminate()
            raise GitError(f"git could not be started: {no}") from None
        finally:
            for pipe in theirs:
                os.close(pipe)
        os.set_blocking(self.feed, False)
        self.poll = select.poll()
        self.poll.register(self.out, select.POLLIN)
        self.poll.register(self.err, select.POLLIN)

    def send(self, data: bytes) -> None:
        """Queue data for standard input and start the timeout."""
        self.deadline = time.monotonic() + self.limits.timeout_s
        self.unsent = memoryview(data)
        if data:
            self.poll.register(self.feed, select.POLLOUT)
        elif not self.keeps_stdin:
            self._close(self.feed)

    def wait(self) -> GitResult:
        """Wait for the process to end and return its output."""
        while self.out in self.open_pipes or not (status := self._exit_status()):
            self._poll_once()
        output = bytes(self.output[self.out])
        return GitResult(os.waitstatus_to_exitcode(status[0]), output, self._stderr_text())

    def read_until(self, last: bytes) -> bytes:
        """Read output up to `last` and return what precedes it."""
        output = self.output[self.out]
        while not output.endswith(last):
            if self.out not in self.open_pipes:
                raise GitError(self._stderr_text() or "git exited before it answered every query")
            self._poll_once()
        result = bytes(output[: -len(last)])
        output.clear()
        return result

    def _stderr_text(self) -> str:
        return self.output[self.err].decode("utf-8", "replace").strip()

    def _poll_once(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise GitError(f"git did not finish within {self.limits.timeout_s:.0f} s")
        # A background process started by git may keep standard error open indefinitely.
        quick = self.out not in self.open_pipes
        for pipe, _ in self.poll.poll(1000 * (EXIT_POLL_S if quick else left)):
            if not (self._write_some() if pipe == self.feed else self._read_some(pipe)):
                self.poll.unregister(pipe)
                if pipe != self.feed or not self.keeps_stdin:
                    self._close(pipe)

    def _write_some(self) -> bool:
        """Write part of the queued data; whether some is left."""
        try:
            self.unsent = self.unsent[os.write(self.feed, self.unsent[:PIPE_CHUNK_BYTES]) :]
        except BlockingIOError:
            pass
        except OSError:  # it closed its input, or exited
            return False
        return bool(self.unsent)

    def _read_some(self, pipe: int) -> bool:
        """Read a chunk; whether more may follow. Only the beginning of standard error is kept."""
        part = os.read(pipe, PIPE_CHUNK_BYTES)
        kept = self.output[pipe]
        if pipe == self.out:
            kept += part
        else:
            kept += part[: MAX_STDERR_BYTES - len(kept)]
        if len(kept) > self.limits.max_bytes:
            raise OutputTooLargeError(f"git printed more than {self.limits.max_bytes} bytes")
        return bool(part)

    def _exit_status(self) -> tuple[int] | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid = 0
        return (status,)

    def _close(self, pipe: int) -> None:
        self.open_pipes.discard(pipe)
        os.close(pipe)

    def terminate(self) -> None:
        """Kill the process if it still runs, and close all pipes."""
        if self.pid:
            os.kill(self.pid, SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        for pipe in list(self.open_pipes):
            self._close(pipe)
