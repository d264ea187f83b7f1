"""Retention: removed records are named and signed; any other loss or change is found."""

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

from accord.core import room as rooms
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.data_dir import DATABASE_NAME, store_url_of
from accord.engine.ports import Conflict, StoreError
from accord.engine.scheduling import SystemClock, WallClock
from accord.engine.streams.snapshots import encode_cut_state, position_after_cut
from accord.engine.workers import HeadSigner
from accord.identity.keyring import Keyring
from accord.identity.token_service import TokenService
from accord.operations import verify
from accord.operations.local_log import LocalSessions, open_existing_log
from accord.operations.retention import EndedSession, PruneAuthority, Retention
from accord.server.engine_factory import make_engine
from accord.stores.sqlite import SqliteLog
from accord.transports.http.session_index import SessionIndex
from tests.helpers.clients.cli import clean_environment, run_accord
from tests.helpers.room.scenario import ALICE, T0, session_end
from tests.helpers.stores.log_tampering import (
    execute_sql,
    flip_byte,
    query_database,
    stream_key,
    verify_home_sync,
)
from tests.helpers.stores.sample_log import ROOM_IDS, LogBuilder, build_log, copy_home, sign_all

ENDED, OPEN = (f"room/{room}" for room in ROOM_IDS)
WORDS = b"Number 1"


async def an_ended_session(home: Path, rounds: int = 3) -> None:
    """Two rooms, and the first of them is over."""
    await build_log(home, rounds=rounds)
    async with open_existing_log(store_url_of(home)) as events:
        engine = make_engine(events)
        message = Message("r1-end", to_iso(T0), ROOM_IDS[0], ALICE.principal, session_end())
        await engine.handle(message, ALICE)
        await engine.wait_until_idle()
        engine.scheduler.stop()
        await sign_all(events, HeadSigner(events, Keyring(home / "keys"), engine.clock))


@pytest.fixture(scope="module")
def story() -> LogBuilder:
    return an_ended_session


def retention(events: Any, home: Path) -> Retention:
    keys = home / "keys"
    return Retention(
        events, SystemClock(), PruneAuthority(Keyring.open(keys), keys, "olga", "our rule")
    )


async def prune_all(home: Path) -> list[EndedSession]:
    async with open_existing_log(store_url_of(home)) as events:
        keeper = retention(events, home)
        due = await keeper.due_sessions(0)
        for ending in due:
            await keeper.prune(ending)
        assert await keeper.due_sessions(0) == []
    return due


# What is removed


async def test_pruned_log_still_verifies(home: Path) -> None:
    before = await asyncio.to_thread(verify_home_sync, home)
    (ending,) = await prune_all(home)

    report = await asyncio.to_thread(verify_home_sync, home)

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


async def test_pruned_content_is_gone_from_the_file(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        (row,) = [r for r in await events.read(ENDED) if WORDS in r.body][:1]
    assert row.id.encode() in (home / DATABASE_NAME).read_bytes()

    await prune_all(home)

    assert row.id.encode() not in (home / DATABASE_NAME).read_bytes()
    assert query_database(
        home / DATABASE_NAME, "SELECT count(*) FROM snapshots WHERE stream = ?", ENDED
    ) == [(0,)]


async def test_pruned_session_keeps_its_summary_and_refuses_its_messages(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        before = await LocalSessions(events).detail(ROOM_IDS[0])
    await prune_all(home)

    async with open_existing_log(store_url_of(home)) as events:
        after = await LocalSessions(events).detail(ROOM_IDS[0])
        with pytest.raises(Refused, match="removed by retention") as refusal:
            _ = [each async for each in LocalSessions(events).transcript(ROOM_IDS[0])]
        there = (refusal.value.details or {})["after"]
        rest = [each["type"] async for each in LocalSessions(events).transcript(ROOM_IDS[0], there)]
        engine = make_engine(events)
        again = await engine.state(ENDED)
        with pytest.raises(Refused) as late:
            await engine.handle(
                Message("x", to_iso(T0), ROOM_IDS[0], ALICE.principal, session_end()), ALICE
            )
        await engine.wait_until_idle()

    assert refusal.value.reason is Reason.REMOVED
    assert rest == ["session.end"]
    same = ("id", "name", "status", "created_at", "created_by", "members", "config")
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert (again.ended, again.shelf, again.exists) == ("completed", {}, True)
    assert late.value.reason is Reason.ENDED


async def test_open_session_is_not_pruned(home: Path) -> None:
    ((count,),) = query_database(home / DATABASE_NAME, "SELECT count(*) FROM records")
    (ending,) = await prune_all(home)

    async with open_existing_log(store_url_of(home)) as events:
        assert await retention(events, home).find_end(OPEN, (await events.streams())[OPEN]) is None
        assert (await events.read(OPEN))[0].version == 1
    assert query_database(home / DATABASE_NAME, "SELECT count(*) FROM records") == [
        (count - ending.version + 1,)
    ]


async def test_damaged_session_is_not_pruned(home: Path) -> None:
    """Otherwise a removal would hide that somebody had changed the past."""
    sql = "UPDATE records SET body = CAST(replace(body, 'Number 1', 'Number 7') AS BLOB)"
    execute_sql(home / DATABASE_NAME, sql)

    with pytest.raises(Refused, match="failed verification"):
        await prune_all(home)

    assert query_database(home / DATABASE_NAME, "SELECT count(*) FROM cuts") == [(0,)]


async def test_cut_that_does_not_match_the_log_is_refused(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        assert isinstance(events, SqliteLog)
        with pytest.raises(Conflict):
            await events.prune(RetentionCut(ENDED, 3, b"another", 0, "", "", b"", "", b""))


def test_unknown_cut_state_is_refused() -> None:
    good = RetentionCut(
        "room/x",
        3,
        b"h",
        0,
        "",
        "",
        encode_cut_state(rooms.CONTEXT.initial_state("room/x"), 2, 1),
        "",
    )

    assert position_after_cut(rooms.CONTEXT, good).seq == 2
    with pytest.raises(StoreError, match="cannot be read"):
        position_after_cut(rooms.CONTEXT, replace(good, state=b"\x93\xc0\x01\x01"))


# Any log, any cut, any change


async def cut_at(home: Path, stream: str, version: int) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        assert isinstance(events, SqliteLog)
        (row,) = await events.read(stream, version - 1, 1)
        kid, key = Keyring(home / "keys").signer()
        cut = RetentionCut(stream, version, row.hash, T0, "olga", "rule", b"state", kid)
        await events.prune(replace(cut, signature=key.sign(cut.signed_bytes())))


async def test_pruned_signatures_are_not_reported_missing(home: Path) -> None:
    """Even where nothing before the cut's end was signed, so that no head is left."""
    version = (await asyncio.to_thread(verify_home_sync, home)).findings[ENDED].version
    execute_sql(home / DATABASE_NAME, "DELETE FROM heads WHERE version > 5 OR stream <> ?", ENDED)
    await cut_at(home, ENDED, version - 1)
    assert query_database(home / DATABASE_NAME, "SELECT count(*) FROM heads") == [(0,)]

    async with open_existing_log(store_url_of(home)) as events:
        await sign_all(events, HeadSigner(events, Keyring(home / "keys"), SystemClock()))

    report = await asyncio.to_thread(verify_home_sync, home)
    assert report.holds, report
    assert (
        execute_sql(home / DATABASE_NAME, "DELETE FROM heads WHERE stream = ?", "people/default")
        == 1
    )
    assert not (await asyncio.to_thread(verify_home_sync, home)).holds


COLUMNS = ("version", "hash", "at", "by", "reason", "state", "key", "signature", "stream")


def change_a_cut(database: Path, which: int, at: int, mask: int) -> bool:
    column = COLUMNS[which % len(COLUMNS)]
    ((value,),) = query_database(database, f"SELECT {column} FROM cuts")  # noqa: S608 - our own names
    return execute_sql(database, f"UPDATE cuts SET {column} = ?", flip_byte(value, at, mask)) == 1  # noqa: S608


def change_a_row(database: Path, which: int, at: int, mask: int) -> bool:
    found = query_database(database, "SELECT pos, body FROM records ORDER BY pos")
    pos, body = found[which % len(found)]
    return (
        execute_sql(
            database, "UPDATE records SET body = ? WHERE pos = ?", flip_byte(body, at, mask), pos
        )
        == 1
    )


def drop_a_row(database: Path, which: int, at: int, mask: int) -> bool:
    found = query_database(database, "SELECT pos FROM records ORDER BY pos")
    return (
        execute_sql(database, "DELETE FROM records WHERE pos = ?", *found[which % len(found)]) == 1
    )


def drop_the_cut(database: Path, which: int, at: int, mask: int) -> bool:
    return execute_sql(database, "DELETE FROM cuts") == 1


def cut_further(database: Path, which: int, at: int, mask: int) -> bool:
    """Remove a few more rows, and let the cut say so; without the key."""
    ((stream, version),) = query_database(database, "SELECT stream, version FROM cuts")
    sql = """
        SELECT r.version, r.hash FROM records r JOIN streams s ON s.key = r.stream
        WHERE s.name = ? AND r.version > ?
    """
    rows = query_database(database, sql, stream, version)
    if len(rows) < 2:
        return False
    last, hash_ = rows[which % (len(rows) - 1)]
    gone = "DELETE FROM records WHERE version <= ? AND stream = ?"
    execute_sql(database, gone, last, stream_key(database, stream))
    return execute_sql(database, "UPDATE cuts SET version = ?, hash = ?", last, hash_) == 1


def borrow_the_cut(database: Path, which: int, at: int, mask: int) -> bool:
    """Use the signed cut of one stream for another."""
    ((stream,),) = query_database(database, "SELECT stream FROM cuts")
    other = OPEN if stream == ENDED else ENDED
    return execute_sql(database, "UPDATE cuts SET stream = ?", other) == 1


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
def test_any_cut_verifies_and_any_later_change_is_found(
    stream: str,
    version: int,
    forgery: str,
    how: tuple[int, int, int],
    original: Path,
    tmp_path: Path,
) -> None:
    database = copy_home(original, tmp_path / "any")
    asyncio.run(cut_at(database.parent, stream, version))
    report = verify_home_sync(database.parent)
    assert report.holds, report
    assert report.findings[stream].removed == version

    try:
        done = FORGERIES[forgery](database, *how)
    except sqlite3.IntegrityError:
        done = False
    assume(done)

    assert not verify_home_sync(database.parent).holds, forgery


@pytest.mark.parametrize("forgery", sorted(FORGERIES))
def test_every_kind_of_forgery_was_tried(forgery: str, home: Path) -> None:
    asyncio.run(cut_at(home, ENDED, 4))

    assert FORGERIES[forgery](home / DATABASE_NAME, 3, 5, 9)

    assert not verify_home_sync(home).holds


async def test_cut_signed_by_a_key_known_only_to_the_log_is_not_vouched(
    home: Path, tmp_path: Path
) -> None:
    stranger = Keyring.open(tmp_path / "stranger")
    async with open_existing_log(store_url_of(home)) as events:
        engine = make_engine(events)
        sessions_of = SessionIndex(engine).sessions_of
        await TokenService(engine, stranger, WallClock(), sessions_of).record_active_key()
        await engine.wait_until_idle()
        trust = PruneAuthority(stranger, home / "keys", "olga", "our rule")
        keeper = Retention(events, SystemClock(), trust)
        for ending in await keeper.due_sessions(0):
            await keeper.prune(ending)

    told = await asyncio.to_thread(run_accord, "verify", "--data-dir", str(home))

    assert "records 1 to 16 were removed on " in told.out
    assert "keys that only the log itself contains" in told.out


async def test_noted_head_of_removed_records_cannot_be_compared(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        rows = await events.read(ENDED)
        await cut_at(home, ENDED, 5)
        keys = await verify.load_keys(events, home / "keys")
        for version, holds in ((4, False), (5, True), (6, True)):
            mark = verify.NotedHead(version, rows[version - 1].hash.hex())
            found = await verify.check_stream(events, ENDED, keys, mark)
            assert found.holds is holds, (version, found)


# The command


def compact(home: Path, *words: str) -> Any:
    return run_accord("compact", "--data-dir", str(home), *words)


def test_prune_command_previews_prunes_and_verify_reports_it(home: Path) -> None:
    would = compact(home, "--keep-ended", "0s", "--dry-run")
    assert would.code == 0, would
    assert "Would remove 16 records of 1 session." in would.out
    assert "removed on" not in run_accord("verify", "--data-dir", str(home)).out

    done = compact(home, "--keep-ended", "0s", "--reason", "three months")
    assert "Removed 16 records of 1 session." in done.out, done

    told = run_accord("verify", "--data-dir", str(home))
    assert told.code == 0, told
    assert "records 1 to 16 were removed on " in told.out
    assert "by olga (three months), signed" in told.out
    assert compact(home, "--keep-ended", "0s").out == "Nothing to remove.\n"
    said = run_accord("session", "log", ROOM_IDS[0], "--data-dir", str(home))
    assert (said.code, "removed by retention" in said.err) == (4, True), said
    number = re.search(r"read on after number (\d+)", said.err)
    assert number is not None
    words = ("session", "log", ROOM_IDS[0], "--data-dir", str(home), "--after", number[1], "--json")
    rest = run_accord(*words)
    assert (rest.code, json.loads(rest.out)["type"]) == (0, "session.end"), rest


def test_prune_command_requires_a_selection(home: Path) -> None:
    assert compact(home).code == 2
    assert compact(home, "--keep-ended", "3650d").out == "Nothing to remove.\n"
    running = compact(home, "--session", ROOM_IDS[1])
    assert (running.code, "has not ended" in running.err) == (5, True)
    assert compact(home, "--session", "nobody").code == 4
    assert compact(home, "--session", ROOM_IDS[0]).code == 0
    assert compact(home, "--session", ROOM_IDS[0]).code == 5


async def test_shrink_reduces_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await an_ended_session(home, rounds=400)
    before = (home / DATABASE_NAME).stat().st_size

    ran = await asyncio.to_thread(compact, home, "--keep-ended", "0s", "--json")

    assert ran.json["bytes_freed"] > before // 4
    assert (home / DATABASE_NAME).stat().st_size < before * 3 // 4


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
def test_prune_killed_anywhere_verifies_and_is_completed_later(
    original: Path, tmp_path: Path
) -> None:
    codes = set()
    for moment in range(1, 20):
        home = copy_home(original, tmp_path / "killed").parent
        words = ["compact", "--keep-ended", "0s", "--data-dir", str(home)]
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(moment), *words],
            env=clean_environment(),
            capture_output=True,
            check=False,
        )
        codes.add(ran.returncode)
        assert verify_home_sync(home).holds, moment
        assert compact(home, "--keep-ended", "0s").code == 0
        report = verify_home_sync(home)
        assert report.holds
        assert report.findings[ENDED].removed == 16
        assert query_database(
            home / DATABASE_NAME, "SELECT count(*) FROM records WHERE stream = 2"
        ) == [(1,)]
        if ran.returncode == 0:
            break
    assert codes == {0, -signal.SIGKILL}
