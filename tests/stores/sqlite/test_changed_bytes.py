"""Bytes that change on the disk: what is read is what was written, or it is refused.

`ACCORD_LONG=1` tries many more of them, and others each time.
"""

import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.engine.ports import Row, StoreError
from accord.engine.streams import verified_reads
from accord.operations.verify import check_store
from accord.stores.sqlite import SqliteLog
from tests.helpers.seeds import seeds

SEEDS = seeds(2, long=20)
FLIPS = 150
STREAMS = ("room/a", "room/b", "room/c", "room/d")
ROWS = 60
SIZES = (1, 1, 4, 64)


def rows(stream: str) -> list[Row]:
    """A story of its own for each stream."""
    made, last = [], genesis_hash(stream)
    for version in range(1, ROWS + 1):
        body = f'{{"in":"{stream}","n":{version},"text":"{"word " * (version % 60)}"}}'.encode()
        last = link_hash(last, body)
        made.append(Row(stream, version, f"{stream}-{version}", body, last))
    return made


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteLog]:
    """A log that is closed at the end."""
    log = await SqliteLog.open(str(path))
    try:
        yield log
    finally:
        await log.close()


@asynccontextmanager
async def written(folder: Path) -> AsyncIterator[None]:
    """A log whose streams lie mixed on its pages, all of it in the write-ahead log meanwhile."""
    async with opened(folder / "log.db") as log:
        stories = [rows(stream) for stream in STREAMS]
        for start in range(0, ROWS, 5):
            for story in stories:
                await log.append(story[0].stream, start, story[start : start + 5])
        yield


def flip(file: Path, rng: random.Random) -> None:
    """Change some bytes somewhere, in place."""
    with file.open("r+b") as bytes_:
        at = rng.randrange(file.stat().st_size - 64)
        bytes_.seek(at)
        changed = bytes(each ^ rng.randrange(1, 256) for each in bytes_.read(rng.choice(SIZES)))
        bytes_.seek(at)
        bytes_.write(changed)


def flip_frames(file: Path, rng: random.Random) -> None:
    """Change bytes in many places."""
    for _ in range(40):
        flip(file, rng)


def copied(home: Path, into: Path) -> Path:
    """The files as they are."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    for file in home.iterdir():
        shutil.copy(file, into / file.name)
    return into / "log.db"


async def read_all(log: SqliteLog) -> dict[str, list[Row] | None]:
    """Each stream, or None where it is refused with a sentence."""
    found: dict[str, list[Row] | None] = {}
    for stream in STREAMS:
        try:
            found[stream] = await verified_reads.read(log, stream)
        except StoreError:
            found[stream] = None
    return found


def true_or_refused(found: dict[str, list[Row] | None]) -> None:
    """Nothing that is read differs from what was written; at most its end is missing."""
    for stream, read in found.items():
        if read is not None:
            bodies = [each.body for each in rows(stream)]
            assert [each.body for each in read] == bodies[: len(read)]


async def judged(path: Path) -> list[str]:
    """How each stream of a changed file was read; what is wrong with it is always found."""
    try:
        async with opened(path) as log:
            found = await read_all(log)
            true_or_refused(found)
            how = [
                "refused" if r is None else "short" if len(r) < ROWS else "whole"
                for r in found.values()
            ]
            if "short" in how:
                how += ["found"] if await check_store(log) else ["unnoticed"]
    except StoreError:
        return ["closed"]
    return how


@pytest.mark.parametrize("seed", SEEDS)
async def test_changed_bytes_in_the_file_are_never_read_as_valid(tmp_path: Path, seed: int) -> None:
    async with written(tmp_path / "home"):
        pass
    rng, seen = random.Random(seed), Counter[str]()

    for _ in range(FLIPS):
        path = copied(tmp_path / "home", tmp_path / "copy")
        flip(path, rng)
        seen.update(await judged(path))

    assert seen["refused"] > FLIPS // 10, "nothing was changed"
    assert seen["whole"] > seen["refused"], "what is on other pages can be read"
    assert not seen["unnoticed"]


@pytest.mark.parametrize("seed", SEEDS)
async def test_changed_bytes_in_the_write_ahead_log_leave_a_valid_prefix(
    tmp_path: Path, seed: int
) -> None:
    """SQLite's own checksums end it at the first change."""
    rng, seen = random.Random(seed), Counter[str]()
    async with written(tmp_path / "home"):
        for _ in range(FLIPS // 3):
            path = copied(tmp_path / "home", tmp_path / "copy")
            flip(path.with_name("log.db-wal"), rng)
            (path.with_name("log.db-shm")).unlink()
            seen.update(await judged(path))

    assert seen["short"]


@pytest.mark.parametrize("seed", SEEDS)
async def test_write_ahead_log_changed_under_a_reader_is_detected(
    tmp_path: Path, seed: int
) -> None:
    """Nobody looks at the checksums while there are readers; ours are looked at."""
    rng, seen = random.Random(seed), Counter[str]()
    for number in range(FLIPS // 5):
        folder = tmp_path / str(number)
        async with written(folder):
            flip_frames(folder / "log.db-wal", rng)
            seen.update(await judged(folder / "log.db"))

    assert seen["refused"]
