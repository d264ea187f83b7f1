"""The log in one SQLite file: the default store."""

from accord.stores.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
