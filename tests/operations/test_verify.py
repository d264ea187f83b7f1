"""The chain: whatever is done to stored rows is found, and where."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.data_dir import DATABASE_NAME, store_url_of
from accord.engine.workers import HeadSigner
from accord.identity.token_signing import Keyring
from accord.operations import verify
from accord.operations.local_log import open_existing_log
from accord.operations.verify import NotedHead
from accord.server.engine_factory import make_engine
from tests.helpers.stores.log_tampering import (
    execute_sql,
    flip_byte,
    forge_stream,
    query_database,
    stream_key,
    verify_home,
    verify_home_sync,
)
from tests.helpers.stores.sample_log import ROOM_IDS, build_log, copy_home, send_round

ROOM = f"room/{ROOM_IDS[0]}"


def test_intact_log_verifies_and_reports_its_signatures(original: Path) -> None:
    report = verify_home_sync(original)

    assert report.holds
    assert set(report.findings) == {"people/default", *(f"room/{room}" for room in ROOM_IDS)}
    for finding in report.findings.values():
        assert finding.signed == finding.version > 1
        assert finding.unsigned == 0
        assert finding.vouched


def test_head_hash_covers_the_whole_history(original: Path) -> None:
    expected = genesis_hash(ROOM)
    sql = "SELECT body FROM records JOIN streams ON key = stream WHERE name = ? ORDER BY version"
    for (body,) in query_database(original / DATABASE_NAME, sql, ROOM):
        expected = link_hash(expected, body)

    assert verify_home_sync(original).findings[ROOM].hash == expected.hex()


# Any change at all

Rows = list[tuple[Any, ...]]


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, int, int, int]:
    """What is done, to which row, at which byte, and how."""
    kind = draw(st.sampled_from(sorted(DAMAGES)))
    return kind, draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6)), draw(st.integers(1, 255))


def alter(table: str, key: str, column: str) -> Any:
    """Change one value of one row."""

    def do(database: Path, row: int, at: int, mask: int) -> bool:
        found = query_database(database, f"SELECT {key}, {column} FROM {table} ORDER BY {key}")  # noqa: S608
        number, value = found[row % len(found)]
        other = flip_byte(value, at, mask)
        sql = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"  # noqa: S608
        return other != value and execute_sql(database, sql, other, number) == 1

    return do


def delete(database: Path, row: int, at: int, mask: int) -> bool:
    positions = query_database(database, "SELECT pos FROM records ORDER BY pos")
    return (
        execute_sql(database, "DELETE FROM records WHERE pos = ?", *positions[row % len(positions)])
        == 1
    )


def truncate(database: Path, row: int, at: int, mask: int) -> bool:
    """Cut the end of one stream off."""
    streams = query_database(database, "SELECT stream, max(version) FROM records GROUP BY stream")
    stream, newest = streams[row % len(streams)]
    sql = "DELETE FROM records WHERE stream = ? AND version > ?"
    return execute_sql(database, sql, stream, at % newest) > 0


def cut_the_log(database: Path, row: int, at: int, mask: int) -> bool:
    """Cut the end of everything off."""
    ((newest,),) = query_database(database, "SELECT max(pos) FROM records")
    return execute_sql(database, "DELETE FROM records WHERE pos > ?", row % newest) > 0


def swap(columns: tuple[str, ...]) -> Any:
    """Let two rows change places, with or without their hashes."""

    def do(database: Path, row: int, at: int, mask: int) -> bool:
        found = query_database(database, "SELECT pos, id, body, hash FROM records ORDER BY pos")
        one, two = found[row % len(found)], found[at % len(found)]
        if one[0] == two[0]:
            return False
        names = ("pos", "id", "body", "hash")
        sets = ", ".join(f"{name} = ?" for name in columns)
        sql = f"UPDATE records SET {sets} WHERE pos = ?"  # noqa: S608
        values = [[each[names.index(name)] for name in columns] for each in (one, two)]
        execute_sql(database, "UPDATE records SET id = id || '?' WHERE pos = ?", one[0])
        execute_sql(database, sql, *values[0], two[0])
        execute_sql(database, sql, *values[1], one[0])
        if "id" not in columns:
            execute_sql(database, "UPDATE records SET id = ? WHERE pos = ?", one[1], one[0])
        return values[0] != values[1]

    return do


def insert(database: Path, row: int, at: int, mask: int) -> bool:
    """Put a forged record among the others, those behind it moved up by one."""
    found = query_database(database, "SELECT pos, stream, version, body FROM records ORDER BY pos")
    _, stream, version, body = found[row % len(found)]
    later = "SELECT pos FROM records WHERE stream = ? AND version >= ? ORDER BY version DESC"
    for (pos,) in query_database(database, later, stream, version):
        execute_sql(database, "UPDATE records SET version = version + 1 WHERE pos = ?", pos)
    before = query_database(
        database, "SELECT hash FROM records WHERE stream = ? AND version = ?", stream, version - 1
    )
    ((name,),) = query_database(database, "SELECT name FROM streams WHERE key = ?", stream)
    forged = link_hash(before[0][0] if before else genesis_hash(name), body)
    sql = "INSERT INTO records (stream, version, id, body, hash) VALUES (?, ?, ?, ?, ?)"
    return execute_sql(database, sql, stream, version, f"forged-{mask}", body, forged) == 1


def forget_a_stream(database: Path, row: int, at: int, mask: int) -> bool:
    streams = query_database(database, "SELECT key FROM streams ORDER BY key")
    return (
        execute_sql(database, "DELETE FROM streams WHERE key = ?", *streams[row % len(streams)])
        == 1
    )


DAMAGES: dict[str, Any] = {
    **{f"records.{name}": alter("records", "pos", name) for name in ("body", "hash", "id")},
    **{f"records.{name}": alter("records", "pos", name) for name in ("version", "stream")},
    **{
        f"heads.{name}": alter("heads", "place", name)
        for name in ("stream", "version", "hash", "at", "key", "signature", "total")
    },
    "streams.name": alter("streams", "key", "name"),
    "delete": delete,
    "truncate": truncate,
    "cut the log": cut_the_log,
    "swap bodies": swap(("body",)),
    "swap bodies and hashes": swap(("body", "hash")),
    "swap all": swap(("id", "body", "hash")),
    "insert": insert,
    "forget a stream": forget_a_stream,
}


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(damage=damages())
def test_any_change_of_a_stored_row_is_found(
    damage: tuple[str, int, int, int], original: Path, tmp_path: Path
) -> None:
    kind, row, at, mask = damage
    database = copy_home(original, tmp_path / "damaged")
    try:
        done = DAMAGES[kind](database, row, at, mask)
    except sqlite3.IntegrityError:  # two rows cannot have one place: SQLite itself says no
        done = False
    assume(done)

    assert not verify_home_sync(database.parent).holds, kind


@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_every_kind_of_damage_was_tried(kind: str, home: Path) -> None:
    assert DAMAGES[kind](home / DATABASE_NAME, 4, 7, 100)

    assert not verify_home_sync(home).holds


# What is said of it


# What is done to a room whose fifth record is a prompt, and what is said of which record.
EDIT = """
    UPDATE records SET body = CAST(replace(body, 'Number', 'Member') AS BLOB)
    WHERE stream = ? AND version = 5
"""
STORIES = {
    "edited": (
        EDIT,
        5,
        "does not follow from the one before it",
    ),
    "dropped": ("DELETE FROM records WHERE stream = ? AND version = 4", 4, "is missing"),
    "renamed": (
        "UPDATE records SET id = 'another' WHERE stream = ? AND version = 5",
        5,
        "is stored under the id another, but has the id r1-prompt-0",
    ),
    "cut off": (
        "DELETE FROM records WHERE stream = ? AND version > 5",
        6,
        "is missing: the log once reached 13",
    ),
}


@pytest.mark.parametrize(("sql", "where", "what"), STORIES.values(), ids=STORIES)
def test_report_names_the_first_bad_record(sql: str, where: int, what: str, home: Path) -> None:
    database = home / DATABASE_NAME
    assert execute_sql(database, sql, stream_key(database, ROOM)) > 0

    finding = verify_home_sync(home).findings[ROOM]

    assert finding.bad_version == where
    assert finding.problem == what
    assert finding.version == where - 1


def test_rewritten_end_does_not_match_its_signature(home: Path) -> None:
    """Whoever edits a record and mends all hashes behind it still has no key."""
    forge_stream(home / DATABASE_NAME, ROOM)

    finding = verify_home_sync(home).findings[ROOM]

    assert finding.problem == "differs from what was signed"


def test_signature_of_an_unknown_key_is_reported(home: Path, tmp_path: Path) -> None:
    stranger = Keyring.open(tmp_path / "stranger")
    kid, signature = stranger.sign(b"anything")
    execute_sql(home / DATABASE_NAME, "UPDATE heads SET key = ?, signature = ?", kid, signature)

    finding = verify_home_sync(home).findings[ROOM]

    assert "the unknown key" in str(finding.problem)


async def test_unsigned_newest_records_are_not_a_fault(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await build_log(home, signed=False)

    report = await verify_home(home)

    assert report.holds
    assert report.findings[ROOM].signed == 0
    assert report.findings[ROOM].unsigned == report.findings[ROOM].version


# Signatures that are taken away


async def more(home: Path, turn: int, *, uncounted: bool = False) -> None:
    """Something is said in another room, and signed."""
    async with open_existing_log(store_url_of(home)) as events:
        engine = make_engine(events)
        await send_round(engine, ROOM_IDS[1], turn)
        await engine.wait_until_idle()
        engine.scheduler.stop()
        signer = HeadSigner(events, Keyring.open(home / "keys"), engine.clock)
        stream = f"room/{ROOM_IDS[1]}"
        newest = (await events.streams())[stream]
        (row,) = await events.read(stream, newest - 1)
        if uncounted:
            await events.add_head(signer.head(row, 0))
        else:
            await signer.sign(row)


async def test_deleted_signatures_of_a_stream_are_found(home: Path) -> None:
    forge_stream(home / DATABASE_NAME, ROOM)
    assert execute_sql(home / DATABASE_NAME, "DELETE FROM heads WHERE stream = ?", ROOM) == 3

    report = await verify_home(home)

    assert report.findings[ROOM].signed == 0
    assert report.damage == [GONE.format(13)]


async def test_deleted_newest_signature_is_found(home: Path) -> None:
    newest = "DELETE FROM heads WHERE place = (SELECT max(place) FROM heads WHERE stream = ?)"
    assert execute_sql(home / DATABASE_NAME, newest, ROOM) == 1

    report = await verify_home(home)

    assert report.findings[ROOM].unsigned == 3
    assert report.damage == [GONE.format(3)]


async def test_deleted_signature_is_found_after_later_ones(home: Path) -> None:
    forge_stream(home / DATABASE_NAME, ROOM)
    execute_sql(home / DATABASE_NAME, "DELETE FROM heads WHERE stream = ?", ROOM)
    for turn in range(3, 20):
        await more(home, turn)

    report = await verify_home(home)

    assert report.findings[f"room/{ROOM_IDS[1]}"].version > 2 * 13
    assert report.damage == [GONE.format(13)]


GONE = "{} records were signed, but the signatures are missing; check the records shown as unsigned"


async def test_unsigned_new_stream_beside_signed_ones_is_not_a_fault(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        engine = make_engine(events)
        await send_round(engine, "young", 0)
        await engine.wait_until_idle()
        engine.scheduler.stop()

    report = await verify_home(home)

    assert report.holds
    assert report.findings["room/young"].signed == 0


async def test_signatures_without_a_count_still_verify(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await build_log(home, signed=False)
    for turn in range(3, 6):
        await more(home, turn, uncounted=True)
    assert (await verify_home(home)).holds
    assert (await signatures(home)).uncounted

    await more(home, 6)

    assert (await verify_home(home)).holds
    found = await signatures(home)
    assert (found.counted, found.uncounted) == (True, False)
    assert execute_sql(home / DATABASE_NAME, "UPDATE heads SET total = 0 WHERE total > 0") == 1
    assert not (await verify_home(home)).holds, "nobody can pass a counted one off as an old one"


async def signatures(home: Path) -> verify.SignatureReport:
    async with open_existing_log(store_url_of(home)) as events:
        return await verify.check_signatures(events, await verify.load_keys(events, home / "keys"))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE heads SET total = total + 1000 WHERE place = 1",
        "UPDATE heads SET total = 'many', hash = 'none' WHERE place = 1",
        "UPDATE heads SET total = 'many', signature = 'none' WHERE place = 1",
    ],
)
def test_forged_signature_count_is_reported(sql: str, home: Path) -> None:
    assert execute_sql(home / DATABASE_NAME, sql) == 1

    assert verify_home_sync(home).damage


async def test_keys_known_only_to_the_log_verify_but_are_not_vouched(
    home: Path,
) -> None:
    for file in (home / "keys").iterdir():
        file.unlink()

    report = await verify_home(home)

    assert report.holds
    assert report.findings[ROOM].signed
    assert not report.findings[ROOM].vouched


async def test_noted_head_is_compared(home: Path) -> None:
    async with open_existing_log(store_url_of(home)) as events:
        keys = await verify.load_keys(events, home / "keys")
        rows = await events.read(ROOM)
        noted = NotedHead(rows[2].version, rows[2].hash.hex())

        same = await verify.check_stream(events, ROOM, keys, noted)
        other = await verify.check_stream(events, ROOM, keys, NotedHead(3, "00" * 32))
        beyond = await verify.check_stream(events, ROOM, keys, NotedHead(1000, noted.hash))

    assert same.holds
    assert (other.bad_version, other.problem) == (3, "differs from the head you noted")
    assert "once reached 1000" in str(beyond.problem)
