"""SQLite's errors as sentences that help."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec

from accord.engine.ports import (
    DamagedError,
    ForeignStoreError,
    LaterStoreError,
    NoRoomError,
    StoreError,
)
from accord.engine.proven import DO

# Changed bytes can make anything of a row: text that is none, a number where text was.
NONSENSE = (ValueError, TypeError, msgspec.MsgspecError)
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, *NONSENSE)
READ_ONLY = "may only be read; give yourself the right to write it, or copy it to where you have it"
_HELP: tuple[tuple[type[Exception], str], ...] = (
    (apsw.ReadOnlyError, f"{{path}} {READ_ONLY}"),
    (apsw.PermissionsError, "{path} may not be used; check the rights of file and folder"),
    (PermissionError, "{path} may not be used; check the rights of file and folder"),
    (apsw.CantOpenError, "{path} cannot be opened; check the rights of file and folder"),
    (apsw.BusyError, "Another process kept {path} locked for too long; try again"),
    (apsw.LockedError, "Another process kept {path} locked for too long; try again"),
    *((kind, f"{{path}} is damaged; {DO}") for kind in _DAMAGE),
    (apsw.IOError, "The disk failed under {path}; check the disk and its cables"),
)
_NO_ROOM = "There is no room left for {path}; make room and try again"
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# SQLite has no better word for a full disk than that it failed, where it wants a shared page.
_FULL = 1 << 20
# What SQLite says of an error that was none of its own.
_SILENT = "not an error"
ELSEWHERE = "name another --data-dir"
# A file that cannot even be opened is more than `accord verify` can speak of.
RESTORE = "`accord restore --force` brings a backup back"


def store_error(path: str, error: BaseException) -> StoreError:
    """What went wrong, for a person, with SQLite's own words at the end."""
    said = "" if str(error) == _SILENT else f" ({error})"
    if is_full(path, error):
        return NoRoomError(f"{_NO_ROOM.format(path=path)}{said}", path)
    help_ = next((text for kind, text in _HELP if isinstance(error, kind)), "{path} failed")
    kind = DamagedError if isinstance(error, _DAMAGE) else StoreError
    return kind(f"{help_.format(path=path)}{said}", path)


def is_full(path: str, error: BaseException) -> bool:
    """Whether all that is wrong is that the disk has no room."""
    if isinstance(error, apsw.IOError):
        with suppress(OSError):
            return shutil.disk_usage(Path(path).absolute().parent).free < _FULL
    return isinstance(error, apsw.FullError) or getattr(error, "errno", None) in _NO_SPACE


def foreign(path: str, why: str, do: str = ELSEWHERE) -> ForeignStoreError:
    """Why we leave this file alone."""
    return ForeignStoreError(f"{path} {why} and was not touched; {do}", path)


def later(path: str, version: int, newest: int) -> LaterStoreError:
    """A version we do not know could mean anything by its tables."""
    why = f"was written by a later Accord (format {version}, we know {newest})"
    return LaterStoreError(f"{path} {why} and was not touched; run that one, or a newer", path)


def damaged(path: str, error: BaseException, do: str = RESTORE) -> DamagedError:
    """It is ours, and cannot be read."""
    return DamagedError(f"{path} is damaged ({error}) and was not touched; {do}", path)
