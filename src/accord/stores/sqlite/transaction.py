"""A transaction that writes: all of it or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """Takes the turn to write at once, so that nothing it reads can change."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # A full disk or a failing one has rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
