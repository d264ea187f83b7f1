"""Rows that were damaged or come from elsewhere: they are read as records or known as unreadable.

Whatever can be read can be folded, kept as a snapshot and sealed again.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.core import people, room
from accord.core.dialects import canonical
from accord.core.kernel.log import Context, Record, Unknown, Unread, fold
from accord.core.provenance import commits
from accord.core.room.grants import ToolCleared
from accord.core.work import mirror
from accord.engine.cell import Cell
from accord.engine.ports import Snapshot
from accord.engine.snapshots import Snapshots, checksum
from accord.stores.memory import MemoryLog
from accord.verify import UNREADABLE
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial
from tests.helpers.engine import Stage
from tests.helpers.forks import adds, executes_merge, merges
from tests.helpers.forks import forks as branches
from tests.helpers.room import ALICE, BOB, CLAUDE, STREAM, approves_tool, prompts, proposes

CONTEXTS: dict[str, Context[Any]] = {
    "room": room.CONTEXT,
    "people": people.CONTEXT,
    "repo": commits.CONTEXT,
    "work": mirror.CONTEXT,
}
MOST_ROWS = 32


def seeds() -> Iterator[bytes]:
    """A log with a bit of everything, whole and row by row; and a snapshot."""
    rows, blob = asyncio.run(some_log())
    yield b"\n".join(rows)
    yield from rows
    yield b"\x00" + blob


async def some_log() -> tuple[list[bytes], bytes]:
    """The rows and the state of a room in which something happened."""
    stage = Stage()
    await stage.open(BOB, CLAUDE)
    await stage.say(ALICE, prompts(), "p")
    await stage.say(CLAUDE, proposes(), "t", "p")
    await stage.say(ALICE, approves_tool(ALICE, "t"))
    await stage.say(BOB, adds("k", "text", to=["claude"]))
    made = await stage.say(BOB, branches("Aside", CLAUDE, ALICE, point="p"))
    fork = made[0].record.fork or ""
    await stage.say(BOB, adds("k2", "text"), fork=fork)
    proposed = await stage.say(BOB, merges(fork))
    await stage.say(BOB, executes_merge(proposed[0].record.id))
    cell = stage.engine.cells[STREAM]
    blob = msgspec.msgpack.encode((cell.base.state, cell.base.seq, cell.base.hash, cell.base.at))
    rows = [row.body for row in await stage.log.read(STREAM)]
    await stage.close()
    return rows, blob


def trial(place: Path) -> Trial:
    """Rows, or behind a zero a snapshot."""
    log = MemoryLog()
    snapshots = Snapshots(log)

    def read(data: bytes) -> None:
        if data.startswith(b"\x00"):
            asyncio.run(recall(snapshots, log, data[1:]))
        else:
            read_rows(data.split(b"\n")[:MOST_ROWS])

    return read


def read_rows(rows: list[bytes]) -> None:
    """One log out of these rows."""
    states = {name: context.start(f"{name}/r") for name, context in CONTEXTS.items()}
    for version, row in enumerate(rows, 1):
        try:
            sealed = canonical.unseal(STREAM, version, row)
        except UNREADABLE as error:
            reached(type(error).__name__, str(error)[-40:])
            continue
        record = sealed.record
        reached(type(record.event))
        for name, context in CONTEXTS.items():
            if type(record.event) in context.evolve or isinstance(record.event, Unknown):
                states[name] = fold(context, states[name], (record,))
        if not isinstance(record.event, Unknown) and not isinstance(record.said, Unread):
            again = canonical.seal(record)
            assert canonical.unseal(STREAM, version, again.body).record == record


async def recall(snapshots: Snapshots, log: MemoryLog, blob: bytes) -> None:
    """A snapshot with a good checksum, whatever is in it."""
    cell = Cell(STREAM, room.CONTEXT, 1)
    kept = Snapshot(1, snapshots.shape(room.CONTEXT), checksum(blob) + blob)
    await log.keep(STREAM, kept)
    place = await snapshots.latest(cell)
    assert isinstance(place.state, room.CONTEXT.state)


def plant(patch: pytest.MonkeyPatch) -> None:
    """A fold that believes the log."""

    def believing(state: Any, event: ToolCleared, record: Record) -> Any:
        assert event.said.tool_proposal in state.tools
        return state

    patch.setitem(room.EVOLVE, ToolCleared, believing)  # type: ignore[misc]
