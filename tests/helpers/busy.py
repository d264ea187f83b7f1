"""Somebody else is in the middle of writing a store."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

PATIENCE_MS = 30_000


@contextmanager
def written_by_another(path: Path) -> Iterator[None]:
    """Another process writes and does not finish.

    It waits for its turn: whoever owns the store may be writing at just this moment.
    """
    with closing(apsw.Connection(str(path))) as other:
        other.set_busy_timeout(PATIENCE_MS)
        other.execute("BEGIN IMMEDIATE; INSERT INTO cursors VALUES ('theirs', 1)")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
