"""A write lock held by another connection to the store."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

BUSY_TIMEOUT_MS = 30_000


@contextmanager
def hold_write_lock(path: Path) -> Iterator[None]:
    """Hold a write transaction open on the store.

    It waits for its turn, because the owner of the store may be writing.
    """
    with closing(apsw.Connection(str(path))) as other:
        other.set_busy_timeout(BUSY_TIMEOUT_MS)
        other.execute("BEGIN IMMEDIATE; INSERT INTO cursors VALUES ('theirs', 1)")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
