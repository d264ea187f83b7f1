"""Lets only one server use a data directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accord.core.kernel.refusal import Reason, Refused

LOCK_FILE = "server.lock"
GITIGNORE_FILE = ".gitignore"
# Only in a directory that we create: in an existing one it would hide other files from git.
GITIGNORE_TEXT = "# Private keys and all messages: nothing here belongs in a repository.\n*\n"


class DataDirLock:
    """A lock that the system releases when the process ends, even by a crash."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def write_note(self, line: str) -> None:
        """Store a line that the error for the next process quotes."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{line}\n".encode(), 0)


@contextmanager
def lock_data_dir(home: Path) -> Iterator[DataDirLock]:
    """Lock the data directory; refuses while another server uses it."""
    is_new = not home.exists()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        detail = (
            f"{home} cannot be a directory, because a file is in its place; use another --data-dir"
        )
        raise Refused(Reason.MALFORMED, detail) from None
    if is_new:
        (home / GITIGNORE_FILE).write_text(GITIGNORE_TEXT, "utf-8")
    handle = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise already_locked(
                home, os.pread(handle, 512, 0).decode(errors="replace").strip()
            ) from None
        lock = DataDirLock(handle)
        lock.write_note(f"starting, process {os.getpid()}")
        yield lock
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def already_locked(home: Path, note: str) -> Refused:
    """Which server uses the directory, and what to do."""
    server = f"A server ({note})" if note else "A server"
    detail = f"{server} is already using {home}; stop it first, or use another --data-dir"
    return Refused(Reason.UNAVAILABLE, detail)
