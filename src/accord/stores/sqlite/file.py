"""Opening the file: ours is migrated, an empty one is made, any other is left as it is."""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex

import apsw

from accord.engine.ports import StoreError
from accord.engine.proven import DO
from accord.files import sync
from accord.stores.sqlite.faults import NONSENSE, READ_ONLY, damaged, foreign, later, store_error
from accord.stores.sqlite.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    Migration,
    altered,
    migrate,
    newest,
    version_of,
)
from accord.stores.sqlite.swap import finish

BUSY_MS = 5_000
_HEADER = 100
_MAGIC = b"SQLite format 3\x00"
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, apsw.FormatError, *NONSENSE)
# One look at the end of each tree: the pages that a torn or overwritten file shows first.
_LOOKS = (
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM streams ORDER BY key DESC LIMIT 1",
    "SELECT name FROM streams ORDER BY name DESC LIMIT 1",
    "SELECT * FROM records ORDER BY pos DESC LIMIT 1",
    "SELECT version FROM records ORDER BY stream DESC, version DESC LIMIT 1",
    "SELECT id FROM records ORDER BY id DESC, stream DESC LIMIT 1",
    "SELECT * FROM cursors LIMIT 1",
    "SELECT * FROM snapshots LIMIT 1",
    "SELECT * FROM heads LIMIT 1",
)


def connect(path: str) -> apsw.Connection:
    """A connection that waits its turn for a bounded time and never checkpoints by itself."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_MS)
    connection.wal_autocheckpoint(0)
    return connection


def prepare(path: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Make the file ours if it is missing or empty, migrate it if it is ours; else leave it."""
    try:
        finish(Path(path))
        _create(Path(path).absolute(), migrations)
        ours = _is_ours(path, newest(migrations))
        with closing(connect(path)) as connection:
            if connection.readonly("main"):
                raise StoreError(f"{path} {READ_ONLY}", path)
            if ours:
                _check(path, connection, migrations)
            _bring_up(path, connection, migrations)
    except (OSError, apsw.Error) as error:
        raise store_error(path, error) from error


def _create(path: Path, migrations: Sequence[Migration]) -> None:
    """The file appears with all its tables in it, or not at all, even if the power goes."""
    if path.exists():
        return
    _make_folder(path.parent)
    part = path.with_name(f".{path.name}.{token_hex(8)}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(connect(str(part))) as connection:
            _bring_up(str(part), connection, migrations)
        with suppress(FileExistsError):  # another process was faster, and its file is as good
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync(folder.parent)


def _is_ours(path: str, newest: int) -> bool:
    """Whether there is something of ours in it; False when it is blank, raises when foreign."""
    header = _header(path)
    if not header:
        return False
    if header[:16] != _MAGIC:
        raise foreign(path, "is not a log of Accord")
    application, version = _number(header, 68), _number(header, 60)
    if application == APPLICATION_ID and version > newest:
        raise later(path, version, newest)
    if application != APPLICATION_ID and (application or _holds_tables(path)):
        raise foreign(path, "belongs to another program")
    return application == APPLICATION_ID


def ensure_ours(
    path: str, connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """The tables are ours, of a version that we know, and nothing in the file acts by itself."""
    with connection:  # as of one moment: another process may be bringing it up
        version, known = version_of(connection), newest(migrations)
        if version > known:
            raise later(path, version, known)
        if what := altered(connection, migrations):
            raise foreign(path, f"is damaged or was changed ({what})", DO)


def _number(header: bytes, place: int) -> int:
    return int.from_bytes(header[place : place + 4], "big")


def _header(path: str) -> bytes:
    # Through SQLite's own file layer: closing a plain file of our own would drop the locks
    # that another connection of this process holds on it.
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    file = apsw.VFSFile("", str(Path(path).absolute()), flags)
    try:
        return file.xRead(min(_HEADER, file.xFileSize()), 0)
    finally:
        file.xClose()


def _holds_tables(path: str) -> bool:
    # Immutable: no lock and no file beside it, since it may be somebody else's.
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(uri, flags=flags)) as connection:
        try:
            return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get)
        except apsw.Error as error:
            raise damaged(path, error) from error


def _check(path: str, connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    waiting = Path(f"{path}-wal")
    # What waits in the log beside a file that we refuse stays there when we close it.
    keep = waiting.exists() and waiting.stat().st_size > 0
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keep))
    try:
        _look(path, connection, migrations)
    except _DAMAGE as error:
        raise damaged(path, error) from error
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def _look(path: str, connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    version = version_of(connection)
    if not version and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return  # whoever began to make it was stopped, and SQLite has taken that back
    ensure_ours(path, connection, migrations)
    for question in _LOOKS:
        connection.execute(question).fetchall()


def _bring_up(path: str, connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    # The tables come before the write-ahead log, so that the header in the file itself says
    # whose it is, and a later step is copied there for the same reason.
    if migrate(connection, migrations):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    if connection.pragma("journal_mode", "wal") != "wal":
        raise StoreError(f"{path} lies on a disk that cannot hold a write-ahead log")
