"""One ledger on disk: read when it changed, and never written to."""

import os
from pathlib import Path

import pytest

from accord.core.dialects import pactmirror
from accord.core.kernel.limits import MIB
from accord.core.work.mirror import key_of
from accord.mirror import place as places
from accord.mirror import reading
from accord.mirror.place import Place
from tests.core.work.story import BOB, line, log
from tests.mirror.scene import ACCEPTED, ASSIGN, INIT, MERGED, SHOWN, Ledger, ids


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact")


def looked(ledger: Ledger) -> Place:
    place = Place(str(ledger.directory))
    place.read()
    while place.more:
        place.read()
    return place


def held(place: Place) -> list[str]:
    return list(place.held.known)


def keys(*events: dict[str, object]) -> list[str]:
    return [key_of(id) for id in ids(*events)]


def test_what_was_appended_is_seen(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))
    assert not place.changed()

    ledger.add(ASSIGN)

    assert place.changed()
    place.read()
    assert len(place.held.known) == 2
    assert not place.changed()


def test_another_file_in_its_place_is_read_anew(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT, ASSIGN))

    ledger.write(ASSIGN, SHOWN, INIT)
    place.read()

    assert held(place) == keys(ASSIGN, SHOWN, INIT)


def test_another_file_that_begins_with_all_of_it_is_read_from_there(ledger: Ledger) -> None:
    """Git writes files anew, also where lines only came behind the others."""
    place = looked(ledger.add(INIT, ASSIGN))
    place.anew = False
    before = ledger.path.stat().st_ino

    part = ledger.path.with_name("part")
    part.write_bytes(log(INIT, ASSIGN, SHOWN))
    part.replace(ledger.path)
    assert ledger.path.stat().st_ino != before
    found = place.read()

    assert [each.key for each in found] == keys(SHOWN)
    assert (place.anew, held(place)) == (False, keys(INIT, ASSIGN, SHOWN))
    part.write_bytes(log(INIT, SHOWN, ASSIGN, ACCEPTED))
    part.replace(ledger.path)
    place.read()
    assert (place.anew, held(place)) == (True, keys(INIT, SHOWN, ASSIGN, ACCEPTED))


def test_a_torn_line_is_told_and_taken_when_it_is_whole(ledger: Ledger) -> None:
    whole = log(INIT, ASSIGN)
    ledger.path.write_bytes(whole[:-20])
    place = looked(ledger)
    assert (len(place.held.known), place.look.faults) == (1, (2,))

    with ledger.path.open("ab") as file:
        file.write(whole[-20:])
    place.read()

    assert (len(place.held.known), place.look.faults) == (2, ())


def test_lines_that_are_no_events_are_told_by_their_numbers(ledger: Ledger) -> None:
    ledger.add(INIT)
    with ledger.path.open("ab") as file:
        file.write(b"nonsense\n")
    place = looked(ledger)
    ledger.add(ASSIGN, {**INIT, "agent_id": "eve"})
    place.read()

    assert (len(place.held.known), place.look.faults) == (2, (2, 4))


def test_a_log_that_is_gone_takes_nothing_with_it(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))

    ledger.path.unlink()

    assert place.changed()
    place.read()
    assert (len(place.held.known), bool(place.look.trouble)) == (1, True)
    assert not place.changed()
    ledger.add(INIT, ASSIGN)
    place.read()
    assert (len(place.held.known), place.look.trouble) == (2, "")


def test_what_is_no_plain_file_is_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    elsewhere = tmp_path / "secrets.jsonl"
    elsewhere.write_bytes(log(INIT))
    ledger.path.symlink_to(elsewhere)
    assert (held(looked(ledger)), bool(looked(ledger).trouble)) == ([], True)

    ledger.path.unlink()
    os.mkfifo(ledger.path)
    assert held(looked(ledger)) == []


def test_a_directory_that_cannot_be_entered_is_no_pact(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    place = Place(str(file / ".pact"))

    assert not place.changed()
    assert place.trouble == places.UNREADABLE
    place.read()
    assert place.look.trouble


def test_a_log_beyond_all_measure_is_not_read(ledger: Ledger) -> None:
    with ledger.add(INIT).path.open("r+b") as file:
        file.truncate(64 * MIB + 1)

    place = looked(ledger)

    assert place.look.trouble == "The log has over 64 MiB, which is the limit pact_log"
    assert place.blind == place.look.trouble
    assert held(place) == []


def all_of(place: Place) -> list[str]:
    """The lines that come of a whole file, block by block."""
    lines = [each.line for each in place.refresh().events]
    while place.more:
        lines += [each.line for each in place.refresh().events]
    return lines


@pytest.mark.parametrize("block", [1, 64, 300, 1 << 20])
def test_a_file_is_read_block_by_block_and_counts_when_it_is_read(
    ledger: Ledger, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "BLOCK", block)
    whole = (INIT, ASSIGN, SHOWN, ACCEPTED)
    place = Place(str(ledger.add(*whole).directory))

    assert all_of(place) == log(*whole).decode().splitlines()
    assert (held(place), place.anew, place.more) == (keys(*whole), True, False)
    place.anew = False
    ledger.add(MERGED)
    assert all_of(place) == log(MERGED).decode().splitlines()
    assert (held(place), place.anew) == (keys(*whole, MERGED), False)


def test_half_of_a_file_is_not_what_the_place_holds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = looked(ledger.add(INIT, ASSIGN, SHOWN))
    monkeypatch.setattr(places, "BLOCK", 1)

    ledger.write(ACCEPTED, MERGED)
    first = place.refresh()

    assert ([each.key for each in first.events], place.more) == (keys(ACCEPTED), True)
    assert held(place) == keys(INIT, ASSIGN, SHOWN)
    place.refresh()
    assert (held(place), place.more) == (keys(ACCEPTED, MERGED), False)


def in_place(ledger: Ledger, *events: dict[str, object]) -> None:
    """Other bytes in the same file, as an editor may write them."""
    with ledger.path.open("r+b") as file:
        file.write(log(*events))


def test_what_is_rewritten_within_the_file_is_seen_at_once_if_it_did_not_grow(
    ledger: Ledger,
) -> None:
    one, other = line("join", BOB, id="E1"), line("join", BOB, id="E2")
    rest = line("note", BOB, text="x" * 2 * reading.TAIL)
    place = looked(ledger.add(one, rest))

    in_place(ledger, other)

    assert place.refresh().read
    assert held(place) == keys(other, rest)


def test_what_is_rewritten_within_a_file_that_grew_is_seen_after_some_looks(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "STRIDE", 1000)
    one, other = line("join", BOB, id="E1"), line("join", BOB, id="E2")
    rest = line("note", BOB, text="x" * 2 * reading.TAIL)
    place = looked(ledger.add(one, rest))

    in_place(ledger, other)
    ledger.add(INIT)
    assert len(place.refresh().events) == 1
    assert held(place) == keys(one, rest, INIT), "its end is the same, and it is longer"
    looks = [place.refresh().read for _ in range(places.SURE_AFTER + 1)]

    assert looks.count(True) == 1
    assert (held(place), place.anew) == (keys(other, rest, INIT), True)
    assert not any(place.refresh().read for _ in range(2 * places.SURE_AFTER))


def test_a_file_that_is_written_to_without_end_is_compared_all_the_same(ledger: Ledger) -> None:
    one, other = line("join", BOB, id="E1"), line("join", BOB, id="E2")
    rest = line("note", BOB, text="x" * 2 * reading.TAIL)
    place = looked(ledger.add(one, rest))

    in_place(ledger, other)
    for number in range(places.SURE_AFTER + 1):
        ledger.add(line("join", BOB, id=f"more-{number}"))
        place.refresh()

    assert held(place)[0] == key_of("E2")


def test_a_file_that_goes_while_it_is_compared_is_found_gone_by_the_next_look(
    ledger: Ledger,
) -> None:
    place = looked(ledger.add(INIT))
    for _ in range(places.SURE_AFTER - 1):
        assert not place.refresh().read

    ledger.path.rename(ledger.directory / "elsewhere")
    assert place.refresh().read

    assert (held(place), place.trouble) == (keys(INIT), places.UNREADABLE)


def test_of_a_file_that_only_grew_the_end_is_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = line("note", BOB, text="x" * (1 << 20))
    place = looked(ledger.add(INIT, rest))
    spent = list[int]()
    whole = os.pread

    def counted(handle: int, most: int, start: int) -> bytes:
        data = whole(handle, most, start)
        spent.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    ledger.add(ASSIGN)

    assert [each.key for each in place.refresh().events] == keys(ASSIGN)
    assert sum(spent) == reading.TAIL + len(log(ASSIGN))


def test_a_file_of_other_things_is_no_log(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (reading, pactmirror):
        monkeypatch.setattr(module, "MOST_FAULTS", 3)
    found = Place(str(ledger.add(INIT).directory))
    found.read()

    ledger.path.write_bytes(b"x\n" * 9)
    assert found.refresh()
    assert (len(found.held.known), found.look.trouble) == (1, places.NO_LOG)

    ledger.path.write_bytes(b"x\n" * 3)
    ledger.add(INIT, ASSIGN)
    assert found.refresh()
    assert (len(found.held.known), found.look.faults) == (2, (1, 2, 3))


def test_a_path_that_can_be_none_is_no_pact() -> None:
    found = Place("/a\0b")

    found.read()

    assert found.look.trouble == places.UNREADABLE
