"""Running git, the one place that does: an array of arguments, bounded in time and in what is read.

Hooks do this at every commit, so it goes without `subprocess`, whose import takes longer than git.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping, Sequence

from .tuples import NamedTuple

SIGKILL, SIGPIPE = 9, 13  # as everywhere; `signal` takes a millisecond to import
PATIENCE_S = 20.0
MOST_BYTES = 64 << 20
MOST_SAID = 64 << 10
STEP = 1 << 16
A_MOMENT_S = 0.002
# What another repository, or whoever called us, would change of what git does or prints.
NOT_OURS = frozenset(
    {
        *("GIT_INDEX_FILE", "GIT_PREFIX", "GIT_REFLOG_ACTION", "GIT_EXTERNAL_DIFF"),
        *("GIT_DIFF_OPTS", "GIT_NOTES_REF", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS"),
        *("GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    }
)
# What says which repository is meant: for whoever asks about the one that is here.
LEADING = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    }
)


class GitError(Exception):
    """Git refused, or is not there; the sentence is its own."""


class TooMuchError(GitError):
    """Git said more than anybody would read."""


class Done(NamedTuple):
    """How a run of git ended."""

    code: int
    out: bytes
    err: str


class Bounds(NamedTuple):
    """How long git may take, and how much it may print."""

    patience: float = PATIENCE_S
    most: int = MOST_BYTES


def environment(*, led: bool) -> dict[str, str]:
    """Ours for git; `led`: what the caller says of the repository counts."""
    dropped = NOT_OURS if led else NOT_OURS | LEADING
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"LC_ALL": "C"}


def run(
    words: Sequence[str], env: Mapping[str, str], data: bytes = b"", bounds: Bounds | None = None
) -> Done:
    """Run git to its end; GitError where it is not there, takes too long or says too much."""
    git = _Git(words, env, bounds or Bounds())
    try:
        git.say(data)
        return git.end_of()
    finally:
        git.end()


class Talk:
    """Git that answers one question after the other, as `cat-file --batch` does."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._git = _Git(words, env, Bounds(), stays=True)

    def ask(self, question: bytes, last: bytes) -> bytes:
        """What it says up to these words, which must be the last of its answer."""
        self._git.say(question)
        return self._git.answer(last)

    def close(self) -> None:
        """It is not asked again."""
        self._git.end()


class _Git:
    """One run: fed and read at the same time, so that neither side waits for the other.

    If it `stays`, there will be more to say to it.
    """

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], bounds: Bounds, *, stays: bool = False
    ) -> None:
        self.bounds, self.stays = bounds, stays
        self.until = 0.0
        pipes = [os.pipe() for _ in range(3)]
        (reads, self.feed), (self.out, says), (self.err, complains) = pipes
        theirs = (reads, says, complains)
        self.open = {self.feed, self.out, self.err}
        self.rest = memoryview(b"")
        self.said = {self.out: bytearray(), self.err: bytearray()}
        self.pid = 0
        try:
            self.pid = os.posix_spawnp(
                "git",
                [b"git", *map(os.fsencode, words)],
                env,
                file_actions=[(os.POSIX_SPAWN_DUP2, each, to) for to, each in enumerate(theirs)],
                setsigdef=[SIGPIPE],
            )
        except FileNotFoundError:
            self.end()
            raise GitError("git is not installed here") from None
        except (OSError, ValueError) as no:
            self.end()
            raise GitError(f"git does not start: {no}") from None
        finally:
            for each in theirs:
                os.close(each)
        os.set_blocking(self.feed, False)
        self.poll = select.poll()
        self.poll.register(self.out, select.POLLIN)
        self.poll.register(self.err, select.POLLIN)

    def say(self, data: bytes) -> None:
        """What it shall read."""
        self.until = time.monotonic() + self.bounds.patience
        self.rest = memoryview(data)
        if data:
            self.poll.register(self.feed, select.POLLOUT)
        elif not self.stays:
            self._close(self.feed)

    def end_of(self) -> Done:
        """What it said, once it has ended."""
        while self.out in self.open or not (status := self._ended()):
            self._go_on()
        said = bytes(self.said[self.out])
        return Done(os.waitstatus_to_exitcode(status[0]), said, self._complaint())

    def answer(self, last: bytes) -> bytes:
        """What it says before these words."""
        said = self.said[self.out]
        while not said.endswith(last):
            if self.out not in self.open:
                raise GitError(self._complaint() or "git ended before it was asked everything")
            self._go_on()
        found = bytes(said[: -len(last)])
        said.clear()
        return found

    def _complaint(self) -> str:
        return self.said[self.err].decode("utf-8", "replace").strip()

    def _go_on(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise GitError(f"git took longer than {self.bounds.patience:.0f} s")
        # Something that git left behind may hold its standard error for ever.
        quick = self.out not in self.open
        for each, _ in self.poll.poll(1000 * (A_MOMENT_S if quick else left)):
            if not (self._fed() if each == self.feed else self._took(each)):
                self.poll.unregister(each)
                if each != self.feed or not self.stays:
                    self._close(each)

    def _fed(self) -> bool:
        """Whether there is more to say to it."""
        try:
            self.rest = self.rest[os.write(self.feed, self.rest[:STEP]) :]
        except BlockingIOError:
            pass
        except OSError:  # it has read enough, or has ended
            return False
        return bool(self.rest)

    def _took(self, pipe: int) -> bool:
        """Whether it may say more; of complaints only the beginning is kept."""
        part = os.read(pipe, STEP)
        kept = self.said[pipe]
        if pipe == self.out:
            kept += part
        else:
            kept += part[: MOST_SAID - len(kept)]
        if len(kept) > self.bounds.most:
            raise TooMuchError(f"git said more than {self.bounds.most} bytes")
        return bool(part)

    def _ended(self) -> tuple[int] | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid = 0
        return (status,)

    def _close(self, pipe: int) -> None:
        self.open.discard(pipe)
        os.close(pipe)

    def end(self) -> None:
        """Nothing of it stays behind."""
        if self.pid:
            os.kill(self.pid, SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
        for pipe in list(self.open):
            self._close(pipe)
