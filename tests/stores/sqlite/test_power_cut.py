"""Power cuts at random moments: what was acknowledged is there, and what is there is whole.

`ACCORD_LONG=1` tries many more of them, and others each time.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.core.kernel.integrity.hash_chain import SignedHead, genesis_hash, link_hash
from accord.engine.ports import Row, Snapshot, StoreError
from accord.stores.sqlite import SqliteLog
from accord.stores.sqlite.writer import SYNCHRONOUS
from tests.contract.rows import first
from tests.helpers.seeds import seeds
from tests.stores.power_cut_disk import PowerDisk

SEEDS = seeds(6, long=100)
STREAMS = ("room/a", "room/b", "room/c")
APPENDS = 60
# One change in so many is a moment at which the power may go; each is imagined more than once.
ONE_IN = 25
TIMES = 2
MADE: dict[str, list[Row]] = {}


class Cut(NamedTuple):
    """What might have been left, and what had been acknowledged by then."""

    home: Path
    acknowledged: dict[str, int]


def rows(stream: str, after: int, count: int) -> list[Row]:
    """The rows that stream has behind a version: always the same, sealed to each other."""
    made = MADE.setdefault(stream, [])
    for version in range(len(made) + 1, after + count + 1):
        body = f"{stream} {version} ".encode() * (1 + version * 7 % 40)
        last = made[-1].hash if made else genesis_hash(stream)
        made.append(Row(stream, version, f"{stream}-{version}", body, link_hash(last, body)))
    return made[after : after + count]


class Story:
    """Appends to a log on a disk whose power may go at any moment."""

    def __init__(self, folder: Path, seed: int, durability: str) -> None:
        self.rng = random.Random(seed)
        self.path = str(folder / "home" / "log.db")
        self.folder = folder
        self.durability = durability
        self.acknowledged = dict.fromkeys(STREAMS, 0)
        self.cuts: list[Cut] = []
        self.order: list[str] = []

    def moment(self, disk: PowerDisk) -> None:
        """Sometimes the power goes here."""
        told = dict(self.acknowledged)  # first: whoever is told later may be lost
        if self.rng.randrange(ONE_IN) == 0:
            for _ in range(TIMES):
                home = self.folder / f"cut-{len(self.cuts)}"
                disk.image(home, self.rng)
                self.cuts.append(Cut(home, told))

    async def play(self) -> None:
        """Three lives of a log, in each of which several write at once."""
        for _ in range(3):
            log = await SqliteLog.open(self.path, durability=self.durability)
            await asyncio.gather(*(self._write(log, stream) for stream in STREAMS))
            await log.close()
        log = await SqliteLog.open(self.path)
        seen = await first(log, sum(self.acknowledged.values()))
        self.order = [row.id for _, row in seen]
        await log.close()

    async def _write(self, log: SqliteLog, stream: str) -> None:
        for number in range(APPENDS // 3):
            after = self.acknowledged[stream]
            count = 1 + (number * 5 + len(stream)) % 4
            fresh = rows(stream, after, count)
            await log.append(stream, after, fresh)
            self.acknowledged[stream] = after + count
            if number % 7 == 0:
                await log.add_head(
                    SignedHead(stream, after + count, fresh[-1].hash, 0, "key", b"signed")
                )
                await log.save_snapshot(stream, Snapshot(after + count, "shape", b"x" * 9000))
                await log.advance("somebody", after + count)


@contextmanager
def powered(story: Story) -> Iterator[PowerDisk]:
    """The disk, as long as there is power."""
    disk = PowerDisk(story.moment)
    try:
        yield disk
    finally:
        disk.unregister()


async def left(cut: Cut) -> tuple[dict[str, list[Row]], list[str]]:
    """Every stream and the order of all rows, as a new process finds them; both must be whole."""
    log = await SqliteLog.open(str(cut.home / "log.db"))
    assert await log.check() == []
    found = {stream: await log.read(stream) for stream in STREAMS}
    count = sum(map(len, found.values()))
    order = [row.id for _, row in await first(log, count)] if count else []
    for stream, kept in found.items():
        assert kept == rows(stream, 0, len(kept)), "what is there is not what was written"
        for head in await log.heads(stream):
            assert head.version <= len(kept), "signed, and lost"
    await log.close()
    return found, order


async def losses(cuts: list[Cut]) -> int:
    """How many of the cuts lost something acknowledged, or left a damaged file."""
    lost = 0
    for cut in cuts:
        try:
            found, _ = await left(cut)
        except (AssertionError, StoreError):
            lost += 1
        else:
            lost += any(len(found[s]) < version for s, version in cut.acknowledged.items())
    return lost


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints come after a few pages, by either thread, and the log starts over often."""
    monkeypatch.setattr("accord.stores.sqlite.writer.CHECKPOINT_INTERVAL_PAGES", 10)
    monkeypatch.setattr("accord.stores.sqlite.writer.RESTART_WAL_PAGES", 40)
    monkeypatch.setattr("accord.stores.sqlite.writer.WAL_SIZE_LIMIT_BYTES", 30 * 4096)


@pytest.mark.parametrize("seed", SEEDS)
async def test_acknowledged_rows_survive_a_power_cut(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path, seed, "full")
    with powered(story):
        await story.play()

    assert len(story.cuts) > 10 * TIMES
    for cut in story.cuts:
        found, _ = await left(cut)
        for stream, version in cut.acknowledged.items():
            assert len(found[stream]) >= version, f"{stream} was acknowledged up to {version}"


@pytest.mark.parametrize("seed", SEEDS)
async def test_power_cut_with_normal_durability_leaves_a_valid_prefix(
    tmp_path: Path, seed: int
) -> None:
    story = Story(tmp_path, seed, "normal")
    with powered(story):
        await story.play()

    for cut in story.cuts:
        _, order = await left(cut)
        assert order == story.order[: len(order)]


async def test_second_power_cut_after_recovery_loses_nothing(tmp_path: Path) -> None:
    """What recovery left behind is as good a start as any."""
    story = Story(tmp_path, 1, "full")
    with powered(story):
        await story.play()
    for cut in story.cuts[-3:]:
        found, _ = await left(cut)
        again = Story(cut.home, 2, "full")
        again.path = str(cut.home / "log.db")
        again.acknowledged = {stream: len(kept) for stream, kept in found.items()}
        with powered(again):
            await again.play()
        assert await losses(again.cuts) == 0


async def test_simulated_disk_loses_data_without_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk bites: a check that finds nothing here would find nothing anywhere."""
    monkeypatch.setitem(SYNCHRONOUS, "full", "OFF")
    story = Story(tmp_path, 1, "full")
    with powered(story):
        await story.play()

    assert await losses(story.cuts) > len(story.cuts) // 4


async def test_simulated_disk_with_a_false_fsync_loses_data(tmp_path: Path) -> None:
    story = Story(tmp_path, 1, "full")
    with powered(story) as disk:
        disk.honest = False
        await story.play()

    assert await losses(story.cuts) > len(story.cuts) // 4
