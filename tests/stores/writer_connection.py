"""The writer's own connection, used where it may be: on the writer's thread.

Two threads that use one connection can wait for each other for ever, one for the connection and
the other for the interpreter, and no time limit ends that.
"""

from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import apsw

from accord.stores.sqlite import SqliteLog
from accord.stores.sqlite.writer import BatchCommitter, CommitResult, Job

T = TypeVar("T")


async def with_writing(log: SqliteLog, use: Callable[[apsw.Connection], T]) -> T:
    """What that makes of it, just before a commit."""
    writer, made = log._writer, list[T]()
    usual = writer._commit

    def once(committer: BatchCommitter, batch: list[Job]) -> CommitResult:
        made.append(use(writer._db))
        return usual(committer, batch)

    with patch.object(writer, "_commit", once):
        await log.advance("nobody", 1)
    return made[0]
