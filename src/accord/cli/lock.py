"""One server for each data directory: the second is told who was first."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accord.core.kernel.refusal import Refused, Why

FILE = "server.lock"
IGNORE = ".gitignore"
# Only in a folder of our own: in one that was there before, it would hide what is not ours.
IGNORED = "# Keys, and everything that was said: none of it belongs into a repository.\n*\n"


class Lock:
    """A lock that ends with the process that holds it, however that ends."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def note(self, line: str) -> None:
        """What whoever comes second will read."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"{line}\n".encode(), 0)


@contextmanager
def locked(home: Path) -> Iterator[Lock]:
    """Hold the data directory; refused while another server does."""
    is_new = not home.exists()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        detail = f"{home} cannot be a folder, there is a file in its way; name another --data-dir"
        raise Refused(Why.MALFORMED, detail) from None
    if is_new:
        (home / IGNORE).write_text(IGNORED, "utf-8")
    handle = os.open(home / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken(home, os.pread(handle, 512, 0).decode(errors="replace").strip()) from None
        lock = Lock(handle)
        lock.note(f"starting, process {os.getpid()}")
        yield lock
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def taken(home: Path, note: str) -> Refused:
    """Who has it, and what to do."""
    who = f"A server ({note})" if note else "A server"
    detail = f"{who} uses {home} already; stop it first, or name another --data-dir"
    return Refused(Why.UNAVAILABLE, detail)
