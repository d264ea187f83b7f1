"""The log in a PostgreSQL database: for several servers on one log."""

from accord.stores.postgres.log import PostgresLog

__all__ = ["PostgresLog"]
