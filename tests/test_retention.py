"""What was removed on purpose is named and signed; whatever else is missing or changed is found."""

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from accord import verify
from accord.app import make_engine
from accord.core import room as rooms
from accord.core.kernel.cuts import Cut
from accord.core.kernel.log import Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.desk import LocalDesk
from accord.engine.clock import SystemClock, WallClock
from accord.engine.heads import HeadSigner
from accord.engine.ports import Conflict, StoreError
from accord.engine.snapshots import left, resumed
from accord.home import DATABASE, place
from accord.reading import Shelf, opened
from accord.retention import Ending, Retention, Trust
from accord.stores.sqlite import SqliteLog
from accord.transports.keyring import Keyring
from tests.helpers.cli import accord, environment
from tests.helpers.damage import ask, change, examine, flipped, key_of
from tests.helpers.log import ROOMS, Story, a_log, copied, sign_all
from tests.helpers.room import ALICE, T0, ends

ENDED, OPEN = (f"room/{room}" for room in ROOMS)
WORDS = b"Number 1"


async def an_ended_session(home: Path, rounds: int = 3) -> None:
    """Two rooms, and the first of them is over."""
    await a_log(home, rounds=rounds)
    async with opened(place(home)) as events:
        engine = make_engine(events)
        message = Message("r1-end", iso(T0), ROOMS[0], ALICE.seat, ends())
        await engine.handle(message, ALICE)
        await engine.settle()
        engine.scheduler.stop()
        await sign_all(events, HeadSigner(events, Keyring(home / "keys"), engine.clock))


@pytest.fixture(scope="module")
def story() -> Story:
    return an_ended_session


def retention(events: Any, home: Path) -> Retention:
    keys = home / "keys"
    return Retention(events, SystemClock(), Trust(Keyring.open(keys), keys, "olga", "our rule"))


async def prune_all(home: Path) -> list[Ending]:
    async with opened(place(home)) as events:
        keeper = retention(events, home)
        due = await keeper.due(0)
        for ending in due:
            await keeper.prune(ending)
        assert await keeper.due(0) == []
    return due


# What is removed


async def test_an_ended_session_is_cut_and_the_log_still_holds(home: Path) -> None:
    before = await asyncio.to_thread(examine, home)
    (ending,) = await prune_all(home)

    report = await asyncio.to_thread(examine, home)

    assert report.holds, report
    found = report.findings[ENDED]
    assert (found.removed, found.removed_by, found.removed_why) == (
        ending.version - 1,
        "olga",
        "our rule",
    )
    same = before.findings[ENDED]
    assert (found.version, found.hash) == (same.version, same.hash)
    assert report.findings[OPEN] == before.findings[OPEN]


async def test_what_was_said_is_gone_from_the_file_to_the_last_byte(home: Path) -> None:
    async with opened(place(home)) as events:
        (row,) = [r for r in await events.read(ENDED) if WORDS in r.body][:1]
    assert row.id.encode() in (home / DATABASE).read_bytes()

    await prune_all(home)

    assert row.id.encode() not in (home / DATABASE).read_bytes()
    assert ask(home / DATABASE, "SELECT count(*) FROM snapshots WHERE stream = ?", ENDED) == [(0,)]


async def test_who_was_there_and_how_it_ended_is_kept_and_what_was_said_refused(home: Path) -> None:
    async with opened(place(home)) as events:
        before = await Shelf(events).detail(ROOMS[0])
    await prune_all(home)

    async with opened(place(home)) as events:
        after = await Shelf(events).detail(ROOMS[0])
        with pytest.raises(Refused, match="removed by retention") as refusal:
            _ = [each async for each in Shelf(events).transcript(ROOMS[0])]
        there = (refusal.value.details or {})["after"]
        rest = [each["type"] async for each in Shelf(events).transcript(ROOMS[0], there)]
        engine = make_engine(events)
        again = await engine.state(ENDED)
        with pytest.raises(Refused) as late:
            await engine.handle(Message("x", iso(T0), ROOMS[0], ALICE.seat, ends()), ALICE)
        await engine.settle()

    assert refusal.value.why is Why.REMOVED
    assert rest == ["session.end"]
    same = ("id", "name", "status", "created_at", "created_by", "members", "config")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert (again.ended, again.shelf, again.exists) == ("completed", {}, True)
    assert late.value.why is Why.ENDED


async def test_a_session_that_goes_on_is_left_alone(home: Path) -> None:
    ((count,),) = ask(home / DATABASE, "SELECT count(*) FROM records")
    (ending,) = await prune_all(home)

    async with opened(place(home)) as events:
        assert await retention(events, home).ending(OPEN, (await events.streams())[OPEN]) is None
        assert (await events.read(OPEN))[0].version == 1
    assert ask(home / DATABASE, "SELECT count(*) FROM records") == [(count - ending.version + 1,)]


async def test_what_does_not_hold_is_not_removed(home: Path) -> None:
    """Otherwise a removal would hide that somebody had changed the past."""
    sql = "UPDATE records SET body = CAST(replace(body, 'Number 1', 'Number 7') AS BLOB)"
    change(home / DATABASE, sql)

    with pytest.raises(Refused, match="does not hold"):
        await prune_all(home)

    assert ask(home / DATABASE, "SELECT count(*) FROM cuts") == [(0,)]


async def test_a_cut_of_what_is_not_there_is_refused(home: Path) -> None:
    async with opened(place(home)) as events:
        assert isinstance(events, SqliteLog)
        with pytest.raises(Conflict):
            await events.prune(Cut(ENDED, 3, b"another", 0, "", "", b"", "", b""))


def test_a_state_that_this_code_does_not_know_is_refused() -> None:
    good = Cut("room/x", 3, b"h", 0, "", "", left(rooms.CONTEXT.start("room/x"), 2, 1), "")

    assert resumed(rooms.CONTEXT, good).seq == 2
    with pytest.raises(StoreError, match="cannot be read"):
        resumed(rooms.CONTEXT, replace(good, state=b"\x93\xc0\x01\x01"))


# Any log, any cut, any change


async def cut_at(home: Path, stream: str, version: int) -> None:
    async with opened(place(home)) as events:
        assert isinstance(events, SqliteLog)
        (row,) = await events.read(stream, version - 1, 1)
        kid, key = Keyring(home / "keys").signer()
        cut = Cut(stream, version, row.hash, T0, "olga", "rule", b"state", kid)
        await events.prune(replace(cut, signature=key.sign(cut.claim())))


async def test_a_cut_takes_signatures_with_it_and_none_is_missed(home: Path) -> None:
    """Even where nothing before the cut's end was signed, so that no head is left."""
    version = (await asyncio.to_thread(examine, home)).findings[ENDED].version
    change(home / DATABASE, "DELETE FROM heads WHERE version > 5 OR stream <> ?", ENDED)
    await cut_at(home, ENDED, version - 1)
    assert ask(home / DATABASE, "SELECT count(*) FROM heads") == [(0,)]

    async with opened(place(home)) as events:
        await sign_all(events, HeadSigner(events, Keyring(home / "keys"), SystemClock()))

    report = await asyncio.to_thread(examine, home)
    assert report.holds, report
    assert change(home / DATABASE, "DELETE FROM heads WHERE stream = ?", "people/default") == 1
    assert not (await asyncio.to_thread(examine, home)).holds


COLUMNS = ("version", "hash", "at", "by", "reason", "state", "key", "signature", "stream")


def change_a_cut(database: Path, which: int, at: int, mask: int) -> bool:
    column = COLUMNS[which % len(COLUMNS)]
    ((value,),) = ask(database, f"SELECT {column} FROM cuts")  # noqa: S608 - our own names
    return change(database, f"UPDATE cuts SET {column} = ?", flipped(value, at, mask)) == 1  # noqa: S608


def change_a_row(database: Path, which: int, at: int, mask: int) -> bool:
    found = ask(database, "SELECT pos, body FROM records ORDER BY pos")
    pos, body = found[which % len(found)]
    return (
        change(database, "UPDATE records SET body = ? WHERE pos = ?", flipped(body, at, mask), pos)
        == 1
    )


def drop_a_row(database: Path, which: int, at: int, mask: int) -> bool:
    found = ask(database, "SELECT pos FROM records ORDER BY pos")
    return change(database, "DELETE FROM records WHERE pos = ?", *found[which % len(found)]) == 1


def drop_the_cut(database: Path, which: int, at: int, mask: int) -> bool:
    return change(database, "DELETE FROM cuts") == 1


def cut_further(database: Path, which: int, at: int, mask: int) -> bool:
    """Remove a few more rows, and let the cut say so; without the key."""
    ((stream, version),) = ask(database, "SELECT stream, version FROM cuts")
    sql = """
        SELECT r.version, r.hash FROM records r JOIN streams s ON s.key = r.stream
        WHERE s.name = ? AND r.version > ?
    """
    rows = ask(database, sql, stream, version)
    if len(rows) < 2:
        return False
    last, hash_ = rows[which % (len(rows) - 1)]
    gone = "DELETE FROM records WHERE version <= ? AND stream = ?"
    change(database, gone, last, key_of(database, stream))
    return change(database, "UPDATE cuts SET version = ?, hash = ?", last, hash_) == 1


def borrow_the_cut(database: Path, which: int, at: int, mask: int) -> bool:
    """Use the signed cut of one stream for another."""
    ((stream,),) = ask(database, "SELECT stream FROM cuts")
    other = OPEN if stream == ENDED else ENDED
    return change(database, "UPDATE cuts SET stream = ?", other) == 1


FORGERIES = {
    "a cut": change_a_cut,
    "a row": change_a_row,
    "a row dropped": drop_a_row,
    "the cut dropped": drop_the_cut,
    "cut further": cut_further,
    "borrowed": borrow_the_cut,
}


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    stream=st.sampled_from([ENDED, OPEN]),
    version=st.integers(1, 12),
    forgery=st.sampled_from(sorted(FORGERIES)),
    how=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 255)),
)
def test_a_log_holds_behind_any_cut_and_no_change_to_the_rest_goes_unseen(
    stream: str,
    version: int,
    forgery: str,
    how: tuple[int, int, int],
    original: Path,
    tmp_path: Path,
) -> None:
    database = copied(original, tmp_path / "any")
    asyncio.run(cut_at(database.parent, stream, version))
    report = examine(database.parent)
    assert report.holds, report
    assert report.findings[stream].removed == version

    try:
        done = FORGERIES[forgery](database, *how)
    except sqlite3.IntegrityError:
        done = False
    assume(done)

    assert not examine(database.parent).holds, forgery


@pytest.mark.parametrize("forgery", sorted(FORGERIES))
def test_each_forgery_is_found_at_least_once(forgery: str, home: Path) -> None:
    asyncio.run(cut_at(home, ENDED, 4))

    assert FORGERIES[forgery](home / DATABASE, 3, 5, 9)

    assert not examine(home).holds


async def test_a_cut_by_a_key_that_only_the_log_names_is_told_apart(
    home: Path, tmp_path: Path
) -> None:
    stranger = Keyring.open(tmp_path / "stranger")
    async with opened(place(home)) as events:
        engine = make_engine(events)
        await LocalDesk(engine, stranger, WallClock()).introduce()
        await engine.settle()
        trust = Trust(stranger, home / "keys", "olga", "our rule")
        keeper = Retention(events, SystemClock(), trust)
        for ending in await keeper.due(0):
            await keeper.prune(ending)

    told = await asyncio.to_thread(accord, "verify", "--data-dir", str(home))

    assert "records 1 to 16 were removed on " in told.out
    assert "keys that only the log itself names" in told.out


async def test_a_head_noted_of_what_was_removed_cannot_be_compared(home: Path) -> None:
    async with opened(place(home)) as events:
        rows = await events.read(ENDED)
        await cut_at(home, ENDED, 5)
        keys = await verify.gather(events, home / "keys")
        for version, holds in ((4, False), (5, True), (6, True)):
            mark = verify.Mark(version, rows[version - 1].hash.hex())
            found = await verify.check_stream(events, ENDED, keys, mark)
            assert found.holds is holds, (version, found)


# The command


def compact(home: Path, *words: str) -> Any:
    return accord("compact", "--data-dir", str(home), *words)


def test_the_command_says_what_it_would_do_does_it_and_verify_names_it(home: Path) -> None:
    would = compact(home, "--keep-ended", "0s", "--dry-run")
    assert would.code == 0, would
    assert "Would remove 16 records of 1 session." in would.out
    assert "removed on" not in accord("verify", "--data-dir", str(home)).out

    done = compact(home, "--keep-ended", "0s", "--reason", "three months")
    assert "Removed 16 records of 1 session." in done.out, done

    told = accord("verify", "--data-dir", str(home))
    assert told.code == 0, told
    assert "records 1 to 16 were removed on " in told.out
    assert "by olga (three months), signed" in told.out
    assert compact(home, "--keep-ended", "0s").out == "There is nothing to remove.\n"
    said = accord("session", "log", ROOMS[0], "--data-dir", str(home))
    assert (said.code, "removed by retention" in said.err) == (4, True), said
    number = re.search(r"more after number (\d+)", said.err)
    assert number is not None
    words = ("session", "log", ROOMS[0], "--data-dir", str(home), "--after", number[1], "--json")
    rest = accord(*words)
    assert (rest.code, json.loads(rest.out)["type"]) == (0, "session.end"), rest


def test_nothing_is_removed_unless_somebody_says_what(home: Path) -> None:
    assert compact(home).code == 2
    assert compact(home, "--keep-ended", "3650d").out == "There is nothing to remove.\n"
    running = compact(home, "--session", ROOMS[1])
    assert (running.code, "has not ended" in running.err) == (5, True)
    assert compact(home, "--session", "nobody").code == 4
    assert compact(home, "--session", ROOMS[0]).code == 0
    assert compact(home, "--session", ROOMS[0]).code == 5


async def test_the_file_becomes_smaller(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await an_ended_session(home, rounds=400)
    before = (home / DATABASE).stat().st_size

    ran = await asyncio.to_thread(compact, home, "--keep-ended", "0s", "--json")

    assert ran.json["bytes_freed"] > before // 4
    assert (home / DATABASE).stat().st_size < before * 3 // 4


KILLED = """
import os, signal, sys
from accord.stores.sqlite.pruning import Pruner
from accord.stores.sqlite import pruning
from accord.cli.main import main

pruning.BATCH = 8
left = int(sys.argv[1])

def counted(name):
    whole = getattr(Pruner, name)
    def wrapped(self, *args):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        done = whole(self, *args)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    setattr(Pruner, name, wrapped)

counted("keep")
counted("remove")
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.timeout(120)
def test_killed_anywhere_it_holds_and_the_next_one_finishes(original: Path, tmp_path: Path) -> None:
    codes = set()
    for moment in range(1, 20):
        home = copied(original, tmp_path / "killed").parent
        words = ["compact", "--keep-ended", "0s", "--data-dir", str(home)]
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(moment), *words],
            env=environment(),
            capture_output=True,
            check=False,
        )
        codes.add(ran.returncode)
        assert examine(home).holds, moment
        assert compact(home, "--keep-ended", "0s").code == 0
        report = examine(home)
        assert report.holds
        assert report.findings[ENDED].removed == 16
        assert ask(home / DATABASE, "SELECT count(*) FROM records WHERE stream = 2") == [(1,)]
        if ran.returncode == 0:
            break
    assert codes == {0, -signal.SIGKILL}
