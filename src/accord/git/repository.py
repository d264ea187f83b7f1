"""A git repository, bare or with a work tree: its directories, and what running git says of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from accord.git import process
from accord.git.light_namedtuple import NamedTuple

from .process import GIT_TIMEOUT_S, MAX_OUTPUT_BYTES, BatchProcess, GitError, GitLimits, GitResult

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:  # too slow to import in hooks
    from pathlib import Path
    from typing import Self

ACTION_TIMEOUT_S = 120.0
# Queries must not run any hooks, nor depend on the user's output settings.
SAFE_OPTIONS = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false", "-c", "log.showSignature=false"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
)
BRANCH_PREFIX = "refs/heads/"
REFTABLE_HEAD = f"{BRANCH_PREFIX}.invalid"  # the content of `HEAD` in reftable repositories


class Directories(NamedTuple):
    """The work tree (empty if bare), its git directory, and the one shared by all work trees."""

    root: str
    git_dir: str
    common_git_dir: str


# Directories are located from files and environment, which is faster than running git. These
# functions return None for any layout they do not recognise; the caller then asks git.


def directories_at(root: str) -> Directories | None:
    """Directories of the work tree with this top-level directory."""
    git = _join(root, ".git")
    if os.path.isfile(git):  # noqa: PTH113 - `pathlib` is too slow for hooks
        key, _, target = _read(git).strip().partition(": ")
        git = _join(root, target) if key == "gitdir" else ""
    return _directories(root, git) if git else None


def directories_from_env(env: Mapping[str, str]) -> Directories | None:
    """Directories of the hook's repository: git starts hooks at its top level and sets GIT_DIR."""
    git_dir = env.get("GIT_DIR")
    if not git_dir:
        return directories_at(os.curdir)
    is_bare = os.path.realpath(git_dir) == os.path.realpath(os.curdir)  # bare
    return None if is_bare else _directories(os.curdir, git_dir, env.get("GIT_COMMON_DIR"))


def _directories(root: str, git_dir: str, common: str | None = None) -> Directories | None:
    if not os.path.exists(_join(git_dir, "HEAD")):  # noqa: PTH110 - the same
        return None
    return Directories(
        root, git_dir, common or _join(git_dir, _read(_join(git_dir, "commondir")).strip())
    )


def head_ref(git_dir: str) -> str | None:
    """The checked-out ref; empty on a detached HEAD."""
    file = _join(git_dir, "HEAD")
    content = "" if os.path.islink(file) else _read(file)  # noqa: PTH114 - the same
    if content.startswith("ref:"):
        ref = content.removeprefix("ref:").strip()
        return ref if ref.startswith(BRANCH_PREFIX) and ref != REFTABLE_HEAD else None
    return "" if content.strip() and not content.strip().strip("0123456789abcdef") else None


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
            return stream.read()
    except OSError:
        return ""


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name) if name else folder  # noqa: PTH118 - the same


class Commit(NamedTuple):
    """Metadata of a commit; `reflog` is the reflog entry that checked it out, where known."""

    sha: str
    parents: tuple[str, ...]
    author: str
    at: str
    message: str
    reflog: str = ""

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


class GitObject(NamedTuple):
    """A git object with its id."""

    sha: str
    content: bytes


def decode_git(raw: bytes) -> str:
    """Decode git output; invalid UTF-8 survives a round trip."""
    return raw.decode("utf-8", "surrogateescape")


def is_object_id(word: str) -> bool:
    """Whether the word has the form of a full object id."""
    return 40 <= len(word) <= 64 and not word.strip("0123456789abcdef")


def error_from_result(result: GitResult) -> GitError:
    """The exception for a failed git command."""
    message = result.err or result.out[:MAX_OUTPUT_BYTES].decode("utf-8", "replace").strip()
    return GitError(message or f"git exited with code {result.code}")


class Repository:
    """The repository at a path, or the one around the current directory."""

    def __init__(
        self, path: str | os.PathLike[str] | None = None, where: Directories | None = None
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self._directories = where
        self._batch: BatchProcess | None = None
        self._is_entered = False

    def __enter__(self) -> Self:
        """Within the context, all object reads share one git process."""
        self._is_entered = True
        return self

    def __exit__(self, *_: object) -> None:
        self._is_entered = False
        self._close_batch()

    def _close_batch(self) -> None:
        if self._batch:
            self._batch.close()
            self._batch = None

    # Running git

    def run(
        self,
        *words: str,
        data: bytes = b"",
        timeout_s: float = GIT_TIMEOUT_S,
        max_bytes: int = MAX_OUTPUT_BYTES,
        hooks: bool = False,
        prompt: bool = False,
        index: bool = False,
        index_file: str = "",
    ) -> GitResult:
        """Run git and return its result, whatever the exit code.

        `index` keeps the index that a hook's commit is made from; `index_file` is used instead of
        that of the work tree.
        """
        line, env = self._command_line(words, hooks=hooks, prompt=prompt)
        if file := index_file or (os.environ.get("GIT_INDEX_FILE") if index else ""):
            env["GIT_INDEX_FILE"] = file
        return process.run_git(line, env, data, GitLimits(timeout_s, max_bytes))

    def _command_line(
        self, words: tuple[str, ...], *, hooks: bool = False, prompt: bool = False
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        here = () if self.path is None else ("-C", self.path)
        line = (
            "--no-pager",
            "--literal-pathspecs",
            *here,
            *(() if hooks else SAFE_OPTIONS),
            *words,
        )
        env = process.git_environment(inherit_repository=self.path is None)
        env |= {} if hooks else {"GIT_OPTIONAL_LOCKS": "0"}
        env |= {} if prompt else {"GIT_TERMINAL_PROMPT": "0"}
        return line, env

    def run_bytes(self, *words: str, data: bytes = b"", timeout_s: float = GIT_TIMEOUT_S) -> bytes:
        """Output of a git command; GitError if it fails."""
        done = self.run(*words, data=data, timeout_s=timeout_s)
        if done.code:
            raise error_from_result(done)
        return done.out

    def run_text(self, *words: str, data: bytes = b"") -> str:
        """Decoded output without the trailing newline; GitError if git fails."""
        return decode_git(self.run_bytes(*words, data=data)).removesuffix("\n")

    def try_text(self, *words: str) -> str | None:
        """Decoded output without the trailing newline; None if git fails."""
        done = self.run(*words)
        return None if done.code else decode_git(done.out).removesuffix("\n")

    def succeeds(self, *words: str) -> bool:
        """Whether the command exits with 0."""
        return self.run(*words).code == 0

    def run_with_hooks(self, *words: str, data: bytes = b"") -> str:
        """Run a command on the user's behalf, with their hooks; GitError if it fails."""
        done = self.run(*words, data=data, timeout_s=ACTION_TIMEOUT_S, hooks=True)
        if done.code:
            raise error_from_result(done)
        return done.out.decode("utf-8", "replace").strip()

    # Directories and configuration

    @property
    def directories(self) -> Directories:
        """The repository's directories, asked from git at first use."""
        self._directories = self._directories or self._query_directories()
        return self._directories

    def _query_directories(self) -> Directories:
        asked = ("--git-dir", "--git-common-dir", "--show-toplevel")
        done = self.run("rev-parse", *asked)
        lines = decode_git(done.out).removesuffix("\n").split("\n") if done.out else []
        if len(lines) < 2:
            raise error_from_result(done)
        git_dir, common = (os.path.join(self.path or "", path) for path in lines[:2])  # noqa: PTH118
        return Directories("".join(lines[2:3]), git_dir, common)

    @property
    def root(self) -> Path:
        """The top-level directory of the work tree."""
        return _path(self.directories.root)

    @property
    def git_directory(self) -> Path:
        """The git directory of this work tree."""
        return _path(self.directories.git_dir)

    @property
    def common_git_directory(self) -> Path:
        """The git directory shared by all work trees."""
        return _path(self.directories.common_git_dir)

    @property
    def is_bare(self) -> bool:
        """Whether the repository has no work tree."""
        return not self.directories.root

    def git_file(self, name: str) -> str:
        """The path of a file in this work tree's git directory."""
        return os.path.join(self.directories.git_dir, name)  # noqa: PTH118 - hooks have no `pathlib`

    def has_git_file(self, *names: str) -> bool:
        """Whether any of these files exists in this work tree's git directory."""
        return any(os.path.exists(self.git_file(name)) for name in names)  # noqa: PTH110 - the same

    def read_config(self, pattern: str) -> dict[str, str]:
        """Settings whose names match, keyed in lower case; the last value wins."""
        done = self.run("config", "-z", "--get-regexp", pattern)
        pairs = (entry.partition("\n") for entry in decode_git(done.out).split("\0") if entry)
        return {name.lower(): value for name, _, value in pairs}

    # Names

    def resolve(self, name: str) -> str | None:
        """The id of the commit that a name resolves to, or None."""
        return self.try_text(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )

    def existing_refs(self, *names: str) -> dict[str, str]:
        """The object ids of those refs that exist; full ref names only."""
        listed = self.run_text("for-each-ref", "--format=%(refname) %(objectname)", *names)
        ids = dict(line.split(" ") for line in listed.split("\n") if line)
        return {name: ids[name] for name in names if name in ids}

    def current_branch(self) -> str:
        """The checked-out branch, even without commits; empty on a detached HEAD."""
        name = head_ref(self._directories.git_dir) if self._directories else None
        if name is None:
            name = self.try_text("symbolic-ref", "--quiet", "HEAD") or ""
        return name.removeprefix(BRANCH_PREFIX) if name.startswith(BRANCH_PREFIX) else ""

    def has_branch(self, name: str) -> bool:
        """Whether a local branch of that name exists."""
        return self.succeeds(
            "rev-parse", "--quiet", "--verify", f"{BRANCH_PREFIX}{name}^{{commit}}"
        )

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `commit` has `ancestor` in its history; a commit contains itself."""
        return self.succeeds("merge-base", "--is-ancestor", ancestor, commit)

    # Commits and objects

    def commits(
        self, *which: str, max_count: int | None = None, revisions: Iterable[str] = ()
    ) -> list[Commit]:
        """Commits with messages, newest first; `revisions` go through stdin, so may be many."""
        limit = [] if max_count is None else [f"-n{max_count}"]
        data = "".join(f"{each}\n" for each in revisions).encode()
        more = ["--stdin"] if data else []
        shape = "--format=%H%x00%P%x00%an%x00%cI%x00%B%x00%gs%x00"
        words = ("log", shape, "--no-color", "--no-notes", *limit, *which, *more, "--")
        out = self.run_bytes(*words, data=data)
        return list(_parse_log(decode_git(out)))

    def commit(self, sha: str) -> Commit:
        return self.commits("--no-walk", sha)[0]

    def head_commit(self) -> Commit:
        """The commit at HEAD with its latest reflog entry, if a reflog exists."""
        newest = self.commits("--walk-reflogs", "HEAD", max_count=1)
        return newest[0] if newest else self.commit("HEAD")

    def files_changed_by(self, sha: str) -> tuple[str, ...]:
        """Paths that a commit changed relative to its first parent."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "--no-renames")
        listed = self.try_text(*words, f"{sha}^1", sha)
        if listed is None:
            listed = self.run_text(*words, "--root", sha)
        return tuple(path for path in listed.split("\0") if path)

    def read_objects(self, names: Iterable[str]) -> dict[str, GitObject]:
        """Read many objects at once, in this order; missing ones are left out."""
        wanted = [name for name in names if "\n" not in name]
        if not wanted:
            return {}
        return dict(
            _parse_batch(self._read_batch("".join(f"{name}\n" for name in wanted).encode()), wanted)
        )

    def _read_batch(self, query: bytes) -> bytes:
        words = ("cat-file", "--batch")
        if not self._is_entered:
            return self.run_bytes(*words, data=query)
        self._batch = self._batch or BatchProcess(*self._command_line(words))
        end_marker = (
            f"accord/{os.urandom(16).hex()}".encode()
        )  # a name that cannot exist marks the end of the response
        try:
            return self._batch.query(b"%s%s\n" % (query, end_marker), b"%s missing\n" % end_marker)
        except GitError:
            self._close_batch()
            raise

    def read_file_at(self, revision: str, path: str) -> bytes | None:
        """The content of a file at a revision; None if it does not exist there."""
        done = self.run("cat-file", "blob", f"{revision}:{path}")
        return None if done.code else done.out

    # The work tree

    def changed_paths(self) -> list[str]:
        """Tracked paths that differ from HEAD in the index or the work tree."""
        out = self.run_text("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        return [each[3:] for each in out.split("\0") if each]

    def untracked_paths(self) -> list[str]:
        """Untracked paths that are not ignored; an untracked directory is listed as one path."""
        words = ("ls-files", "--others", "--exclude-standard", "--directory", "-z")
        return [each for each in self.run_text(*words).split("\0") if each]

    def differing_paths(self, one: str, other: str) -> set[str]:
        """Paths that differ between two revisions."""
        out = self.run_text("diff", "--name-only", "-z", "--no-renames", one, other, "--")
        return {each for each in out.split("\0") if each}

    def is_tracked(self, path: str) -> bool:
        """Whether the file is tracked in this work tree."""
        return self.succeeds("ls-files", "--error-unmatch", "--", path)

    def is_ignored(self, path: str) -> bool:
        """Whether the file exists and is ignored."""
        return bool(
            self.run_text("ls-files", "--others", "--ignored", "--exclude-standard", "--", path)
        )


def _path(name: str) -> Path:
    from pathlib import Path

    return Path(name)


def _parse_log(out: str) -> Iterator[Commit]:
    parts = out.split("\0")
    for at in range(0, len(parts) - 6, 6):
        sha, parents, *rest = parts[at : at + 6]
        yield Commit(sha.lstrip("\n"), tuple(parents.split()), *rest)


def _parse_batch(out: bytes, wanted: list[str]) -> Iterator[tuple[str, GitObject]]:
    position = 0
    for name in wanted:
        end = out.find(b"\n", position)
        words = out[position:end].split(b" ")
        position = end + 1
        if words[-1].isdigit():
            size = int(words[-1])
            yield name, GitObject(decode_git(words[0]), out[position : position + size])
            position += size + 1


def find_repository(start: Path) -> Repository | None:
    """The repository whose work tree contains `start`, found without running git."""
    for root in (start, *start.parents):
        if where := directories_at(str(root)):
            return Repository(root, where)
        if (root / ".git").is_file():
            break
    return None
