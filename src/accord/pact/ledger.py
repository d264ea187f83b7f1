"""The ledger file `.pact/log.jsonl`, which other tools write as well: read, append, lock.

The locks are the same files that existing Pact tools lock, so that all tools exclude each other.
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

from accord.atomic_files import sync_directory
from accord.core.kernel.limits import LIMITS, MIB, limit_exceeded
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import Conflict

LOG_LOCK_FILE = "pactify-log.lock"
BASE_LOCK_FILE = "pactify-base.lock"
LOG_LOCK_TIMEOUT_S = 60.0
BASE_LOCK_TIMEOUT_S = 180.0
LOCK_POLL_S = 0.01
DEFAULT_MAX_LOG_BYTES = LIMITS["pact_log"].default
Sleep = Callable[[float], None]
MaxBytes = Callable[[], int]


class LedgerMark(NamedTuple):
    """State of a ledger when it was read; a different mark means that it was written since."""

    size: int = 0
    changed: int = 0
    node: int = 0


class FileLedger:
    """The ledger file and its lock, which is a file in the git directory or the directory above."""

    def __init__(
        self,
        path: Path,
        lock: Path,
        sleep: Sleep = time.sleep,
        most: MaxBytes = lambda: DEFAULT_MAX_LOG_BYTES,
    ) -> None:
        self.path = path
        self._lock = lock
        self._sleep = sleep
        self._max_bytes = most  # only called when the log exceeds the default limit

    def read(self) -> tuple[bytes, LedgerMark]:
        """The whole content and its mark; empty if the file does not exist."""
        try:
            handle = self._open(os.O_RDONLY)
        except FileNotFoundError:
            return b"", LedgerMark()
        with os.fdopen(handle, "rb") as file:
            mark = _mark_of(os.fstat(file.fileno()))
            self._check_size(mark.size)
            return file.read(mark.size), mark

    def mark(self) -> LedgerMark:
        """The file's current mark, without reading it."""
        try:
            info = self.path.lstat()
        except FileNotFoundError:
            return LedgerMark()
        return _mark_of(info)

    def append(self, expected: LedgerMark, lines: bytes) -> LedgerMark:
        """Append in one write, then fsync; Conflict if the file changed since `expected`.

        If the last line has no line break yet, one is written first.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        handle = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            before = _mark_of(os.fstat(handle))
            if before != expected and (before.size or expected != LedgerMark()):
                raise Conflict(f"{self.path.name} was changed by another process")
            self._check_size(before.size + len(lines))
            is_ended = not before.size or os.pread(handle, 1, before.size - 1) == b"\n"
            self._write(handle, before.size, lines if is_ended else b"\n" + lines)
            os.fsync(handle)
            mark = _mark_of(os.fstat(handle))
        finally:
            os.close(handle)
        if new:
            sync_directory(self.path.parent)
        return mark

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the ledger's lock; refused after a timeout of one minute."""
        with file_lock(self._lock, LOG_LOCK_TIMEOUT_S, self._sleep):
            yield

    def _check_size(self, size: int) -> None:
        """Refuse a size above the limit pact_log."""
        if size > DEFAULT_MAX_LOG_BYTES and size > (most := self._max_bytes()):
            detail = f"{self.path.name} is larger than {most // MIB} MiB, the limit pact_log"
            raise limit_exceeded(
                "pact_log", most, f"{detail}; set ACCORD_LIMIT_PACT_LOG to raise it"
            )

    def _open(self, flags: int) -> int:
        try:
            # Non-blocking, so that a named pipe in its place is refused instead of waited for.
            flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            handle = os.open(self.path, flags, 0o644)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
                raise not_a_file_refusal(self.path) from None
            raise
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise not_a_file_refusal(self.path)
        return handle

    def _write(self, handle: int, size: int, lines: bytes) -> None:
        try:
            written = os.write(handle, lines)
        except OSError as error:
            raise Refused(Reason.UNAVAILABLE, f"{self.path.name}: {error.strerror}") from None
        if written == len(lines):
            return
        # A full disk took only part. Undo it, unless a tool without lock has appended since.
        if os.fstat(handle).st_size == size + written:
            os.ftruncate(handle, size)
        raise Refused(
            Reason.UNAVAILABLE, f"{self.path.name}: the disk is full; nothing was recorded"
        )


def not_a_file_refusal(path: Path) -> Refused:
    """The refusal for a path that is not a regular file."""
    return Refused(Reason.WRONG_STATE, f"{path} is not a regular file, so it was not touched")


def too_large_refusal(path: Path, most: int) -> Refused:
    """The refusal for a file that exceeds a size limit."""
    detail = f"{path} is larger than {most // MIB} MiB, too large to read"
    return Refused(Reason.TOO_LARGE, detail, {"most": most})


def read_plain_file(path: Path, most: int) -> bytes:
    """Read a regular file; refused if it is something else or too large. OSError passes through."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise not_a_file_refusal(path)
        data = b"" if info.st_size > most else _read_at_most(handle, most + 1)
        if info.st_size > most or len(data) > most:
            raise too_large_refusal(path, most)
        return data
    finally:
        os.close(handle)


def _read_at_most(handle: int, most: int) -> bytes:
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read(most)


def check_plain_file(path: Path) -> Path:
    """Refuse if the path exists and is not a regular file; reading a named pipe would block."""
    if path.exists() and not path.is_file():
        raise not_a_file_refusal(path)
    return path


def _mark_of(info: os.stat_result) -> LedgerMark:
    return LedgerMark(info.st_size, info.st_ctime_ns, info.st_ino)


@contextmanager
def file_lock(path: Path, timeout_s: float, sleep: Sleep = time.sleep) -> Iterator[None]:
    """Hold an advisory lock on a file (created if missing) or directory, as other tools do."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        waited = 0.0
        while not _try_lock(handle):
            if waited >= timeout_s:
                detail = (
                    f"Another process has held the lock {path} for {timeout_s:.0f} s; "
                    "try again later"
                )
                raise Refused(Reason.UNAVAILABLE, detail)
            sleep(LOCK_POLL_S)
            waited += LOCK_POLL_S
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file atomically; a symlink in its place is replaced, not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if path.is_file() and not path.is_symlink():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync_directory(path.parent)
