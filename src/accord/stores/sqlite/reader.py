"""Questions to the file, on a connection of their own that never waits for the writer."""

from collections.abc import Sequence

from accord.core.kernel.chain import Head
from accord.engine.ports import Row, Snapshot
from accord.stores.sqlite.file import connect

Placed = tuple[int, Row]

_ROWS = "SELECT version, id, body, hash FROM records WHERE stream ="
_KEY = "(SELECT key FROM streams WHERE name = ?)"


class Reader:
    """Synchronous; one thread at a time."""

    def __init__(self, path: str) -> None:
        self._db = connect(path)
        self._db.pragma("query_only", True)  # noqa: FBT003 - as the pragma wants it

    def read(self, stream: str, after: int, limit: int | None) -> list[Row]:
        sql = f"{_ROWS} {_KEY} AND version > ? ORDER BY version LIMIT ?"
        rows = self._db.execute(sql, (stream, after, -1 if limit is None else limit))
        return [Row(stream, *row) for row in rows]

    def find(self, stream: str, ids: Sequence[str]) -> list[Row]:
        sql = f"{_ROWS} {_KEY} AND id = ?"
        found = [self._db.execute(sql, (stream, id_)).get for id_ in dict.fromkeys(ids)]
        return sorted((Row(stream, *row) for row in found if row), key=lambda row: row.version)

    def streams(self, prefix: str) -> dict[str, int]:
        sql = """
            SELECT name, (SELECT max(version) FROM records WHERE stream = key) FROM streams
            WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name
        """
        return dict(self._db.execute(sql, (prefix,)))

    def position(self) -> int:
        return self._db.execute("SELECT max(pos) FROM records").get or 0

    def after(self, position: int, limit: int) -> list[Placed]:
        sql = """
            SELECT pos, name, version, id, body, hash FROM records
            CROSS JOIN streams ON key = stream WHERE pos > ? ORDER BY pos LIMIT ?
        """
        return [(pos, Row(*row)) for pos, *row in self._db.execute(sql, (position, limit))]

    def cursor(self, name: str) -> int:
        return self._db.execute("SELECT position FROM cursors WHERE name = ?", (name,)).get or 0

    def snapshot(self, stream: str) -> Snapshot | None:
        sql = "SELECT version, shape, blob FROM snapshots WHERE stream = ?"
        row = self._db.execute(sql, (stream,)).get
        return Snapshot(*row) if row else None

    def heads(self, stream: str) -> list[Head]:
        sql = """
            SELECT stream, version, hash, at, key, signature FROM heads
            WHERE stream = ? ORDER BY place
        """
        return [Head(*row) for row in self._db.execute(sql, (stream,))]

    def changes(self) -> int:
        """Differs from the last answer when another connection committed in between."""
        return int(self._db.pragma("data_version"))

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; empty when nothing is."""
        found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def close(self) -> None:
        self._db.close()
