"""Opening the file: ours is migrated, an empty one is made, any other is left as it is."""

import os
from collections.abc import Sequence
from pathlib import Path

import apsw

from accord.engine.ports import StoreError
from accord.stores.sqlite.faults import foreign, store_error
from accord.stores.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration, migrate, newest

BUSY_MS = 5_000
_HEADER = 100
_MAGIC = b"SQLite format 3\x00"
_PROBES = (
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM streams ORDER BY key DESC LIMIT 1",
    "SELECT * FROM streams ORDER BY name LIMIT 1",
    "SELECT * FROM records ORDER BY pos DESC LIMIT 1",
    "SELECT * FROM records ORDER BY stream DESC, version DESC LIMIT 1",
    "SELECT * FROM records ORDER BY stream DESC, id DESC LIMIT 1",
    "SELECT * FROM cursors LIMIT 1",
    "SELECT * FROM snapshots LIMIT 1",
    "SELECT * FROM heads LIMIT 1",
)


def connect(path: str) -> apsw.Connection:
    """A connection that waits its turn, for a bounded time, and never checkpoints by itself."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_MS)
    connection.wal_autocheckpoint(0)
    return connection


def prepare(path: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make the file ours if it is missing or empty, migrate it if it is; else leave it alone."""
    try:
        _create(Path(path))
        if not _is_blank(path):
            _check(path, newest(migrations))
        _bring_up(path, migrations)
    except (OSError, apsw.Error) as error:
        raise store_error(path, error) from error


def _create(path: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def _bring_up(path: str, migrations: Sequence[Migration]) -> None:
    connection = connect(path)
    try:
        # The first step is made before WAL, so that the header in the file itself says whose it is.
        migrate(connection, migrations)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise StoreError(f"{path} lies on a disk that cannot hold a write-ahead log")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    finally:
        connection.close()


def _is_blank(path: str) -> bool:
    if Path(path).stat().st_size == 0:
        return True
    header = _header(path)
    if header[:16] != _MAGIC:
        raise foreign(path, "is not a log of Accord")
    application = int.from_bytes(header[68:72], "big")
    if application not in {0, APPLICATION_ID}:
        raise foreign(path, "belongs to another program")
    if application == APPLICATION_ID:
        return False
    if _holds_tables(path):
        raise foreign(path, "belongs to another program")
    return True


def _header(path: str) -> bytes:
    # Through SQLite's own file layer: closing a plain file of our own would drop the locks
    # that another connection of this process holds on it.
    file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        return file.xRead(min(_HEADER, file.xFileSize()), 0)
    finally:
        file.xClose()


def _holds_tables(path: str) -> bool:
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags)
    try:
        return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get)
    except apsw.Error as error:
        raise foreign(path, "is damaged") from error
    finally:
        connection.close()


def _check(path: str, newest: int) -> None:
    waiting = Path(f"{path}-wal")
    connection = connect(path)
    # What waits in the WAL of a file we refuse stays where it is.
    keep = waiting.exists() and waiting.stat().st_size > 0
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keep))
    try:
        _probe(path, connection, newest)
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:
        raise foreign(path, f"is damaged ({error})") from error
    finally:
        connection.close()


def _probe(path: str, connection: apsw.Connection, newest: int) -> None:
    version = int(connection.pragma("user_version"))
    if version > newest:
        raise foreign(path, f"was written by a later Accord (version {version}, not {newest})")
    for question in _PROBES:
        connection.execute(question).fetchall()
