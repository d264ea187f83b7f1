"""What a repository holds, asked through git itself: bounded in time and in what is read.

Bare, in a hook or in a worktree; the work tree itself is `repository`'s.
"""

import os
import subprocess
import threading
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from .repository import GitError

PATIENCE_S = 20.0
MOST_BYTES = 64 << 20
MOST_SAID = 64 << 10
# Nothing that we run may run somebody's hooks, or ours again.
QUIET = (
    *("--no-pager", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false", "-c", "log.showSignature=false"),
)
PATCH = ("-p", "-U3", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class Done(NamedTuple):
    """How a run of git ended."""

    code: int
    out: bytes
    err: str


def refusal(done: Done) -> GitError:
    """What to raise after a run that failed."""
    return GitError(done.err or f"git ended with {done.code}")


class Commit(NamedTuple):
    """What git knows of a commit without its changes."""

    sha: str
    parents: tuple[str, ...]
    author: str
    at: str
    message: str

    @property
    def subject(self) -> str:
        """The first line."""
        return self.message.partition("\n")[0]


def text(raw: bytes) -> str:
    """Bytes of git as text; what is no UTF-8 survives the way back."""
    return raw.decode("utf-8", "surrogateescape")


class History:
    """The repository at a path, or the one that git finds from here."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def run(
        self,
        *words: str,
        data: bytes = b"",
        patience: float = PATIENCE_S,
        most: int = MOST_BYTES,
        quiet: bool = True,
    ) -> Done:
        """Run git to its end; GitError where it takes too long or says too much."""
        line = ["git", *(QUIET if quiet else ("--no-pager",)), *map(os.fsencode, words)]
        env = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        pipe, given = subprocess.PIPE, subprocess.PIPE if data else subprocess.DEVNULL
        with subprocess.Popen(
            line, stdin=given, stdout=pipe, stderr=pipe, cwd=self.path, env=env
        ) as git:
            return _bounded(git, data, patience, most)

    def raw(self, *words: str, data: bytes = b"", patience: float = PATIENCE_S) -> bytes:
        """What git prints; GitError when it fails."""
        done = self.run(*words, data=data, patience=patience)
        if done.code:
            raise refusal(done)
        return done.out

    def ask(self, *words: str, data: bytes = b"") -> str:
        """What git prints, without the last line's end."""
        return text(self.raw(*words, data=data)).removesuffix("\n")

    def maybe(self, *words: str) -> str | None:
        """What git prints, or None when it fails."""
        done = self.run(*words)
        return None if done.code else text(done.out).removesuffix("\n")

    # What it is

    @cached_property
    def place(self) -> Path:
        """The git directory of this work tree."""
        return (self.path or Path()) / self.ask("rev-parse", "--git-dir")

    def file(self, name: str) -> Path:
        """A file of this work tree's git directory."""
        return self.place / name

    def settings(self, pattern: str) -> dict[str, str]:
        """The configuration whose lower-case names match, the last of each."""
        done = self.run("config", "-z", "--get-regexp", pattern)
        pairs = (entry.partition("\n") for entry in text(done.out).split("\0") if entry)
        return {name.lower(): value for name, _, value in pairs}

    def resolve(self, name: str) -> str | None:
        """The commit that a name stands for."""
        return self.maybe(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )

    @cached_property
    def branch(self) -> str:
        """The branch that is checked out; empty on a detached head."""
        return self.maybe("symbolic-ref", "--quiet", "--short", "HEAD") or ""

    def replaying(self) -> bool:
        """Whether commits are made again: a rebase or a cherry-pick."""
        names = ("rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD")
        return any(self.file(name).exists() for name in names)

    # Commits

    def commits(self, *which: str, most: int | None = None) -> list[Commit]:
        """Commits with their messages, newest first."""
        limit = [] if most is None else [f"-n{most}"]
        shape = "--format=%H%x00%P%x00%an%x00%cI%x00%B%x00"
        out = self.raw("log", shape, "--no-color", "--no-notes", *limit, *which, "--")
        return list(_commits(text(out)))

    def commit(self, sha: str) -> Commit:
        """One commit."""
        return self.commits("--no-walk", sha)[0]

    def files(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changed, against its first parent."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
        found = self.maybe(*words, f"{sha}^1", sha)
        if found is None:
            found = self.ask(*words, "--root", sha)
        return tuple(path for path in found.split("\0") if path)

    # Patches

    def patch_id(self, base: str, tip: str) -> str:
        """The name of a change, the same wherever it is applied; empty where nothing changed."""
        diff = self.run("diff-tree", "-r", *PATCH, base, tip)
        return "" if diff.code else self._patch(diff.out)

    def patch_of(self, sha: str) -> str:
        """The name of what a commit changed; of a merge, all that it brought in."""
        diff = self.run("diff-tree", "-r", *PATCH, f"{sha}^1", sha)
        if diff.code:
            diff = self.run("diff-tree", "-r", "--no-commit-id", *PATCH, "--root", sha)
        return "" if diff.code else self._patch(diff.out)

    def _patch(self, diff: bytes) -> str:
        found = self.ask("patch-id", "--stable", data=diff) if diff else ""
        return found.partition(" ")[0]

    def patches(self, shas: Iterable[str]) -> dict[str, str]:
        """The names of many commits' changes; merges have none here."""
        wanted = "\n".join(shas).encode()
        if not wanted:
            return {}
        diff = self.raw("diff-tree", "-r", "--stdin", *PATCH, "--root", data=wanted + b"\n")
        lines = self.ask("patch-id", "--stable", data=diff).splitlines()
        return {sha: patch for patch, _, sha in (line.partition(" ") for line in lines)}

    def objects(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of many objects; those that are not there are left out."""
        wanted = [name for name in names if "\n" not in name]
        if not wanted:
            return {}
        out = self.raw("cat-file", "--batch", data="\n".join([*wanted, ""]).encode())
        return dict(_batch(out, wanted))


def _commits(out: str) -> Iterator[Commit]:
    parts = out.split("\0")
    for at in range(0, len(parts) - 5, 5):
        sha, parents, author, when, message = parts[at : at + 5]
        yield Commit(sha.lstrip("\n"), tuple(parents.split()), author, when, message)


def _batch(out: bytes, wanted: list[str]) -> Iterator[tuple[str, bytes]]:
    place = 0
    for name in wanted:
        end = out.find(b"\n", place)
        words = out[place:end].split(b" ")
        place = end + 1
        if words[-1].isdigit():
            size = int(words[-1])
            yield name, out[place : place + size]
            place += size + 1


def _bounded(git: "subprocess.Popen[bytes]", data: bytes, patience: float, most: int) -> Done:
    """Feed and read at once; stop it where a bound is reached."""
    said: list[bytes] = []
    late = threading.Event()

    def stop() -> None:
        late.set()
        git.kill()

    timer = threading.Timer(patience, stop)
    timer.daemon = True
    hears = threading.Thread(target=_hear, args=(git.stderr, said), daemon=True)
    feeds = threading.Thread(target=_feed, args=(git.stdin, data), daemon=True)
    for helper in (timer, hears, *((feeds,) if data else ())):
        helper.start()
    try:
        out = git.stdout.read(most + 1) if git.stdout else b""
        if len(out) > most:
            git.kill()
            raise GitError(f"git said more than {most} bytes")
        code = git.wait()
    finally:
        timer.cancel()
    hears.join(1.0)
    if late.is_set():
        raise GitError(f"git took longer than {patience:.0f} s")
    return Done(code, out, text(b"".join(said)).strip())


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    try:
        if pipe:
            pipe.write(data)
            pipe.close()
    except OSError:  # git has read enough, or has ended
        pass


def _hear(pipe: IO[bytes] | None, said: list[bytes]) -> None:
    """The beginning of what it complains about; the rest is read and dropped."""
    room = MOST_SAID
    while pipe and (part := pipe.read(8192)):
        said.append(part[:room])
        room = max(0, room - len(part))
