"""SQLite's errors as messages that say what to do."""

import errno
import re
import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec

from accord.engine.ports import (
    DamagedError,
    DiskFullError,
    ForeignStoreError,
    NewerStoreError,
    StoreError,
)
from accord.engine.streams.verified_reads import REPAIR_HINT

# Changed bytes can turn a row into anything: invalid text, a number instead of text.
MALFORMED_ROW_ERRORS = (ValueError, TypeError, msgspec.MsgspecError)
_DAMAGE_ERRORS = (apsw.CorruptError, apsw.NotADBError, *MALFORMED_ROW_ERRORS)
# What `PRAGMA integrity_check` says of pages and cells helps nobody who has to restore a backup.
_DAMAGE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bindex\b"), "the file is damaged: an index does not agree with its records"),
    (re.compile(r"\bvalue in\b"), "the file is damaged: records lack some of their fields"),
)
_OTHER_DAMAGE = "the file is damaged: some of its pages are not as they were written"
READ_ONLY_HINT = "is read-only; make it writable, or copy it to a directory where you may write"
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (apsw.ReadOnlyError, f"{{path}} {READ_ONLY_HINT}"),
    (apsw.PermissionsError, "{path} is not accessible; check the permissions of file and folder"),
    (PermissionError, "{path} is not accessible; check the permissions of file and folder"),
    (apsw.CantOpenError, "{path} cannot be opened; check the permissions of file and folder"),
    (apsw.BusyError, "Another process kept {path} locked for too long; try again"),
    (apsw.LockedError, "Another process kept {path} locked for too long; try again"),
    *((kind, f"{{path}} is damaged; {REPAIR_HINT}") for kind in _DAMAGE_ERRORS),
    (apsw.IOError, "The disk failed under {path}; check the disk and its cables"),
)
_DISK_FULL_HINT = "No disk space left for {path}; free some space and try again"
_DISK_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
# On a full disk SQLite reports a plain I/O error for its shared-memory file.
_MIN_FREE_BYTES = 1 << 20
# SQLite's text for an error that did not come from SQLite.
_NO_SQLITE_ERROR = "not an error"
OTHER_DIR_HINT = "name another --data-dir"
# `accord verify` cannot open such a file, so it is not suggested.
RESTORE_HINT = "restore a backup with `accord restore --force`"


def store_error(path: str, error: BaseException) -> StoreError:
    """The error with a hint, and SQLite's own text at the end, unless the file is damaged."""
    has_detail = not isinstance(error, _DAMAGE_ERRORS) and str(error) != _NO_SQLITE_ERROR
    detail = f" ({error})" if has_detail else ""
    if is_disk_full(path, error):
        return DiskFullError(f"{_DISK_FULL_HINT.format(path=path)}{detail}", path)
    help_ = next((text for kind, text in _HINTS if isinstance(error, kind)), "{path} failed")
    kind = DamagedError if isinstance(error, _DAMAGE_ERRORS) else StoreError
    return kind(f"{help_.format(path=path)}{detail}", path)


def describe_damage(finding: str) -> str:
    """A finding of SQLite's integrity check as a sentence."""
    return next((text for words, text in _DAMAGE if words.search(finding)), _OTHER_DAMAGE)


def is_disk_full(path: str, error: BaseException) -> bool:
    """Whether the disk being full is the only problem."""
    if isinstance(error, apsw.IOError):
        with suppress(OSError):
            return shutil.disk_usage(Path(path).absolute().parent).free < _MIN_FREE_BYTES
    return isinstance(error, apsw.FullError) or getattr(error, "errno", None) in _DISK_FULL_ERRNOS


def foreign_error(path: str, problem: str, hint: str = OTHER_DIR_HINT) -> ForeignStoreError:
    """The file is not ours."""
    return ForeignStoreError(f"{path} {problem} and was not changed; {hint}", path)


def newer_error(path: str, version: int, newest: int) -> NewerStoreError:
    """A later version wrote the file."""
    why = f"was written by a later Accord (format {version}, this one reads up to {newest})"
    hint = "use that version or a newer one"
    return NewerStoreError(f"{path} {why} and was not changed; {hint}", path)


def damaged_error(path: str, error: BaseException, hint: str = RESTORE_HINT) -> DamagedError:
    """The file is ours and cannot be read."""
    # What changed bytes were mistaken for helps no reader.
    detail = "" if isinstance(error, _DAMAGE_ERRORS) else f" ({error})"
    return DamagedError(f"{path} is damaged{detail} and was not changed; {hint}", path)
