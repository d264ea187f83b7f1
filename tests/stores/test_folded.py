"""A cache that may be deleted at any time: with it and without it, the state is the same."""

import json
from pathlib import Path

import msgspec
import pytest

from accord import __version__
from accord.core.dialects import pact
from accord.core.work.fold import fold
from accord.engine.ports import Mark
from accord.stores import folded
from accord.stores.folded import Folder, Shelf
from accord.stores.ledger import FileLedger
from tests.core.work.story import ANN, BOB, CY, assigned, line, log

AGAIN = assigned("T1", at=9) | {"event_id": assigned("T1", at=1)["event_id"]}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "WORTHWHILE", 3)


@pytest.fixture
def here(tmp_path: Path) -> FileLedger:
    made = FileLedger(tmp_path / "log.jsonl", tmp_path / "lock")
    made.append(Mark(), log(*(assigned(f"T{number}", at=number) for number in range(5))))
    return made


def state(here: FileLedger, cache: Path | None) -> folded.Folded:
    found = Folder(here, cache).load()
    assert found.work == fold(pact.read(here.read()[0]).entries)
    assert found.mark == here.mark()
    return found


def test_what_is_shown_is_remembered_for_one_ledger_and_one_file(tmp_path: Path) -> None:
    shelf, mark = Shelf(tmp_path / "shown"), Mark(1, 2, 3)
    assert not shelf.knows(mark, b"state")

    shelf.keep(mark, b"state")

    assert shelf.knows(mark, b"state")
    assert not shelf.knows(mark, b"other")
    assert not shelf.knows(Mark(2, 2, 3), b"state")
    (tmp_path / "shown").write_bytes(b"?")
    assert not shelf.knows(mark, b"state")
    Shelf(None).keep(mark, b"state")
    assert not Shelf(None).knows(mark, b"state")


def test_what_was_appended_is_folded_onto_the_cache(here: FileLedger, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    state(here, cache)
    kept = cache.read_bytes()
    here.append(here.mark(), log(line("checkpoint", BOB, "T1", evidence="x", at=9), AGAIN))

    assert state(here, cache).work.tasks["T1"].status == "awaiting_review"
    here.append(here.mark(), log(line("accept", ANN, "T1", at=10)))
    assert state(here, cache).work.tasks["T1"].status == "accepted"
    assert cache.read_bytes() == kept
    here.append(here.mark(), log(*(line("join", BOB, at=20 + each) for each in range(5))))
    assert state(here, cache).at == "2026-01-01T00:24:00"
    assert cache.read_bytes() != kept


def test_a_file_that_git_merged_is_folded_from_the_start(here: FileLedger, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    state(here, cache)
    lines = here.path.read_bytes().splitlines(keepends=True)
    lines.insert(2, log(line("join", BOB, at=1)))
    here.path.write_bytes(b"".join(lines))

    assert state(here, cache).work.tasks["T0"].status == "in_progress"


def test_an_older_event_at_the_end_is_put_where_it_belongs(
    here: FileLedger, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    state(here, cache)
    here.append(here.mark(), log(line("join", BOB, at=2)))

    tasks = state(here, cache).work.tasks

    assert [task.status.value for task in tasks.values()].count("assigned") == 2


def test_a_broken_or_foreign_cache_is_not_believed(here: FileLedger, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for bad in (b"", b"\xff", json.dumps({"shape": "x"}).encode()):
        cache.write_bytes(bad)
        state(here, cache)
    folder = Folder(here, cache)
    folder.load()
    cache.write_bytes(cache.read_bytes().replace(__version__.encode(), b"x" * len(__version__)))
    state(here, cache)
    state(here, None)
    state(here, tmp_path / "log.jsonl" / "nowhere")


def test_what_has_no_time_is_put_where_it_is_without_a_cache(
    here: FileLedger, tmp_path: Path
) -> None:
    """Its time is that of the line before it, and not the latest one."""
    early = line("join", ANN, at=2)
    here.append(here.mark(), log(assigned("T9", at=9), early))
    cache = tmp_path / "cache"
    state(here, cache)
    timeless = line("join", BOB, at=3) | {"ts": "yesterday"}
    here.append(here.mark(), log(timeless, line("join", CY, at=9)))

    tasks = state(here, cache).work.tasks

    assert cache.exists()
    assert (tasks["T9"].status, tasks["T1"].status) == ("assigned", "in_progress")


def test_a_fresh_look_believes_no_cache_and_leaves_none_that_lies(
    here: FileLedger, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    lie = FileLedger(tmp_path / "lie", tmp_path / "lock")
    lie.append(Mark(), log(*(assigned(f"X{number}", at=number) for number in range(5))))
    Folder(lie, cache).load()
    poisoned = msgspec.msgpack.decode(cache.read_bytes(), type=folded.Kept)
    nothing = msgspec.structs.replace(poisoned, size=0, digest=folded.digest(b""), at="", lines=0)
    cache.write_bytes(msgspec.msgpack.encode(nothing))
    assert "X1" in Folder(here, cache).load().work.tasks

    assert "X1" not in Folder(here, cache).load(fresh=True).work.tasks

    assert "X1" not in state(here, cache).work.tasks
    assert Folder(here, tmp_path / "nowhere" / "x").load(fresh=True).work == state(here, cache).work
    assert Folder(here, None).load(fresh=True).work == state(here, cache).work


def test_a_log_with_faults_is_folded_each_time(here: FileLedger, tmp_path: Path) -> None:
    here.append(here.mark(), b"not json\n")

    found = state(here, tmp_path / "cache")

    assert [fault.line for fault in found.faults] == [6]
    assert not (tmp_path / "cache").exists()


def test_faults_behind_the_cache_are_told(here: FileLedger, tmp_path: Path) -> None:
    state(here, tmp_path / "cache")
    here.append(here.mark(), b"torn")

    assert [fault.line for fault in state(here, tmp_path / "cache").faults] == [6]
