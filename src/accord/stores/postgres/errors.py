"""PostgreSQL's errors as messages that say what to do; never with a password."""

from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg

from accord.engine.ports import (
    DamagedError,
    DiskFullError,
    ForeignStoreError,
    NewerStoreError,
    StoreError,
    UnknownStoreError,
)

pg = asyncpg.exceptions

# The connection is lost or was never made: a commit that was under way may have happened.
CONNECTION_ERRORS: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    pg.PostgresConnectionError,
    pg.ConnectionDoesNotExistError,
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.CannotConnectNowError,
    pg.DatabaseDroppedError,
    pg.IdleInTransactionSessionTimeoutError,
    pg.QueryCanceledError,
)
STORE_ERRORS: tuple[type[BaseException], ...] = (*CONNECTION_ERRORS, asyncpg.PostgresError)

_HINTS: tuple[tuple[type[BaseException], str], ...] = (
    (
        pg.InvalidPasswordError,
        "{name} refused the password; set it in the URL, PGPASSWORD or a password file",
    ),
    (
        pg.InvalidAuthorizationSpecificationError,
        "{name} refused this user; check the user and pg_hba.conf",
    ),
    (pg.InvalidCatalogNameError, "{name} does not exist; create it with `createdb`"),
    (pg.ReadOnlySQLTransactionError, "{name} is read-only; name its primary server"),
    (
        pg.InsufficientPrivilegeError,
        "{name} does not let this user work in the schema accord; make the user its owner",
    ),
    (pg.TooManyConnectionsError, "{name} has no free connection; raise max_connections"),
    (pg.CannotConnectNowError, "{name} is starting or stopping; try again in a moment"),
)
_UNREACHABLE = "{name} cannot be reached; check that PostgreSQL runs there and accepts connections"


class DatabaseName(NamedTuple):
    """What users call the database, for messages: the URL without user and password."""

    text: str

    @classmethod
    def from_url(cls, url: str) -> "DatabaseName":
        """Raises UnknownStoreError for a URL that cannot be read."""
        try:
            parts = urlsplit(url)
            host = parts.netloc.rpartition("@")[2]
        except ValueError as error:
            raise UnknownStoreError(f"The store URL cannot be read ({error})") from None
        return cls(f"postgresql://{host}{parts.path}")

    def __str__(self) -> str:
        return self.text


def store_error(name: DatabaseName, error: BaseException) -> StoreError:
    """The error with a hint, and PostgreSQL's own first line at the end."""
    detail = f" ({first_line(error)})" if str(error) else ""
    if isinstance(error, pg.DiskFullError):
        hint = f"No disk space left for {name}; free some space and try again"
        return DiskFullError(f"{hint}{detail}", str(name))
    if isinstance(error, pg.DataCorruptedError | pg.IndexCorruptedError):
        hint = f"{name} is damaged; restore a backup of the database"
        return DamagedError(f"{hint}{detail}", str(name))
    other = _UNREACHABLE if isinstance(error, CONNECTION_ERRORS) else "{name} failed"
    hint = next((text for kind, text in _HINTS if isinstance(error, kind)), other)
    return StoreError(f"{hint.format(name=name)}{detail}", str(name))


def first_line(error: BaseException) -> str:
    """Without the detail lines, which may quote values."""
    return str(error).strip().splitlines()[0]


def foreign_error(name: DatabaseName) -> ForeignStoreError:
    """The schema is not ours."""
    problem = "has a schema `accord` with other tables than Accord's and was not changed"
    return ForeignStoreError(f"{name} {problem}; name another database", str(name))


def newer_error(name: DatabaseName, version: int, newest: int) -> NewerStoreError:
    """A later version wrote the tables."""
    why = f"was written by a later Accord (format {version}, this one reads up to {newest})"
    return NewerStoreError(
        f"{name} {why} and was not changed; use that version or a newer one", str(name)
    )
