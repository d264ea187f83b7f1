"""Copies a log that may be in use: all of it as of one commit, in one file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import apsw
import msgspec

from accord.engine.ports import ForeignStoreError
from accord.stores.sqlite.database_file import connect, ensure_ours
from accord.stores.sqlite.errors import damaged_error, foreign_error, store_error
from accord.stores.sqlite.schema import APPLICATION_ID

# Pages of 4 KiB; small steps, so that Ctrl-C and the progress line respond quickly.
STEP_PAGES = 1024
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
_DROP_EXTRAS = """
    DROP TABLE IF EXISTS backup;
    DROP TABLE IF EXISTS keyring;
"""
_CREATE_EXTRAS = """
    CREATE TABLE backup (made_at INTEGER NOT NULL);
    CREATE TABLE keyring (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
"""

NOT_A_LOG = "is not a log of Accord"
OTHER_FILE_HINT = "name another file"
FOREIGN_EXTRAS = (
    "This backup contains tables that `accord backup` does not write; nothing was restored"
)

CopyProgress = Callable[[int, int], None]
MAX_INSTANT_MS = 253_402_300_799_999  # end of the year 9999
Moment = Annotated[int, msgspec.Meta(ge=0, le=MAX_INSTANT_MS)]


class BackupExtras(msgspec.Struct, frozen=True):
    """What a backup contains besides the log; a plain copy of the file has neither."""

    made_at: Moment | None = None
    files: Mapping[str, bytes] = {}


def copy_live(source: str, target: str, progress: CopyProgress) -> None:
    """Copy a store in use; neither its writers nor its readers are blocked."""
    try:
        _copy(_open_live(source), source, target, progress)
    except apsw.FullError as error:
        raise store_error(target, error) from error
    except apsw.Error as error:
        raise store_error(source, error) from error


def copy_idle(source: str, target: str, progress: CopyProgress) -> None:
    """Copy a file that is not in use, without creating files next to it."""
    wal = Path(f"{source}-wal")
    if wal.exists() and wal.stat().st_size:
        raise foreign_error(
            source, f"is incomplete without {wal.name}", "copy it with `accord backup` instead"
        )
    try:
        _copy(_open_idle(source), source, target, progress)
    except apsw.NotADBError as error:
        raise foreign_error(source, NOT_A_LOG, OTHER_FILE_HINT) from error
    except apsw.CorruptError as error:
        raise damaged_error(source, error, OTHER_FILE_HINT) from error
    except apsw.FullError as error:
        raise store_error(target, error) from error
    except apsw.Error as error:
        raise store_error(source, error) from error


def add_extras(path: str, extras: BackupExtras) -> None:
    """Add these to the copy."""
    with translate_errors(path), closing(_open_copy(path)) as copy, copy:
        copy.execute(_DROP_EXTRAS + _CREATE_EXTRAS)
        copy.execute("INSERT INTO backup VALUES (?)", (extras.made_at,))
        copy.executemany("INSERT INTO keyring VALUES (?, ?)", extras.files.items())


def take_extras(path: str) -> BackupExtras:
    """Remove the extras from the copy, leaving no trace in the file, and return them."""
    with translate_errors(path), closing(_open_copy(path)) as copy:
        copy.pragma("secure_delete", 1)
        try:
            found = _read_extras(copy)
        except (apsw.SQLError, msgspec.ValidationError) as error:
            raise ForeignStoreError(FOREIGN_EXTRAS) from error
        with copy:
            copy.execute(_DROP_EXTRAS)
    return found


def finish_copy(path: str) -> None:
    """Turn the copy into a single durable file without a write-ahead log."""
    with translate_errors(path), closing(_open_copy(path)) as copy:
        copy.pragma("journal_mode", "delete")


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """SQLite's errors about the copy as StoreError."""
    try:
        yield
    except apsw.Error as error:
        raise store_error(path, error) from error


def _open_live(path: str) -> apsw.Connection:
    log = connect(path)
    log.pragma("query_only", 1)
    return log


def _open_idle(path: str) -> apsw.Connection:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _open_copy(path: str) -> apsw.Connection:
    return apsw.Connection(path, flags=_FLAGS)


def _copy(log: apsw.Connection, source: str, target: str, progress: CopyProgress) -> None:
    with closing(log), closing(_open_copy(target)) as copy:
        # Held to the end: otherwise a commit between two steps restarts the copy.
        log.execute("BEGIN")
        _ensure_ours(log, source)
        with copy.backup("main", log, "main") as pages:
            while not pages.done:
                pages.step(STEP_PAGES)
                progress(pages.page_count - pages.remaining, pages.page_count)
        copy.pragma("journal_mode", "delete")


def _ensure_ours(log: apsw.Connection, path: str) -> None:
    if int(log.pragma("application_id")) != APPLICATION_ID:
        raise foreign_error(path, NOT_A_LOG, OTHER_FILE_HINT)
    ensure_ours(path, log)


def _read_extras(copy: apsw.Connection) -> BackupExtras:
    if not copy.table_exists("main", "backup"):
        return BackupExtras()
    at = copy.execute("SELECT made_at FROM backup LIMIT 1").get
    files = dict(copy.execute("SELECT name, content FROM keyring"))
    return msgspec.convert({"made_at": at, "files": files}, BackupExtras, builtin_types=(bytes,))
