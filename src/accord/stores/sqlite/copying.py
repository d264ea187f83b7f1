"""A copy of a log that others may be writing: all of it as of one commit, in one file."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import apsw
import msgspec

from accord.engine.ports import ForeignStoreError
from accord.stores.sqlite.faults import damaged, foreign, store_error
from accord.stores.sqlite.file import connect, ensure_ours
from accord.stores.sqlite.schema import APPLICATION_ID

# Pages of 4 KiB: short enough that a Ctrl-C and the progress line never wait.
STEP = 1024
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
_EXTRAS = """
    DROP TABLE IF EXISTS backup;
    DROP TABLE IF EXISTS keyring;
"""
_PACK = """
    CREATE TABLE backup (made_at INTEGER NOT NULL);
    CREATE TABLE keyring (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
"""

NO_LOG = "is not a log of Accord"
ANOTHER = "name another file"
NOT_OURS = "What lies beside the log in this backup is not what we put there; nothing was restored"

Progress = Callable[[int, int], None]
LAST_MOMENT = 253_402_300_799_999  # of the year 9999
Moment = Annotated[int, msgspec.Meta(ge=0, le=LAST_MOMENT)]


class Packed(msgspec.Struct, frozen=True):
    """What lies in a copy beside the log; a plain copy of the file has neither."""

    made_at: Moment | None = None
    files: Mapping[str, bytes] = {}


def copy_live(source: str, target: str, progress: Progress) -> None:
    """Copy a store that is in use; neither its writers nor its readers wait."""
    try:
        _copy(_live(source), source, target, progress)
    except apsw.FullError as error:
        raise store_error(target, error) from error
    except apsw.Error as error:
        raise store_error(source, error) from error


def copy_still(source: str, target: str, progress: Progress) -> None:
    """Copy a file that nobody uses, without leaving a trace beside it."""
    wal = Path(f"{source}-wal")
    if wal.exists() and wal.stat().st_size:
        raise foreign(source, f"goes on in {wal.name}", "make one file of the two: accord backup")
    try:
        _copy(_still(source), source, target, progress)
    except apsw.NotADBError as error:
        raise foreign(source, NO_LOG, ANOTHER) from error
    except apsw.CorruptError as error:
        raise damaged(source, error, ANOTHER) from error
    except apsw.FullError as error:
        raise store_error(target, error) from error
    except apsw.Error as error:
        raise store_error(source, error) from error


def pack(path: str, packed: Packed) -> None:
    """Lay this beside the log in the copy."""
    with named(path), closing(_made(path)) as made, made:
        made.execute(_EXTRAS + _PACK)
        made.execute("INSERT INTO backup VALUES (?)", (packed.made_at,))
        made.executemany("INSERT INTO keyring VALUES (?, ?)", packed.files.items())


def unpack(path: str) -> Packed:
    """Take out of the copy what lies beside the log, leaving no trace of it in the file."""
    with named(path), closing(_made(path)) as made:
        made.pragma("secure_delete", 1)
        try:
            found = _packed(made)
        except (apsw.SQLError, msgspec.ValidationError) as error:
            raise ForeignStoreError(NOT_OURS) from error
        with made:
            made.execute(_EXTRAS)
    return found


def close_up(path: str) -> None:
    """Make one plain file of it, durable, whatever was done to it before."""
    with named(path), closing(_made(path)) as made:
        made.pragma("journal_mode", "delete")


@contextmanager
def named(path: str) -> Iterator[None]:
    """What SQLite cannot do with the copy, as a sentence."""
    try:
        yield
    except apsw.Error as error:
        raise store_error(path, error) from error


def _live(path: str) -> apsw.Connection:
    log = connect(path)
    log.pragma("query_only", 1)
    return log


def _still(path: str) -> apsw.Connection:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _made(path: str) -> apsw.Connection:
    return apsw.Connection(path, flags=_FLAGS)


def _copy(log: apsw.Connection, source: str, target: str, progress: Progress) -> None:
    with closing(log), closing(_made(target)) as made:
        # Held to the end: otherwise somebody's commit between two steps lets it begin anew.
        log.execute("BEGIN")
        _ensure_ours(log, source)
        with made.backup("main", log, "main") as pages:
            while not pages.done:
                pages.step(STEP)
                progress(pages.page_count - pages.remaining, pages.page_count)
        made.pragma("journal_mode", "delete")


def _ensure_ours(log: apsw.Connection, path: str) -> None:
    if int(log.pragma("application_id")) != APPLICATION_ID:
        raise foreign(path, NO_LOG, ANOTHER)
    ensure_ours(path, log)


def _packed(made: apsw.Connection) -> Packed:
    if not made.table_exists("main", "backup"):
        return Packed()
    at = made.execute("SELECT made_at FROM backup LIMIT 1").get
    files = dict(made.execute("SELECT name, content FROM keyring"))
    return msgspec.convert({"made_at": at, "files": files}, Packed, builtin_types=(bytes,))
