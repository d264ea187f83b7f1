"""Rows that were damaged or come from elsewhere: they are read as records or known as unreadable.

Whatever can be read can be folded, kept as a snapshot and sealed again.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.core import room
from accord.core.dialects import stored_records
from accord.core.kernel.context import Context, fold
from accord.core.kernel.messages import UnreadableBody
from accord.core.kernel.records import Record, UnknownEvent
from accord.core.people import context as people
from accord.core.provenance import commit_links
from accord.core.room.approval.grants import ToolCleared
from accord.core.work import mirror
from accord.engine.ports import Snapshot
from accord.engine.streams.snapshots import Snapshots, checksum
from accord.engine.streams.stream import Stream
from accord.operations.verify import DECODE_ERRORS
from accord.stores.memory import MemoryLog
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput
from tests.helpers.engine.harness import EngineHarness
from tests.helpers.room.logged_room import context_add, merge_execute, merge_propose
from tests.helpers.room.logged_room import fork_create as branches
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    STREAM,
    prompt_submit,
    tool_approve,
    tool_propose,
)

CONTEXTS: dict[str, Context[Any]] = {
    "room": room.CONTEXT,
    "people": people.CONTEXT,
    "repo": commit_links.CONTEXT,
    "work": mirror.CONTEXT,
}
MOST_ROWS = 32


def seeds() -> Iterator[bytes]:
    """A log with a bit of everything, whole and row by row; and a snapshot."""
    rows, blob = asyncio.run(sample_log())
    yield b"\n".join(rows)
    yield from rows
    yield b"\x00" + blob


async def sample_log() -> tuple[list[bytes], bytes]:
    """The rows and the state of a room in which something happened."""
    stage = EngineHarness()
    stage._name = "sample"  # ids would otherwise depend on the tests that ran before
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, prompt_submit(), "p")
    await stage.send(CLAUDE, tool_propose(), "t", "p")
    await stage.send(ALICE, tool_approve(ALICE, "t"))
    await stage.send(BOB, context_add("k", "text", to=["claude"]))
    made = await stage.send(BOB, branches("Aside", CLAUDE, ALICE, point="p"))
    fork = made[0].record.fork or ""
    await stage.send(BOB, context_add("k2", "text"), fork=fork)
    proposed = await stage.send(BOB, merge_propose(fork))
    await stage.send(BOB, merge_execute(proposed[0].record.id))
    cell = stage.engine.streams[STREAM]
    base = cell.base
    blob = msgspec.msgpack.encode((base.state, base.seq, base.hash, base.at), order="deterministic")
    rows = [row.body for row in await stage.log.read(STREAM)]
    await stage.close()
    return rows, blob


def make_runner(place: Path) -> FuzzInput:
    """Rows, or behind a zero a snapshot."""
    log = MemoryLog()
    snapshots = Snapshots(log)

    def read(data: bytes) -> None:
        if data.startswith(b"\x00"):
            asyncio.run(restore_snapshot(snapshots, log, data[1:]))
        else:
            read_rows(data.split(b"\n")[:MOST_ROWS])

    return read


def read_rows(rows: list[bytes]) -> None:
    """One log out of these rows."""
    states = {name: context.initial_state(f"{name}/r") for name, context in CONTEXTS.items()}
    for version, row in enumerate(rows, 1):
        try:
            sealed = stored_records.decode_record(STREAM, version, row)
        except DECODE_ERRORS as error:
            mark_reached(type(error).__name__, str(error)[-40:])
            continue
        record = sealed.record
        mark_reached(type(record.event))
        for name, context in CONTEXTS.items():
            if type(record.event) in context.evolve or isinstance(record.event, UnknownEvent):
                states[name] = fold(context, states[name], (record,))
        if not isinstance(record.event, UnknownEvent) and not isinstance(
            record.said, UnreadableBody
        ):
            again = stored_records.encode_record(record)
            assert stored_records.decode_record(STREAM, version, again.body).record == record


async def restore_snapshot(snapshots: Snapshots, log: MemoryLog, blob: bytes) -> None:
    """A snapshot with a good checksum, whatever is in it."""
    cell = Stream(STREAM, room.CONTEXT, 1)
    kept = Snapshot(1, snapshots.shape(room.CONTEXT), checksum(blob) + blob)
    await log.save_snapshot(STREAM, kept)
    place = await snapshots.latest_position(cell)
    assert isinstance(place.state, room.CONTEXT.state_type)


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """A fold that believes the log."""

    def believing(state: Any, event: ToolCleared, record: Record) -> Any:
        assert event.said.tool_proposal in state.tools
        return state

    patch.setitem(room.EVOLVE, ToolCleared, believing)  # type: ignore[misc]
