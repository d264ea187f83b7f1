"""Where each stream stands, as far as this process knows."""

from typing import NamedTuple

import apsw

from accord.engine.ports import Conflict

BOUND = 4096


class Place(NamedTuple):
    """A stream's key in the tables, 0 while it has none, and its newest version."""

    key: int
    version: int


def conflict(stream: str, version: int, expected: int) -> Conflict:
    """Somebody else was faster."""
    return Conflict(f"{stream} is at version {version}, not {expected}")


class Places:
    """A cache of the table; never ahead of it, behind it when another process appends."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._known: dict[str, Place] = {}

    def known(self, stream: str) -> Place | None:
        """What we remember; only a look at the table makes it certain."""
        return self._known.get(stream)

    def remember(self, places: dict[str, Place]) -> None:
        """These are committed."""
        if len(self._known) > BOUND:
            self._known.clear()
        self._known |= places

    def look(self, stream: str) -> Place:
        """What the table says; ask inside the transaction that relies on it."""
        key = self._db.execute("SELECT key FROM streams WHERE name = ?", (stream,)).get
        if key is None:
            return Place(0, 0)
        newest = "SELECT max(version) FROM records WHERE stream = ?"
        return Place(key, self._db.execute(newest, (key,)).get or 0)

    def name(self, stream: str) -> int:
        """A key for a stream that has none."""
        sql = "INSERT INTO streams (name) VALUES (?) RETURNING key"
        return int(self._db.execute(sql, (stream,)).get)
