"""Records what a run does to a work tree that we made for it: tree ids before and after.

What was not approved must not get into the difference. So runs in a work tree are one after the
other, and none is recorded while a host, which writes when it likes, works there. A person who
edits files there during a run cannot be told from the run.
"""

import asyncio
import fcntl
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from accord.core.provenance.coverage.recheck import CommittedFile
from accord.core.provenance.coverage.recorded_run import (
    CHANGE_FIELDS,
    MAX_RECORDED_CHANGES,
    RECORD_KEY,
)
from accord.git.commit_content import RAW_OPTIONS, parse_raw
from accord.git.process import GitError
from accord.git.repository import Repository

RUN_LOCK, HOSTS_LOCK = "accord-run.lock", "accord-hosts.lock"
LOCK_POLL_S = 0.1
MAX_RECORD_BYTES = 64 << 10  # every member of the fork receives it


class TreeState(NamedTuple):
    """The trees of the commit that is checked out, and of all files that git does not ignore."""

    base: str
    files: str


class RunRecord:
    """A run that goes on; `metadata` after it is for its result."""

    def __init__(self, repo: Repository, before: TreeState | None) -> None:
        self._repo = repo
        self._before = before

    async def metadata(self) -> dict[str, Any] | None:
        """What the run changed; None if that is not known."""
        return await asyncio.to_thread(self._metadata)

    def _metadata(self) -> dict[str, Any] | None:
        after = tree_state(self._repo)
        if self._before is None or after is None:
            return None
        trees = self._before.files, after.files
        try:
            changes = parse_raw(self._repo.run_bytes("diff-tree", *RAW_OPTIONS, *trees))
            facts = [_facts(change) for change in changes]
        except (GitError, UnicodeEncodeError):
            return None
        record = {"base": self._before.base, "before": trees[0], "after": trees[1]}
        metadata = {RECORD_KEY: {**record, "changes": facts}}
        is_small = len(facts) <= MAX_RECORDED_CHANGES
        return metadata if is_small and len(json.dumps(metadata)) <= MAX_RECORD_BYTES else None


class WorkTreeRecorder:
    """Records runs in one work tree."""

    def __init__(self, path: Path) -> None:
        self._repo = Repository(path)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[RunRecord]:
        """Wait until nothing else runs here, and let nothing else begin."""
        with lock_file(self._repo, RUN_LOCK) as runs, lock_file(self._repo, HOSTS_LOCK) as hosts:
            await wait_for_lock(runs, fcntl.LOCK_EX)
            is_alone = take_lock(hosts, fcntl.LOCK_EX)
            before = await asyncio.to_thread(tree_state, self._repo) if is_alone else None
            yield RunRecord(self._repo, before)


@asynccontextmanager
async def host_at_work(path: Path) -> AsyncIterator[None]:
    """While a host works in a work tree, no run there is recorded."""
    with lock_file(Repository(path), HOSTS_LOCK) as hosts:
        await wait_for_lock(hosts, fcntl.LOCK_SH)
        yield


@contextmanager
def lock_file(repo: Repository, name: str) -> Iterator[int]:
    """A file of the work tree; closing it gives its lock back."""
    handle = os.open(repo.git_directory / name, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


async def wait_for_lock(handle: int, kind: int) -> None:
    """Return with the lock. Who has it may be another process, which does not report its end."""
    for _ in count():
        if take_lock(handle, kind):
            return
        await asyncio.sleep(LOCK_POLL_S)


def take_lock(handle: int, kind: int) -> bool:
    """Whether the lock was free."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def tree_state(repo: Repository) -> TreeState | None:
    """The state of the work tree; None if git cannot say.

    An index of its own: that of the repository belongs to the committer, and what it says of the
    files may be out of date, even on purpose (`--assume-unchanged`).
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            index = str(Path(folder) / "index")
            for words in (("read-tree", "HEAD"), ("add", "--all")):
                if repo.run(*words, index_file=index).code:
                    return None
            files = repo.run("write-tree", index_file=index)
        base = repo.try_text("rev-parse", "--verify", "--quiet", "HEAD^{tree}")
    except (GitError, OSError):
        return None
    return TreeState(base, files.out.decode().strip()) if base and not files.code else None


def _facts(change: CommittedFile) -> dict[str, str]:
    change.path.encode()  # a path that is not UTF-8 raises UnicodeEncodeError
    told = change._asdict()
    return {name: told[name] for name in CHANGE_FIELDS if told[name]}
