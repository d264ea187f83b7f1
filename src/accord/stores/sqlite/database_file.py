"""Opens the database file: creates or migrates ours, and never changes any other."""

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from secrets import token_hex

import apsw

from accord.atomic_files import sync_directory
from accord.engine.ports import StoreError
from accord.engine.streams.verified_reads import REPAIR_HINT
from accord.stores.sqlite.errors import (
    MALFORMED_ROW_ERRORS,
    READ_ONLY_HINT,
    damaged_error,
    foreign_error,
    newer_error,
    store_error,
)
from accord.stores.sqlite.file_swap import finish_swap
from accord.stores.sqlite.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    Migration,
    describe_alteration,
    migrate,
    newest_version,
    version_of,
)

BUSY_TIMEOUT_MS = 5_000
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
_DAMAGE_ERRORS = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.SQLError,
    apsw.FormatError,
    *MALFORMED_ROW_ERRORS,
)
# Reads the end of each tree: the pages that a torn or overwritten file breaks first.
_READ_CHECKS = (
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
    """A connection with a busy timeout that never checkpoints by itself."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.wal_autocheckpoint(0)
    return connection


def prepare_file(path: str, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Create the file if it is missing or empty, migrate it if it is ours; otherwise raise."""
    try:
        finish_swap(Path(path))
        _create(Path(path).absolute(), migrations)
        ours = _is_ours(path, newest_version(migrations))
        with closing(connect(path)) as connection:
            if connection.readonly("main"):
                raise StoreError(f"{path} {READ_ONLY_HINT}", path)
            if ours:
                _check_ours(path, connection, migrations)
            _migrate_to_wal(path, connection, migrations)
    except (OSError, apsw.Error) as error:
        raise store_error(path, error) from error


def _create(path: Path, migrations: Sequence[Migration]) -> None:
    """Create the file with all its tables, or not at all, even on a power cut."""
    if path.exists():
        return
    _make_folder(path.parent)
    part = path.with_name(f".{path.name}.{token_hex(8)}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(connect(str(part))) as connection:
            _migrate_to_wal(str(part), connection, migrations)
        with suppress(FileExistsError):  # another process created it first
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_directory(path.parent)


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(folder.parent)


def _is_ours(path: str, newest: int) -> bool:
    """True if the file is ours, False if it is empty; raises if it is foreign."""
    header = _header(path)
    if not header:
        return False
    if header[:16] != _MAGIC:
        raise foreign_error(path, "is not a log of Accord")
    application, version = _header_number(header, 68), _header_number(header, 60)
    if application == APPLICATION_ID and version > newest:
        raise newer_error(path, version, newest)
    if application != APPLICATION_ID and (application or _holds_tables(path)):
        raise foreign_error(path, "belongs to another program")
    return application == APPLICATION_ID


def ensure_ours(
    path: str, connection: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Check that the tables are ours, of a known version, without triggers or views."""
    with connection:  # one transaction: another process may be migrating it
        version, known = version_of(connection), newest_version(migrations)
        if version > known:
            raise newer_error(path, version, known)
        if what := describe_alteration(connection, migrations):
            raise foreign_error(path, f"is damaged or was changed ({what})", REPAIR_HINT)


def _header_number(header: bytes, place: int) -> int:
    return int.from_bytes(header[place : place + 4], "big")


def _header(path: str) -> bytes:
    # Through SQLite's own file layer: closing a plain file descriptor would drop the locks that
    # another connection of this process holds on the file.
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    file = apsw.VFSFile("", str(Path(path).absolute()), flags)
    try:
        return file.xRead(min(_HEADER_BYTES, file.xFileSize()), 0)
    finally:
        file.xClose()


def _holds_tables(path: str) -> bool:
    # Immutable: takes no lock and creates no file, since it may belong to another program.
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(uri, flags=flags)) as connection:
        try:
            return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get)
        except apsw.Error as error:
            raise damaged_error(path, error) from error


def _check_ours(path: str, connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    waiting = Path(f"{path}-wal")
    # When we close a file that we refuse, its write-ahead log must stay as it is.
    keep = waiting.exists() and waiting.stat().st_size > 0
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keep))
    try:
        _check_readable(path, connection, migrations)
    except _DAMAGE_ERRORS as error:
        raise damaged_error(path, error) from error
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)


def _check_readable(
    path: str, connection: apsw.Connection, migrations: Sequence[Migration]
) -> None:
    version = version_of(connection)
    if not version and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return  # its creation was interrupted and SQLite rolled it back
    ensure_ours(path, connection, migrations)
    for question in _READ_CHECKS:
        connection.execute(question).fetchall()


def _migrate_to_wal(
    path: str, connection: apsw.Connection, migrations: Sequence[Migration]
) -> None:
    # Tables before the write-ahead log, so that the header in the file itself identifies it; a
    # later migration is checkpointed for the same reason.
    if migrate(connection, migrations):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    if connection.pragma("journal_mode", "wal") != "wal":
        problem = "is on a file system that SQLite's write-ahead log does not work on"
        raise StoreError(f"{path} {problem}; use a local disk")
