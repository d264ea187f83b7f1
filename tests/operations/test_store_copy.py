"""Copying a log between stores: everything arrives, also after interruptions, and nothing else."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.core.kernel.refusal import Refused
from accord.data_dir import store_url_of
from accord.engine.ports import EventLog, Prunable, Row, StoreError
from accord.operations.store_copy import COPY_CURSOR, Copy, StorePair, copy_store
from accord.stores import open_log
from accord.stores.sqlite import SqliteLog
from tests.contract.rows import HERE, THERE, head, rows
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.postgres_server import SHARED_POSTGRES
from tests.helpers.servers.server_process import run_server
from tests.helpers.stores.sample_log import build_log


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[EventLog]:
    log = await open_log(url)
    try:
        yield log
    finally:
        await log.close()


def quiet(_done: int, _all: int) -> None:
    """No progress line."""


async def contents(url: str) -> dict[str, object]:
    """Everything a reader can find in a log, without positions."""
    async with opened(url) as log:
        found = list[Row]()
        async with aclosing(log.tail(0)) as batches:
            count = sum([len(await log.read(stream)) for stream in await log.streams()])
            while len(found) < count:
                found += [row for _, row in await anext(batches)]
        assert isinstance(log, Prunable)
        streams = await log.streams()
        return {
            "rows": found,
            "streams": streams,
            "heads": {stream: await log.heads(stream) for stream in streams},
            "cuts": {stream: await log.cut(stream) for stream in streams},
        }


def cut_at(row: Row) -> RetentionCut:
    about = (7, "alice", "retention", b"{}", "key", b"signature")
    return RetentionCut(row.stream, row.version, row.hash, *about)


async def fill(url: str) -> None:
    """Two streams, one of them without its beginning, with signatures and cursors."""
    async with opened(url) as log:
        for version in range(10):
            await log.append(HERE, version, rows(HERE, 1, after=version))
            await log.append(THERE, version * 2, rows(THERE, 2, after=version * 2))
        await log.add_head(head(HERE, 10))
        await log.add_head(head(THERE, 20))
        await log.advance("early", 5)
        await log.advance("late", 30)
        assert isinstance(log, Prunable)
        await log.prune(cut_at(rows(THERE, 20)[14]))


@pytest.fixture
async def source(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path / 'source.db'}"
    await fill(url)
    return url


@pytest.fixture
def database() -> str:
    return SHARED_POSTGRES.server().new_database()


async def test_log_is_the_same_after_a_copy_to_postgresql_and_back(
    source: str, database: str, tmp_path: Path
) -> None:
    back = f"sqlite:{tmp_path / 'back.db'}"

    first = await copy_store(source, database, quiet)
    second = await copy_store(database, back, quiet)

    assert await contents(source) == await contents(database) == await contents(back)
    assert (2, 15, 15) == (first.streams, first.records, first.copied)
    assert first == second


async def test_cursors_point_to_the_same_record_where_positions_have_changed(
    source: str, database: str
) -> None:
    await copy_store(source, database, quiet)

    async with opened(database) as log:
        # Of the first five records, HERE 1 and 2 are left: the others were removed.
        assert await log.cursor("early") == 2
        assert await log.cursor("late") == await log.position() == 15


class Interrupting(SqliteLog):
    """A target that fails after so many appends."""

    appends_left = 0

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        if not self.appends_left:
            raise StoreError("interrupted")
        self.appends_left -= 1
        await super().append(stream, expected, rows)


@pytest.mark.parametrize("after", range(5))
async def test_interrupted_copy_goes_on_where_it_ended(
    source: str, tmp_path: Path, after: int
) -> None:
    path = str(tmp_path / "target.db")
    target = await Interrupting.open(path)
    assert isinstance(target, Interrupting)
    target.appends_left = after
    async with opened(source) as log:
        with pytest.raises(StoreError, match="interrupted"):
            await Copy(StorePair(log, target), quiet).run()
    await target.close()

    done = await copy_store(source, f"sqlite:{path}", quiet)

    assert await contents(source) == await contents(f"sqlite:{path}")
    assert done.records == 15
    assert done.copied < 15 or not after


async def test_second_copy_adds_what_is_new(source: str, database: str) -> None:
    await copy_store(source, database, quiet)
    async with opened(source) as log:
        await log.append(HERE, 10, rows(HERE, 3, after=10))

    done = await copy_store(source, database, quiet)

    assert done.copied == 3
    assert await contents(source) == await contents(database)


async def test_target_with_another_log_is_refused_and_not_changed(
    source: str, tmp_path: Path
) -> None:
    other = f"sqlite:{tmp_path / 'other.db'}"
    async with opened(other) as log:
        await log.append(HERE, 0, [Row(HERE, 1, "other", b"{}", b"other hash")])
    before = await contents(other)

    with pytest.raises(Refused, match="another log"):
        await copy_store(source, other, quiet)

    assert before == await contents(other)


async def test_copy_keeps_its_place_in_the_target_alone(source: str, database: str) -> None:
    await copy_store(source, database, quiet)

    async with opened(source) as log:
        assert await log.cursor(COPY_CURSOR) == 0


# The command


async def test_copied_log_verifies_and_serves(tmp_path: Path, database: str) -> None:
    home = tmp_path / "home"
    await build_log(home)

    ran = run_accord("store", "copy", store_url_of(home), database)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Copied ")
    checked = run_accord("verify", "--store", database, "--data-dir", str(home))
    assert checked.code == 0, checked.out
    assert "The log is intact" in checked.out
    again = run_accord("store", "copy", store_url_of(home), database, "--json")
    assert again.json["copied"] == 0


async def test_log_of_a_running_server_is_refused(tmp_path: Path, database: str) -> None:
    with run_server(tmp_path) as server:
        ran = run_accord("store", "copy", store_url_of(server.home), database)

    assert ran.code == 6
    assert "is already using" in ran.err


def test_missing_log_and_copy_onto_itself_are_refused(tmp_path: Path) -> None:
    file = f"sqlite:{tmp_path / 'none.db'}"

    assert run_accord("store", "copy", file, "sqlite:other.db", cwd=tmp_path).code == 4
    (tmp_path / "none.db").touch()
    assert run_accord("store", "copy", file, file, cwd=tmp_path).code == 2
