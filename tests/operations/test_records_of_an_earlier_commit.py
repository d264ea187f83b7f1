"""Compatibility: records written by commit 3700c05 decode, encode and fold as they did then.

These tests import Accord's modules, so renamings change their imports. The same promise is tested
from outside in `test_log_of_an_earlier_commit.py`, with the same data.
"""

import gzip
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from types import GenericAlias
from typing import Any

import msgspec
import pytest

from accord.core.dialects import stored_records
from accord.core.kernel.context import Context, fold
from accord.engine.streams.snapshots import Snapshots
from accord.server.engine_factory import CONTEXTS
from accord.stores.memory import MemoryLog

DATA = Path(__file__).parents[1] / "data" / "log_3700c05"
CHECKSUM = 32  # bytes in front of a snapshot

EXPECTED: dict[str, Any] = json.loads(gzip.decompress((DATA / "expected.json.gz").read_bytes()))
STREAMS = sorted(EXPECTED["state_sha256"])
Row = tuple[int, bytes, bytes]
# Fields that were added to the state since. What they say of an earlier log is tested with the
# rules that they belong to; everything else must fold as it did then.
ADDED_FIELDS: dict[str, frozenset[str]] = {
    "Room": frozenset(
        {
            "gate_seconds",
            "gate_seconds_by_agent",
            "ended_gates",
            "taken_back",
            "created_with",
            "standing_grants",
            "discussions",
        }
    ),
    "SharedSecret": frozenset({"sharer_left"}),
    "Member": frozenset({"removed_by"}),
    "Gate": frozenset({"notes", "votes", "standing"}),
    "ToolProposal": frozenset({"gate_seconds", "option_of", "computed", "claimed", "gated"}),
    "Merge": frozenset({"needs_approval", "head", "changed"}),
    "People": frozenset(
        {"known", "codes", "devices", "renewals", "enrolled", "id_secret", "policies"}
    ),
    "Token": frozenset({"device"}),
    "Repo": frozenset({"links", "waiting"}),
}


def as_it_was(value: Any) -> Any:
    """The state without the fields that were added since."""
    if isinstance(value, msgspec.Struct):
        kind = type(value)
        skipped = ADDED_FIELDS.get(kind.__name__, frozenset())
        whole = msgspec.to_builtins(value, builtin_types=())
        config = kind.__struct_config__
        tag = {config.tag_field: config.tag} if config.tag_field else {}
        names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        return tag | {
            encoded: as_it_was(getattr(value, name))
            for name, encoded in names
            if name not in skipped and encoded in whole
        }
    if isinstance(value, Mapping):
        return {key: as_it_was(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [as_it_was(item) for item in value]
    return sorted(value) if isinstance(value, frozenset) else value


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    file = tmp_path_factory.mktemp("log") / "accord.db"
    file.write_bytes(gzip.decompress((DATA / "accord.db.gz").read_bytes()))
    with closing(sqlite3.connect(file)) as opened:
        yield opened


def rows_of(database: sqlite3.Connection, stream: str) -> list[Row]:
    """Version, hash and stored bytes of each record."""
    sql = "SELECT version, hash, body FROM records JOIN streams ON key = stream WHERE name = ?"
    return list(database.execute(f"{sql} ORDER BY version", (stream,)))


def context_of(stream: str) -> Context[Any]:
    return next(each for each in CONTEXTS if each.name == stream.partition("/")[0])


def states(database: sqlite3.Connection, stream: str) -> Iterator[tuple[int, Any]]:
    """The state after each record, from the beginning or from the retention cut."""
    context = context_of(stream)
    state = context.initial_state(stream)
    cuts = database.execute("SELECT state FROM cuts WHERE stream = ?", (stream,)).fetchall()
    for (stored,) in cuts:
        form = GenericAlias(tuple, (context.state_type, int, int))
        state, _, _ = msgspec.msgpack.decode(stored, type=form)
    for version, _, body in rows_of(database, stream):
        record = stored_records.decode_record(stream, version, body).record
        state = fold(context, state, (record,))
        yield version, state


@pytest.mark.parametrize("stream", STREAMS)
def test_record_decodes_to_its_event_and_encodes_to_the_same_bytes(
    database: sqlite3.Connection, stream: str
) -> None:
    for version, _, body in rows_of(database, stream):
        record = stored_records.decode_record(stream, version, body).record
        assert record.event.name == json.loads(body)["kind"]
        assert stored_records.encode_record(record).body == body


@pytest.mark.parametrize("stream", STREAMS)
def test_records_fold_to_the_same_state(database: sqlite3.Connection, stream: str) -> None:
    *_, (_, state) = states(database, stream)
    digest = sha256(msgspec.msgpack.encode(as_it_was(state))).hexdigest()
    assert digest == EXPECTED["state_sha256"][stream]


@pytest.mark.parametrize("stream", sorted(set(EXPECTED["snapshots"]) & set(STREAMS)))
def test_stored_snapshot_equals_the_folded_state(database: sqlite3.Connection, stream: str) -> None:
    sql = "SELECT version, blob FROM snapshots WHERE stream = ?"
    ((version, stored),) = database.execute(sql, (stream,)).fetchall()
    assert stored[:CHECKSUM] == sha256(stored[CHECKSUM:]).digest()
    form = GenericAlias(tuple, (context_of(stream).state_type, int, bytes, int))
    state, _, sealed, _ = msgspec.msgpack.decode(stored[CHECKSUM:], type=form)
    assert as_it_was(state) == as_it_was(dict(states(database, stream))[version])
    assert sealed == next(seal for at, seal, _ in rows_of(database, stream) if at == version)


def test_stored_snapshots_of_sessions_have_another_shape_so_they_are_ignored(
    database: sqlite3.Connection,
) -> None:
    sql = "SELECT DISTINCT shape FROM snapshots WHERE stream LIKE 'room/%'"
    shapes = {shape for (shape,) in database.execute(sql)}
    assert shapes
    assert Snapshots(MemoryLog()).shape(context_of("room/any")) not in shapes
