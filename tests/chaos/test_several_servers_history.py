"""Faults strike three servers and their database; what clients were told must agree with the log.

Each fault strikes three times, and fifty times with `ACCORD_LONG=1`; `ACCORD_ROUNDS` sets another
number. The random choices come from `tests.helpers.seeds`.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

from accord.core.kernel.records import Record
from accord.core.room.approval.tool_proposals import ToolStarted
from accord.core.room.approval.votes import GatePassed
from accord.engine.ports import Row
from accord.stores.postgres import PostgresLog
from tests.helpers.history.checker import (
    NUMBERED_TEXT,
    Heard,
    History,
    chain_violations,
    streams_of,
    violations,
)
from tests.helpers.history.faults import FAULTS, run_cluster
from tests.helpers.history.workload import Workload
from tests.helpers.seeds import LONG, run_seed
from tests.helpers.servers.postgres_server import SHARED_POSTGRES, PostgresServer
from tests.spec import proves

ROUNDS = int(os.environ.get("ACCORD_ROUNDS", "50" if LONG else "3"))
SEED = run_seed()
MESSAGES_PER_ROUND = 20


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A server of its own, which is killed."""
    with TemporaryDirectory(prefix="accord-postgres-") as directory:
        Path(directory).chmod(0o755)
        server = PostgresServer(Path(directory)).start()
        yield server
        server.stop()


async def rows_of(database: str) -> list[Row]:
    """The whole log."""
    log = await PostgresLog.open(database)
    try:
        end, rows = await log.position(), list[Row]()
        async with aclosing(log.tail(0)) as batches:
            async for batch in batches:
                rows += [row for _, row in batch]
                if batch[-1][0] >= end:
                    break
        return rows
    finally:
        await log.close()


@proves("PVP-3.2-1", "PVP-3.2-2", "PVP-19.5-1", "PVP-19.5-2", "UNI-9", "UNI-11", "UNI-12")
@pytest.mark.timeout(120 + 30 * ROUNDS * len(FAULTS))
async def test_history_agrees_with_the_log_under_every_fault(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    print(f"ACCORD_SEED={SEED} ACCORD_ROUNDS={ROUNDS}")
    rng = random.Random(SEED)
    rounds = [fault for fault in FAULTS for _ in range(ROUNDS)]
    rng.shuffle(rounds)
    async with run_cluster(tmp_path, postgres) as cluster, Workload(cluster.group, rng) as work:
        for fault in rounds:
            await work.progress(rng.randrange(MESSAGES_PER_ROUND))
            await fault(cluster, rng)
            work.reconnect_one()
            await work.progress(MESSAGES_PER_ROUND, executions=1)
            history = work.history()
            rows = await rows_of(cluster.database)
            found = [*chain_violations(rows), *violations(history, streams_of(rows))]
            assert found == [], fault.__name__
        await work.finish()
        rows = await rows_of(cluster.database)
        found = violations(work.history(), streams_of(rows), is_complete=True)
        assert found == []
        print(f"{len(rows)} records, {work.done} messages, {work.executed} tools")


async def test_checker_finds_seeded_bugs(tmp_path: Path) -> None:
    """A checker that finds nothing in a broken history proves nothing."""
    rng = random.Random(SEED)
    postgres = SHARED_POSTGRES.server()
    async with run_cluster(tmp_path, postgres, 2) as cluster, Workload(cluster.group, rng) as work:
        await work.progress(10, executions=1)
        await work.finish()
        history, rows = work.history(), await rows_of(cluster.database)
    streams = streams_of(rows)
    room = f"room/{history.acknowledged[0].session}"
    assert violations(history, streams, is_complete=True) == []
    lost = history.acknowledged[-1].id
    reading = history.readings[0]
    numbered = [heard for heard in reading.heard if heard.seq]
    swapped = [*numbered[:-2], numbered[-1], numbered[-2]]
    passed = next(r for r in streams[room] if isinstance(r.event, GatePassed))
    voter = passed.event.approved_by[0]  # type: ignore[attr-defined]  # as selected
    double = replace(passed, event=replace(passed.event, approved_by=(voter, voter)))
    started = next(r for r in streams[room] if isinstance(r.event, ToolStarted))
    row = next(place for place, each in enumerate(rows) if each.stream == room)

    def found(records: Sequence[Record], seen: History = history) -> str:
        return "; ".join(violations(seen, streams | {room: records}, is_complete=True))

    assert "acknowledged and is lost" in found([r for r in streams[room] if r.id != lost])
    assert "counts twice" in found([double if r is passed else r for r in streams[room]])
    assert "used twice" in found([*streams[room], started])
    again = history._replace(readings=[reading._replace(heard=swapped)])
    assert "another order" in found(streams[room], again)
    inside = next(r for r in streams[room] if r.fork and r.said and not r.event.room_wide)
    carol = next(each for each in history.readings if each.reader == "carol")
    peeked = carol._replace(heard=[*carol.heard, Heard(inside.id, inside.seq)])
    assert "of a fork of others" in found(streams[room], history._replace(readings=[peeked]))
    posted = [r for r in streams[room] if NUMBERED_TEXT.fullmatch(getattr(r.said, "content", ""))]
    sender, _ = Counter(r.sender for r in posted).most_common(1)[0]
    first, second, *_ = [r for r in posted if r.sender == sender]
    said = {first.id: second.said, second.id: first.said}
    changed = [replace(r, said=said.get(r.id, r.said)) for r in streams[room]]
    assert "behind a later one" in found(changed)
    missed = history._replace(readings=[reading._replace(heard=numbered[:-1])])
    assert "never heard" in found(streams[room], missed)
    assert list(chain_violations([*rows[:row], *rows[row + 1 :]])) != []
