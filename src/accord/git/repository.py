"""A repository, asked through git itself: with a work tree or bare, in a hook or at a path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from . import places, process
from .places import BRANCHES, Directories
from .process import MOST_BYTES, PATIENCE_S, Bounds, Done, GitError, Talk
from .tuples import NamedTuple

TYPE_CHECKING = False  # a name that type checkers take for true
if TYPE_CHECKING:  # hooks go without: each takes as long to import as all that they need of it
    from pathlib import Path
    from typing import Self

LONG_S = 120.0
# Nothing that we ask may run somebody's hooks, or ours again.
QUIET = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false", "-c", "log.showSignature=false"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
)


class Commit(NamedTuple):
    """What git knows of a commit without its changes; `reflog` is how it came to be checked out."""

    sha: str
    parents: tuple[str, ...]
    author: str
    at: str
    message: str
    reflog: str = ""

    @property
    def subject(self) -> str:
        """The first line."""
        return self.message.partition("\n")[0]


class Object(NamedTuple):
    """An object and its name."""

    sha: str
    content: bytes


def text(raw: bytes) -> str:
    """Bytes of git as text; what is no UTF-8 survives the way back."""
    return raw.decode("utf-8", "surrogateescape")


def is_object(word: str) -> bool:
    """Whether it is written as the whole name of an object."""
    return 40 <= len(word) <= 64 and not word.strip("0123456789abcdef")


def refusal(done: Done) -> GitError:
    """What to raise after a run that failed."""
    said = done.err or done.out[:MOST_BYTES].decode("utf-8", "replace").strip()
    return GitError(said or f"git ended with {done.code}")


class Repository:
    """The repository at a path, or the one that git finds from here."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, where: Directories | None = None
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self._where = where
        self._talk: Talk | None = None
        self._within = False

    def __enter__(self) -> Self:
        """Until the end, objects are read through one process of git."""
        self._within = True
        return self

    def __exit__(self, *_: object) -> None:
        self._within = False
        self._hang_up()

    def _hang_up(self) -> None:
        if self._talk:
            self._talk.close()
            self._talk = None

    # Running git

    def run(
        self,
        *words: str,
        data: bytes = b"",
        patience: float = PATIENCE_S,
        most: int = MOST_BYTES,
        hooks: bool = False,
        prompt: bool = False,
    ) -> Done:
        """Run git to its end, and say how that was."""
        line, env = self._call(words, hooks=hooks, prompt=prompt)
        return process.run(line, env, data, Bounds(patience, most))

    def _call(
        self, words: tuple[str, ...], *, hooks: bool = False, prompt: bool = False
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        here = () if self.path is None else ("-C", self.path)
        line = ("--no-pager", "--literal-pathspecs", *here, *(() if hooks else QUIET), *words)
        env = process.environment(led=self.path is None)
        env |= {} if hooks else {"GIT_OPTIONAL_LOCKS": "0"}
        env |= {} if prompt else {"GIT_TERMINAL_PROMPT": "0"}
        return line, env

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

    def says(self, *words: str) -> bool:
        """Whether git agrees."""
        return self.run(*words).code == 0

    def act(self, *words: str, data: bytes = b"") -> str:
        """Do what somebody asked for, with their hooks; what git prints, GitError on refusal."""
        done = self.run(*words, data=data, patience=LONG_S, hooks=True)
        if done.code:
            raise refusal(done)
        return done.out.decode("utf-8", "replace").strip()

    # What it is

    @property
    def places(self) -> Directories:
        """Where it lies, as git says."""
        self._where = self._where or self._asked()
        return self._where

    def _asked(self) -> Directories:
        asked = ("--git-dir", "--git-common-dir", "--show-toplevel")
        done = self.run("rev-parse", *asked)
        said = text(done.out).removesuffix("\n").split("\n") if done.out else []
        if len(said) < 2:
            raise refusal(done)
        own, common = (os.path.join(self.path or "", each) for each in said[:2])  # noqa: PTH118
        return Directories("".join(said[2:3]), own, common)

    @property
    def root(self) -> Path:
        """The work tree."""
        return _path(self.places.root)

    @property
    def directory(self) -> Path:
        """The git directory of this work tree."""
        return _path(self.places.own)

    @property
    def common(self) -> Path:
        """The git directory of all its work trees."""
        return _path(self.places.common)

    @property
    def bare(self) -> bool:
        """Whether nothing is checked out here."""
        return not self.places.root

    def file(self, name: str) -> str:
        """A file of this work tree's git directory."""
        return os.path.join(self.places.own, name)  # noqa: PTH118 - hooks have no `pathlib`

    def has_file(self, *names: str) -> bool:
        """Whether any of these is in this work tree's git directory."""
        return any(os.path.exists(self.file(name)) for name in names)  # noqa: PTH110 - the same

    def settings(self, pattern: str) -> dict[str, str]:
        """The configuration whose lower-case names match, the last of each."""
        done = self.run("config", "-z", "--get-regexp", pattern)
        pairs = (entry.partition("\n") for entry in text(done.out).split("\0") if entry)
        return {name.lower(): value for name, _, value in pairs}

    # Names

    def resolve(self, name: str) -> str | None:
        """The commit that a name stands for."""
        return self.maybe(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )

    def refs(self, *names: str) -> dict[str, str]:
        """Which of these refs there are, by their full names, and what they point at."""
        listed = self.ask("for-each-ref", "--format=%(refname) %(objectname)", *names)
        found = dict(line.split(" ") for line in listed.split("\n") if line)
        return {name: found[name] for name in names if name in found}

    def branch(self) -> str:
        """The branch that is checked out, be it without a commit; empty on a detached head."""
        name = places.head(self._where.own) if self._where else None
        if name is None:
            name = self.maybe("symbolic-ref", "--quiet", "HEAD") or ""
        return name.removeprefix(BRANCHES) if name.startswith(BRANCHES) else ""

    def has_branch(self, name: str) -> bool:
        """Whether there is a local branch of that name."""
        return self.says("rev-parse", "--quiet", "--verify", f"{BRANCHES}{name}^{{commit}}")

    def contains(self, one: str, other: str) -> bool:
        """Whether everything of `other` is in `one`."""
        return self.says("merge-base", "--is-ancestor", other, one)

    # Commits and objects

    def commits(
        self, *which: str, most: int | None = None, asked: Iterable[str] = ()
    ) -> list[Commit]:
        """Commits with their messages, newest first; `asked` are revisions of any number."""
        limit = [] if most is None else [f"-n{most}"]
        data = "".join(f"{each}\n" for each in asked).encode()
        more = ["--stdin"] if data else []
        shape = "--format=%H%x00%P%x00%an%x00%cI%x00%B%x00%gs%x00"
        words = ("log", shape, "--no-color", "--no-notes", *limit, *which, *more, "--")
        out = self.raw(*words, data=data)
        return list(_commits(text(out)))

    def commit(self, sha: str) -> Commit:
        """One commit."""
        return self.commits("--no-walk", sha)[0]

    def checked_out(self) -> Commit:
        """The commit at HEAD, and what was done last to have it there, where that is kept."""
        found = self.commits("--walk-reflogs", "HEAD", most=1)
        return found[0] if found else self.commit("HEAD")

    def files(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changed, against its first parent."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
        found = self.maybe(*words, f"{sha}^1", sha)
        if found is None:
            found = self.ask(*words, "--root", sha)
        return tuple(path for path in found.split("\0") if path)

    def objects(self, names: Iterable[str]) -> dict[str, Object]:
        """Many objects at once, read in this order; those that are not there are left out."""
        wanted = [name for name in names if "\n" not in name]
        if not wanted:
            return {}
        return dict(_batch(self._read("".join(f"{name}\n" for name in wanted).encode()), wanted))

    def _read(self, asked: bytes) -> bytes:
        words = ("cat-file", "--batch")
        if not self._within:
            return self.raw(*words, data=asked)
        self._talk = self._talk or Talk(*self._call(words))
        nothing = f"accord/{os.urandom(16).hex()}".encode()  # no object is called so
        try:
            return self._talk.ask(b"%s%s\n" % (asked, nothing), b"%s missing\n" % nothing)
        except GitError:
            self._hang_up()
            raise

    def show(self, revision: str, path: str) -> bytes | None:
        """The file as it is there, or None."""
        done = self.run("cat-file", "blob", f"{revision}:{path}")
        return None if done.code else done.out

    # The work tree

    def changed(self) -> list[str]:
        """Tracked paths that differ from the last commit, in index or work tree."""
        out = self.ask("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        return [each[3:] for each in out.split("\0") if each]

    def untracked(self) -> list[str]:
        """Paths that git does not know and was not told to ignore; of a new folder, its name."""
        words = ("ls-files", "--others", "--exclude-standard", "--directory", "-z")
        return [each for each in self.ask(*words).split("\0") if each]

    def differing(self, one: str, other: str) -> set[str]:
        """Paths that two revisions have differently."""
        out = self.ask("diff", "--name-only", "-z", "--no-renames", one, other, "--")
        return {each for each in out.split("\0") if each}

    def is_tracked(self, path: str) -> bool:
        """Whether git knows the file in this work tree."""
        return self.says("ls-files", "--error-unmatch", "--", path)

    def ignores(self, path: str) -> bool:
        """Whether the file is there and git was told not to look at it."""
        return bool(self.ask("ls-files", "--others", "--ignored", "--exclude-standard", "--", path))


def _path(name: str) -> Path:
    from pathlib import Path

    return Path(name)


def _commits(out: str) -> Iterator[Commit]:
    parts = out.split("\0")
    for at in range(0, len(parts) - 6, 6):
        sha, parents, *rest = parts[at : at + 6]
        yield Commit(sha.lstrip("\n"), tuple(parents.split()), *rest)


def _batch(out: bytes, wanted: list[str]) -> Iterator[tuple[str, Object]]:
    place = 0
    for name in wanted:
        end = out.find(b"\n", place)
        words = out[place:end].split(b" ")
        place = end + 1
        if words[-1].isdigit():
            size = int(words[-1])
            yield name, Object(text(words[0]), out[place : place + size])
            place += size + 1


def find(start: Path) -> Repository | None:
    """The work tree that `start` is in, if it is in one; git is not asked, which takes longer."""
    for root in (start, *start.parents):
        if where := places.at(str(root)):
            return Repository(root, where)
        if (root / ".git").is_file():
            break
    return None
