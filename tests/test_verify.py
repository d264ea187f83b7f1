"""The chain: whatever is done to stored rows is found, and where."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from accord import verify
from accord.app import make_engine
from accord.core.kernel.chain import genesis, link
from accord.engine.heads import HeadSigner
from accord.home import DATABASE, place
from accord.reading import opened
from accord.transports.identity import Keyring
from accord.verify import Mark
from tests.helpers.damage import ask, change, examine, examined, flipped, key_of, rewritten
from tests.helpers.log import ROOMS, a_log, copied, say_in

ROOM = f"room/{ROOMS[0]}"


def test_an_honest_log_holds_and_says_how_far_it_is_signed(original: Path) -> None:
    report = examine(original)

    assert report.holds
    assert set(report.findings) == {"people/default", *(f"room/{room}" for room in ROOMS)}
    for finding in report.findings.values():
        assert finding.signed == finding.version > 1
        assert finding.unsigned == 0
        assert finding.vouched


def test_the_hash_is_that_of_the_whole_history(original: Path) -> None:
    expected = genesis(ROOM)
    sql = "SELECT body FROM records JOIN streams ON key = stream WHERE name = ? ORDER BY version"
    for (body,) in ask(original / DATABASE, sql, ROOM):
        expected = link(expected, body)

    assert examine(original).findings[ROOM].hash == expected.hex()


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
        found = ask(database, f"SELECT {key}, {column} FROM {table} ORDER BY {key}")  # noqa: S608
        number, value = found[row % len(found)]
        other = flipped(value, at, mask)
        sql = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"  # noqa: S608
        return other != value and change(database, sql, other, number) == 1

    return do


def delete(database: Path, row: int, at: int, mask: int) -> bool:
    positions = ask(database, "SELECT pos FROM records ORDER BY pos")
    return (
        change(database, "DELETE FROM records WHERE pos = ?", *positions[row % len(positions)]) == 1
    )


def truncate(database: Path, row: int, at: int, mask: int) -> bool:
    """Cut the end of one stream off."""
    streams = ask(database, "SELECT stream, max(version) FROM records GROUP BY stream")
    stream, newest = streams[row % len(streams)]
    sql = "DELETE FROM records WHERE stream = ? AND version > ?"
    return change(database, sql, stream, at % newest) > 0


def cut_the_log(database: Path, row: int, at: int, mask: int) -> bool:
    """Cut the end of everything off."""
    ((newest,),) = ask(database, "SELECT max(pos) FROM records")
    return change(database, "DELETE FROM records WHERE pos > ?", row % newest) > 0


def swap(columns: tuple[str, ...]) -> Any:
    """Let two rows change places, with or without their hashes."""

    def do(database: Path, row: int, at: int, mask: int) -> bool:
        found = ask(database, "SELECT pos, id, body, hash FROM records ORDER BY pos")
        one, two = found[row % len(found)], found[at % len(found)]
        if one[0] == two[0]:
            return False
        names = ("pos", "id", "body", "hash")
        sets = ", ".join(f"{name} = ?" for name in columns)
        sql = f"UPDATE records SET {sets} WHERE pos = ?"  # noqa: S608
        values = [[each[names.index(name)] for name in columns] for each in (one, two)]
        change(database, "UPDATE records SET id = id || '?' WHERE pos = ?", one[0])
        change(database, sql, *values[0], two[0])
        change(database, sql, *values[1], one[0])
        if "id" not in columns:
            change(database, "UPDATE records SET id = ? WHERE pos = ?", one[1], one[0])
        return values[0] != values[1]

    return do


def insert(database: Path, row: int, at: int, mask: int) -> bool:
    """Put a forged record among the others, those behind it moved up by one."""
    found = ask(database, "SELECT pos, stream, version, body FROM records ORDER BY pos")
    _, stream, version, body = found[row % len(found)]
    later = "SELECT pos FROM records WHERE stream = ? AND version >= ? ORDER BY version DESC"
    for (pos,) in ask(database, later, stream, version):
        change(database, "UPDATE records SET version = version + 1 WHERE pos = ?", pos)
    before = ask(
        database, "SELECT hash FROM records WHERE stream = ? AND version = ?", stream, version - 1
    )
    ((name,),) = ask(database, "SELECT name FROM streams WHERE key = ?", stream)
    forged = link(before[0][0] if before else genesis(name), body)
    sql = "INSERT INTO records (stream, version, id, body, hash) VALUES (?, ?, ?, ?, ?)"
    return change(database, sql, stream, version, f"forged-{mask}", body, forged) == 1


def forget_a_stream(database: Path, row: int, at: int, mask: int) -> bool:
    streams = ask(database, "SELECT key FROM streams ORDER BY key")
    return change(database, "DELETE FROM streams WHERE key = ?", *streams[row % len(streams)]) == 1


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
def test_any_change_of_any_stored_row_is_found(
    damage: tuple[str, int, int, int], original: Path, tmp_path: Path
) -> None:
    kind, row, at, mask = damage
    database = copied(original, tmp_path / "damaged")
    try:
        done = DAMAGES[kind](database, row, at, mask)
    except sqlite3.IntegrityError:  # two rows cannot have one place: SQLite itself says no
        done = False
    assume(done)

    assert not examine(database.parent).holds, kind


@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_each_kind_of_damage_is_found_at_least_once(kind: str, home: Path) -> None:
    assert DAMAGES[kind](home / DATABASE, 4, 7, 100)

    assert not examine(home).holds


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
        "is filed as another, but it is r1-prompt-0",
    ),
    "cut off": (
        "DELETE FROM records WHERE stream = ? AND version > 5",
        6,
        "is missing: the log once reached 13",
    ),
}


@pytest.mark.parametrize(("sql", "where", "what"), STORIES.values(), ids=STORIES)
def test_the_first_bad_record_is_named(sql: str, where: int, what: str, home: Path) -> None:
    database = home / DATABASE
    assert change(database, sql, key_of(database, ROOM)) > 0

    finding = examine(home).findings[ROOM]

    assert finding.bad_version == where
    assert finding.problem == what
    assert finding.version == where - 1


def test_a_rewritten_end_is_not_what_was_signed(home: Path) -> None:
    """Whoever edits a record and mends all hashes behind it still has no key."""
    rewritten(home / DATABASE, ROOM)

    finding = examine(home).findings[ROOM]

    assert finding.problem == "is not what was signed"


def test_a_signature_of_another_key_is_no_signature(home: Path, tmp_path: Path) -> None:
    stranger = Keyring.open(tmp_path / "stranger")
    kid, signature = stranger.sign(b"anything")
    change(home / DATABASE, "UPDATE heads SET key = ?, signature = ?", kid, signature)

    finding = examine(home).findings[ROOM]

    assert "a key that nobody knows" in str(finding.problem)


async def test_what_is_not_signed_yet_is_no_fault(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await a_log(home, signed=False)

    report = await examined(home)

    assert report.holds
    assert report.findings[ROOM].signed == 0
    assert report.findings[ROOM].unsigned == report.findings[ROOM].version


# Signatures that are taken away


async def more(home: Path, turn: int, *, uncounted: bool = False) -> None:
    """Something is said in another room, and signed."""
    async with opened(place(home)) as events:
        engine = make_engine(events)
        await say_in(engine, ROOMS[1], turn)
        await engine.settle()
        engine.scheduler.stop()
        signer = HeadSigner(events, Keyring.open(home / "keys"), engine.clock)
        stream = f"room/{ROOMS[1]}"
        newest = (await events.streams())[stream]
        (row,) = await events.read(stream, newest - 1)
        if uncounted:
            await events.sign(signer.head(row, 0))
        else:
            await signer.sign(row)


async def test_a_room_whose_signatures_were_taken_is_no_young_one(home: Path) -> None:
    rewritten(home / DATABASE, ROOM)
    assert change(home / DATABASE, "DELETE FROM heads WHERE stream = ?", ROOM) == 3

    report = await examined(home)

    assert report.findings[ROOM].signed == 0
    assert report.damage == [GONE.format(13)]


async def test_the_newest_signature_of_a_room_cannot_be_taken_alone(home: Path) -> None:
    newest = "DELETE FROM heads WHERE place = (SELECT max(place) FROM heads WHERE stream = ?)"
    assert change(home / DATABASE, newest, ROOM) == 1

    report = await examined(home)

    assert report.findings[ROOM].unsigned == 3
    assert report.damage == [GONE.format(3)]


async def test_what_was_taken_is_not_made_up_for_by_what_is_signed_later(home: Path) -> None:
    rewritten(home / DATABASE, ROOM)
    change(home / DATABASE, "DELETE FROM heads WHERE stream = ?", ROOM)
    for turn in range(3, 20):
        await more(home, turn)

    report = await examined(home)

    assert report.findings[f"room/{ROOMS[1]}"].version > 2 * 13
    assert report.damage == [GONE.format(13)]


GONE = "{} records were signed once, and the signatures are gone; look at what is not yet signed"


async def test_a_young_room_beside_signed_ones_is_no_fault(home: Path) -> None:
    async with opened(place(home)) as events:
        engine = make_engine(events)
        await say_in(engine, "young", 0)
        await engine.settle()
        engine.scheduler.stop()

    report = await examined(home)

    assert report.holds
    assert report.findings["room/young"].signed == 0


async def test_signatures_from_before_they_were_counted_still_hold(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await a_log(home, signed=False)
    for turn in range(3, 6):
        await more(home, turn, uncounted=True)
    assert (await examined(home)).holds
    assert (await signatures(home)).uncounted

    await more(home, 6)

    assert (await examined(home)).holds
    found = await signatures(home)
    assert (found.counted, found.uncounted) == (True, False)
    assert change(home / DATABASE, "UPDATE heads SET total = 0 WHERE total > 0") == 1
    assert not (await examined(home)).holds, "nobody can pass a counted one off as an old one"


async def signatures(home: Path) -> verify.Signatures:
    async with opened(place(home)) as events:
        return await verify.check_signatures(events, await verify.gather(events, home / "keys"))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE heads SET total = total + 1000 WHERE place = 1",
        "UPDATE heads SET total = 'many', hash = 'none' WHERE place = 1",
        "UPDATE heads SET total = 'many', signature = 'none' WHERE place = 1",
    ],
)
def test_a_count_that_is_not_genuine_counts_nothing(sql: str, home: Path) -> None:
    assert change(home / DATABASE, sql) == 1

    assert examine(home).damage


async def test_without_the_key_files_the_log_s_own_word_counts_and_is_told_apart(
    home: Path,
) -> None:
    for file in (home / "keys").iterdir():
        file.unlink()

    report = await examined(home)

    assert report.holds
    assert report.findings[ROOM].signed
    assert not report.findings[ROOM].vouched


async def test_a_head_noted_earlier_is_compared(home: Path) -> None:
    async with opened(place(home)) as events:
        keys = await verify.gather(events, home / "keys")
        rows = await events.read(ROOM)
        noted = Mark(rows[2].version, rows[2].hash.hex())

        same = await verify.check_stream(events, ROOM, keys, noted)
        other = await verify.check_stream(events, ROOM, keys, Mark(3, "00" * 32))
        beyond = await verify.check_stream(events, ROOM, keys, Mark(1000, noted.hash))

    assert same.holds
    assert (other.bad_version, other.problem) == (3, "is not the one that was noted")
    assert "once reached 1000" in str(beyond.problem)
