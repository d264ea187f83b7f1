"""`.pact/log.jsonl` in a working tree: shared with other tools, and never made worse.

The locks are those that existing Pact tools take, so that ours and theirs wait for each other.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.limits import LIMITS, MIB, reached
from accord.core.kernel.refusal import Refused, Why
from accord.engine.ports import Conflict, Mark
from accord.files import sync

LOG_LOCK = "pactify-log.lock"
BASE_LOCK = "pactify-base.lock"
PATIENCE_S = 60.0
BASE_PATIENCE_S = 180.0
STEP_S = 0.01
USUAL_LOG = LIMITS["pact_log"].usual
Sleep = Callable[[float], None]
Most = Callable[[], int]


class Opened(NamedTuple):
    """A ledger that is open, and how it was when it was opened."""

    handle: int
    mark: Mark

    def read(self, start: int, most: int) -> bytes:
        """At most so many bytes from there on."""
        return os.pread(self.handle, most, start)


class FileLedger:
    """The file, and the lock that goes with it: a file of git's, or the directory itself."""

    def __init__(
        self, path: Path, lock: Path, sleep: Sleep = time.sleep, most: Most = lambda: USUAL_LOG
    ) -> None:
        self.path = path
        self._lock = lock
        self._sleep = sleep
        self._most = most  # asked where a log is larger than usual

    def read(self) -> tuple[bytes, Mark]:
        """All of it; nothing where there is none."""
        try:
            handle = self._open(os.O_RDONLY)
        except FileNotFoundError:
            return b"", Mark()
        with os.fdopen(handle, "rb") as file:
            mark = _mark(file.fileno())
            self._fits(mark.size)
            return file.read(mark.size), mark

    @contextmanager
    def opened(self) -> "Iterator[Opened]":
        """The file, to read parts of it; FileNotFoundError where there is none."""
        handle = self._open(os.O_RDONLY)
        try:
            yield Opened(handle, _mark(handle))
        finally:
            os.close(handle)

    def mark(self) -> Mark:
        """How the file is now, without reading it."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return Mark()
        return Mark(found.st_size, found.st_ctime_ns, found.st_ino)

    def append(self, expected: Mark, lines: bytes) -> Mark:
        """One write, then fsync; Conflict when somebody wrote since."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        handle = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            before = _mark(handle)
            if before != expected and (before.size or expected != Mark()):
                raise Conflict(f"{self.path.name} was written to meanwhile")
            self._fits(before.size + len(lines))
            self._write(handle, before.size, lines)
            os.fsync(handle)
            mark = _mark(handle)
        finally:
            os.close(handle)
        if new:
            sync(self.path.parent)
        return mark

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; refused when others hold it for a minute."""
        with flocked(self._lock, PATIENCE_S, self._sleep):
            yield

    def _fits(self, size: int) -> None:
        """Refuse a log that is too large to be read whole, or would be."""
        if size > USUAL_LOG and size > (most := self._most()):
            detail = f"{self.path.name} has over {most // MIB} MiB, which is the limit pact_log"
            raise reached("pact_log", most, f"{detail}; ACCORD_LIMIT_PACT_LOG moves it")

    def _open(self, flags: int) -> int:
        try:
            # Not blocking, so that a pipe in its place is refused and not waited for.
            flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            handle = os.open(self.path, flags, 0o644)
        except OSError as no:
            if no.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
                raise not_a_file(self.path) from None
            raise
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise not_a_file(self.path)
        return handle

    def _write(self, handle: int, size: int, lines: bytes) -> None:
        try:
            written = os.write(handle, lines)
        except OSError as no:
            raise Refused(Why.UNAVAILABLE, f"{self.path.name}: {no.strerror}") from None
        if written == len(lines):
            return
        # A full disk took a part. We hold the lock; take it back unless somebody wrote behind it.
        if os.fstat(handle).st_size == size + written:
            os.ftruncate(handle, size)
        raise Refused(Why.UNAVAILABLE, f"{self.path.name}: the disk is full; nothing was recorded")


def not_a_file(path: Path) -> Refused:
    """Somebody put something else where the log should be."""
    return Refused(Why.WRONG_STATE, f"{path} is no plain file, and is left alone")


def too_large(path: Path, most: int) -> Refused:
    """Nobody reads that much."""
    detail = f"{path} has over {most // MIB} MiB, too much to be read"
    return Refused(Why.TOO_LARGE, detail, {"most": most})


def contents(path: Path, most: int) -> bytes:
    """All of a plain file; refused where it is something else, or larger. OSError as it comes."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise not_a_file(path)
        data = b"" if found.st_size > most else _up_to(handle, most + 1)
        if found.st_size > most or len(data) > most:
            raise too_large(path, most)
        return data
    finally:
        os.close(handle)


def _up_to(handle: int, most: int) -> bytes:
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(most)


def plain(path: Path) -> Path:
    """The path, where a plain file is or can be; a pipe there would be waited for without end."""
    if path.exists() and not path.is_file():
        raise not_a_file(path)
    return path


def _mark(handle: int) -> Mark:
    found = os.fstat(handle)
    return Mark(found.st_size, found.st_ctime_ns, found.st_ino)


@contextmanager
def flocked(path: Path, patience: float, sleep: Sleep = time.sleep) -> Iterator[None]:
    """Hold an advisory lock on a file (made if missing) or a directory, as other tools do."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        waited = 0.0
        while not _taken(handle):
            if waited >= patience:
                detail = f"Others have been writing for {patience:.0f} s ({path}); try again later"
                raise Refused(Why.UNAVAILABLE, detail)
            sleep(STEP_S)
            waited += STEP_S
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """The whole new content or the old one, never a part; a link in its place is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with fresh.open("xb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if path.is_file() and not path.is_symlink():
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    if durable:
        sync(path.parent)
