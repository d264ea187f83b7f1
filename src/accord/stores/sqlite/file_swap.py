"""Replaces a store by another file; at every moment the old or the new one is complete.

A database and its write-ahead log are two files, which cannot be replaced at once. So the new file
is first renamed to a name that marks a pending swap; that rename is the point of no return. The
next process that opens the store completes the swap, any number of times: `restore` itself, or
another one after a crash.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from accord.atomic_files import sync_directory

RESTORED_SUFFIX = ".restored-"
BEFORE_SUFFIX = ".before-"


def swap_file(path: Path, new: Path, instant: str) -> Path | None:
    """Put the complete and durable file `new` in the place of `path`; returns the old file's path.

    Neither may be a symbolic link: SQLite keeps the write-ahead log next to the real file.
    """
    waiting = path.with_name(f"{path.name}{RESTORED_SUFFIX}{instant}")
    new.rename(waiting)
    sync_directory(path.parent)
    finish_swap(path)
    before = _old_path(path, instant)
    return before if before.exists() else None


def finish_swap(path: Path) -> None:
    """Complete a pending swap, if there is one."""
    path = path.resolve()
    for waiting in sorted(path.parent.glob(f"{escape(path.name)}{RESTORED_SUFFIX}*")):
        with _locked(waiting) as still_there:
            if still_there:
                _move_in(path, waiting, waiting.name.rpartition(RESTORED_SUFFIX)[2])


def _old_path(path: Path, instant: str) -> Path:
    return path.with_name(f"{path.name}{BEFORE_SUFFIX}{instant}")


def _move_in(path: Path, waiting: Path, instant: str) -> None:
    before = _old_path(path, instant)
    with suppress(FileNotFoundError):
        _sibling(path, "-wal").rename(_sibling(before, "-wal"))
    _sibling(path, "-shm").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        _keep_old(path, before)
    # The old write-ahead log must be gone durably before the new file is next to it.
    sync_directory(path.parent)
    waiting.replace(path)
    sync_directory(path.parent)


def _keep_old(path: Path, before: Path) -> None:
    """Link the old file under its new name first, so that a store exists at every moment."""
    try:
        os.link(path, before, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # the file system has no hard links
        if path.exists():
            path.rename(before)


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


@contextmanager
def _locked(waiting: Path) -> Iterator[bool]:
    """One process at a time; yields whether the swap is still pending."""
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
