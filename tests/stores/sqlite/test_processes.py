"""Other processes: killed ones, and ones that have the same file open."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accord.engine.ports import StoreError
from accord.stores import open_log
from accord.stores.sqlite import SqliteLog
from tests.contract.rows import first, rows
from tests.helpers.stores.write_lock import hold_write_lock
from tests.stores.appender_process import STREAMS, body

ROOT = Path(__file__).resolve().parents[3]
HERE = "room/here"


@contextmanager
def appender(path: Path, rounds: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that appends to the file."""
    command = [sys.executable, "-m", "tests.stores.appender_process", f"sqlite:{path}", str(rounds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def acknowledged(path: Path, lines: int) -> dict[str, int]:
    """What a process was told is durable before it was killed in the middle of its work."""
    told = dict[str, int]()
    with appender(path, rounds=100_000) as child:
        assert child.stdout
        for count, line in enumerate(child.stdout):
            if count == lines:
                child.send_signal(signal.SIGKILL)
            if not line.endswith("\n"):
                break  # killed in the middle of saying so
            stream, _, version = line.rstrip("\n").partition(" ")
            told[stream] = int(version)
    assert child.returncode == -signal.SIGKILL
    return told


async def test_acknowledged_rows_survive_sigkill(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    for lines in (3, 40, 1, 150, 17):
        told = await asyncio.to_thread(acknowledged, path, lines)

        log = await SqliteLog.open(str(path))
        for stream in STREAMS:
            kept = await log.read(stream)
            assert len(kept) >= told.get(stream, 0)
            assert list(range(1, len(kept) + 1)) == [row.version for row in kept]
            assert [body(stream, row.version) for row in kept] == [row.body for row in kept]
        assert await log.check() == []
        await log.close()


async def test_tail_sees_rows_of_another_process(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await open_log(f"sqlite:{path}")
    following = asyncio.ensure_future(first(log, 3 * 18 + 1))
    await log.append(HERE, 0, rows(HERE, 1))

    await asyncio.to_thread(finished, path)
    seen = await following

    assert list(range(1, 56)) == [at for at, _ in seen]
    assert dict.fromkeys(STREAMS, 18) | {HERE: 1} == await log.streams()
    await log.close()


def finished(path: Path) -> None:
    with appender(path, rounds=9) as child:
        child.communicate(timeout=60)
    assert child.returncode == 0


async def test_processes_can_create_one_file_concurrently(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    outcomes = await asyncio.gather(
        *(asyncio.to_thread(started, path) for _ in range(4)), return_exceptions=True
    )

    assert {0} == set(outcomes)
    log = await SqliteLog.open(str(path))
    assert await log.check() == []
    await log.close()


def started(path: Path) -> int:
    with appender(path, rounds=0) as child:
        child.communicate(timeout=60)
    return child.returncode


async def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 200))

    with hold_write_lock(path):
        assert rows(HERE, 200) == await log.read(HERE)
        assert 0 == await log.cursor("theirs")
    await log.close()


async def test_writer_waits_for_another_until_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.stores.sqlite.database_file.BUSY_TIMEOUT_MS", 20)
    path = tmp_path / "log.db"
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 1))

    with hold_write_lock(path):
        with pytest.raises(StoreError, match="locked"):
            await log.append(HERE, 1, rows(HERE, 1, after=1))
        with pytest.raises(StoreError, match="locked"):
            await log.advance("mine", 1)
    await log.append(HERE, 1, rows(HERE, 1, after=1))

    assert rows(HERE, 2) == await log.read(HERE)
    await log.close()
