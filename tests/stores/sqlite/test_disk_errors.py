"""Full, read-only and failing disks: nothing is stored in part, and the store recovers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from accord.engine.ports import StoreError
from accord.stores import open_log
from accord.stores.sqlite import SqliteLog
from tests.contract.rows import row, rows
from tests.helpers.stores.small_disk import fill_disk, mount_small_disk, remount_read_only
from tests.stores.writer_connection import with_writing

HERE = "room/here"


async def test_full_database_stores_nothing_and_recovers(tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 3))
    await with_writing(log, lambda db: db.pragma("max_page_count", db.pragma("page_count") + 2))

    with pytest.raises(StoreError, match="No disk space left"):
        await log.append(HERE, 3, rows(HERE, 1000, after=3))
    kept = await log.streams()
    await with_writing(log, lambda db: db.pragma("max_page_count", 1 << 30))
    await log.append(HERE, 3, rows(HERE, 1000, after=3))

    assert {HERE: 3} == kept
    assert rows(HERE, 1003) == await log.read(HERE)
    assert await log.check() == []
    await log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Four megabytes, where the machine lets us make such a disk."""
    with mount_small_disk(tmp_path / "disk", "4m") as disk:
        yield disk


async def test_full_disk_stores_nothing_and_recovers(small_disk: Path) -> None:
    log = await SqliteLog.open(str(small_disk / "log.db"))
    await log.append(HERE, 0, rows(HERE, 3))
    filled = fill_disk(small_disk / "filler")

    with pytest.raises(StoreError, match="No disk space left"):
        await log.append(HERE, 3, [row(HERE, 4, body=b"x" * 500_000)])
    with pytest.raises(StoreError, match="No disk space left"):
        await log.append("room/new", 0, [row("room/new", 1, body=b"x" * 500_000)])
    kept = await log.streams()
    filled.unlink()
    await log.append(HERE, 3, [row(HERE, 4, body=b"x" * 500_000)])

    assert {HERE: 3} == kept
    assert {HERE: 4} == await log.streams()
    assert await log.check() == []
    await log.close()


async def test_read_only_file_is_refused_on_open(small_disk: Path) -> None:
    path = small_disk / "log.db"
    log = await open_log(f"sqlite:{path}")
    await log.append(HERE, 0, rows(HERE, 1))
    await log.close()
    remount_read_only(small_disk)

    with pytest.raises(StoreError, match="is read-only"):
        await open_log(f"sqlite:{path}")


class Disk(apsw.VFS):
    """The usual one, until it is told to fail."""

    def __init__(self) -> None:
        self.usual = apsw.vfs_names()[0]
        super().__init__("failing", self.usual, makedefault=True)
        self.fault: Callable[[], None] = lambda: None

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """A file on this disk."""
        return File(self, name, flags)


class File(apsw.VFSFile):
    """A file that fails with its disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(disk.usual, name, flags)
        self._disk = disk

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Durable, or not."""
        self._disk.fault()
        super().xSync(flags)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk that can be made to fail."""
    failing = Disk()
    yield failing
    failing.unregister()


def broken() -> None:
    raise apsw.IOError("the disk is on fire")


async def test_failed_write_is_not_stored(disk: Disk, tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    await log.append(HERE, 0, rows(HERE, 3))

    disk.fault = broken
    with pytest.raises(StoreError, match="disk failed"):
        await log.append(HERE, 3, rows(HERE, 1, after=3))
    kept = await log.streams()
    disk.fault = lambda: None
    await log.append(HERE, 3, rows(HERE, 2, after=3))

    assert {HERE: 3} == kept
    assert rows(HERE, 5) == await log.read(HERE)
    assert await log.check() == []
    await log.close()
