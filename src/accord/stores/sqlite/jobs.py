"""What waits for the next commit, and what became of it."""

import asyncio
from collections.abc import Sequence

import msgspec

from accord.engine.ports import Row


class Append(msgspec.Struct, gc=False):
    """Rows for one stream."""

    stream: str
    expected: int
    rows: Sequence[Row]
    done: asyncio.Future[None]


class Chore(msgspec.Struct, gc=False):
    """A statement beside the rows."""

    sql: str
    values: tuple[str | int | bytes, ...]
    done: asyncio.Future[None]


Job = Append | Chore
Outcome = Exception | None


class Commit(msgspec.Struct, gc=False):
    """What became of each job of a batch, and the rows it left at the end of the log."""

    outcomes: list[Outcome]
    rows: list[Row]
    last: int
