"""Another file in the place of a store: at every moment there is the old one or the new one.

A database and its write-ahead log are two files, and nothing replaces two files at once. So the
new file is first given a name that says what is to be done; that one rename decides. Whoever
opens the store from then on does the rest, as often as it takes: `restore` itself, or after a
crash whatever opens the store next.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from accord.files import sync

RESTORED = ".restored-"
BEFORE = ".before-"


def swap(path: Path, new: Path, instant: str) -> Path | None:
    """Put `new`, whole and durable, in the place of `path`; returns where the old one lies now.

    Neither may be a link: SQLite keeps the write-ahead log beside the file itself.
    """
    waiting = path.with_name(f"{path.name}{RESTORED}{instant}")
    new.rename(waiting)
    sync(path.parent)
    finish(path)
    before = _before(path, instant)
    return before if before.exists() else None


def finish(path: Path) -> None:
    """Do what is left of a swap that was decided; nothing where there was none."""
    path = path.resolve()
    for waiting in sorted(path.parent.glob(f"{escape(path.name)}{RESTORED}*")):
        with _alone(waiting) as still_there:
            if still_there:
                _move_in(path, waiting, waiting.name.rpartition(RESTORED)[2])


def _before(path: Path, instant: str) -> Path:
    return path.with_name(f"{path.name}{BEFORE}{instant}")


def _move_in(path: Path, waiting: Path, instant: str) -> None:
    before = _before(path, instant)
    with suppress(FileNotFoundError):
        _beside(path, "-wal").rename(_beside(before, "-wal"))
    _beside(path, "-shm").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        _keep(path, before)
    # The old write-ahead log must be gone for certain before the new file stands beside it.
    sync(path.parent)
    waiting.replace(path)
    sync(path.parent)


def _keep(path: Path, before: Path) -> None:
    """The old file under both names, so that there is no moment without a store."""
    try:
        os.link(path, before, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # a disk without links
        if path.exists():
            path.rename(before)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@contextmanager
def _alone(waiting: Path) -> Iterator[bool]:
    """One process at a time; whether there is still something to do."""
    import fcntl

    try:
        handle = os.open(waiting, os.O_RDWR)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield waiting.exists()
    finally:
        os.close(handle)
