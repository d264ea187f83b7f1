"""A work tree of its own for each fork, so that forks do not overwrite each other's files."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from accord.agents.loop import BehaviorError
from accord.agents.tools.work_tree_record import WorkTreeRecorder
from accord.core.provenance.commit_message.trailer_values import branch_of
from accord.git.process import GitError
from accord.git.repository import Repository

MAX_NAME = 48
FindWorkdir = Callable[[str | None], Awaitable[Path]]  # where to work in a fork


class WorktreeError(BehaviorError):
    """The work tree cannot be made; the message says why."""


class Worktrees:
    """Makes work trees beside a repository, one for each fork, each on a branch of its own."""

    def __init__(self, repository: Repository, session: str) -> None:
        self._repository = repository
        self._session = session
        self._lock = asyncio.Lock()
        self._recorders: dict[Path, WorkTreeRecorder] = {}

    async def directory(self, fork: str | None) -> Path:
        """The work tree of a fork, made if it is not there; the trunk has the repository's own."""
        if fork is None:
            return self._repository.root
        async with self._lock:
            path = await asyncio.to_thread(self._ensure, fork)
            self._recorders.setdefault(path, WorkTreeRecorder(path))
            return path

    def recorder(self, path: Path) -> WorkTreeRecorder | None:
        """Records runs in a work tree of a fork; None for any other directory."""
        return self._recorders.get(path)

    def _ensure(self, fork: str) -> Path:
        name = worktree_name(self._session, fork)
        root = self._repository.root.resolve()
        path = root.parent / f"{root.name}.worktrees" / name
        if str(path) in self._known():
            return path
        if path.exists():
            raise WorktreeError(f"{path} exists, but is not a work tree of {root}; move it away")
        branch = branch_of(fork)  # by which commits there are recognised as the fork's
        has_branch = self._repository.has_branch(branch)
        place = [str(path), branch] if has_branch else ["-b", branch, str(path), "HEAD"]
        try:
            self._repository.run_text("worktree", "add", "--quiet", *place)
        except GitError as error:
            raise WorktreeError(f"git could not make {path}: {error}") from None
        return path

    def _known(self) -> set[str]:
        listing = self._repository.run_text("worktree", "list", "--porcelain")
        return {
            line.removeprefix("worktree ")
            for line in listing.splitlines()
            if line.startswith("worktree ")
        }


def worktree_name(session: str, fork: str) -> str:
    """A name for a directory and a branch; different forks have different ones."""
    readable = re.sub(r"[^a-z0-9]+", "-", fork.rpartition("/")[2].lower()).strip("-")[:MAX_NAME]
    digest = sha256(f"{session}\n{fork}".encode()).hexdigest()[:8]
    return f"{readable.strip('-') or 'fork'}-{digest}"
