"""A repository: the few git commands that we run. Arguments are arrays, never a shell's line."""

import os
import subprocess
from pathlib import Path

PATIENCE_S = 120
# What a caller's hook or another repository would lead us to.
_LED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


class GitError(Exception):
    """Git refused, or is not there; the sentence is its own."""


class Repository:
    """A work tree, and what git says of it."""

    def __init__(self, root: Path, directory: Path, common: Path) -> None:
        self.root = root
        self.directory = directory  # of this work tree
        self.common = common  # of all of them

    def run(self, *words: str, data: bytes | None = None, env: dict[str, str] | None = None) -> str:
        """What git prints; GitError when it refuses."""
        return self.read(*words, data=data, env=env).decode("utf-8", "replace").strip()

    def read(
        self, *words: str, data: bytes | None = None, env: dict[str, str] | None = None
    ) -> bytes:
        """The same as bytes."""
        clean = {name: value for name, value in os.environ.items() if name not in _LED}
        try:
            done = subprocess.run(
                ["git", "--literal-pathspecs", *words],
                cwd=self.root,
                input=data if data is not None else b"",
                capture_output=True,
                env={**clean, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(env or {})},
                timeout=PATIENCE_S,
                check=False,
            )
        except FileNotFoundError:
            raise GitError("git is not installed here") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {words[0]} took over {PATIENCE_S} s") from None
        if done.returncode:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            raise GitError(said or f"git {words[0]} ended with {done.returncode}")
        return done.stdout

    def says(self, *words: str) -> bool:
        """Whether git agrees."""
        try:
            self.run(*words)
        except GitError:
            return False
        return True

    def branch(self) -> str:
        """The branch that is checked out; empty for none."""
        try:
            return self.run("symbolic-ref", "--quiet", "--short", "HEAD")
        except GitError:
            return ""

    def has_branch(self, name: str) -> bool:
        """Whether there is a local branch of that name."""
        return self.says("rev-parse", "--quiet", "--verify", f"refs/heads/{name}^{{commit}}")

    def show(self, revision: str, path: str) -> bytes | None:
        """The file as it is there, or None."""
        try:
            return self.read("cat-file", "blob", f"{revision}:{path}")
        except GitError:
            return None

    def changed(self) -> list[str]:
        """Tracked paths that differ from the last commit, in index or work tree."""
        out = self.read("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        return [each[3:] for each in out.decode("utf-8", "surrogateescape").split("\0") if each]

    def differing(self, one: str, other: str) -> set[str]:
        """Paths that two revisions have differently."""
        out = self.read("diff", "--name-only", "-z", "--no-renames", one, other, "--")
        return {each for each in out.decode("utf-8", "surrogateescape").split("\0") if each}

    def is_tracked(self, path: str) -> bool:
        """Whether git knows the file in this work tree."""
        return self.says("ls-files", "--error-unmatch", "--", path)

    def ignores(self, path: str) -> bool:
        """Whether the file is there and git was told not to look at it."""
        return bool(self.run("ls-files", "--others", "--ignored", "--exclude-standard", "--", path))

    def contains(self, branch: str, other: str) -> bool:
        """Whether everything of `other` is in `branch`."""
        return self.says("merge-base", "--is-ancestor", other, branch)


def find(start: Path) -> Repository | None:
    """The work tree that `start` is in, if it is in one; git is not asked, which takes longer."""
    for root in (start, *start.parents):
        git = root / ".git"
        if git.is_dir() and (git / "HEAD").exists():
            return Repository(root, git, git)
        if git.is_file():
            return _linked(root, git)
    return None


def _linked(root: Path, file: Path) -> Repository | None:
    """A work tree whose git directory is elsewhere."""
    word, _, there = file.read_text("utf-8", "surrogateescape").strip().partition(": ")
    directory = root / there
    if word != "gitdir" or not (directory / "HEAD").exists():
        return None
    shared = directory / "commondir"
    common = directory / shared.read_text("utf-8").strip() if shared.exists() else directory
    return Repository(root, directory, common)
