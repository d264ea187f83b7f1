"""One ledger on disk: read when it changed, and never written to."""

import os
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.limits import MIB
from accord.core.work.format import mirror_lines
from accord.core.work.mirror import event_key
from accord.pact.mirror import ledger_file as places
from accord.pact.mirror.ledger_file import LedgerFile
from tests.core.work.story import BOB, line, log
from tests.pact.mirror.scene import ACCEPTED, ASSIGN, INIT, SHOWN, Ledger, ids


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact")


def looked(ledger: Ledger) -> LedgerFile:
    place = LedgerFile(str(ledger.directory))
    place.read()
    return place


def held(place: LedgerFile) -> list[str]:
    return list(place.content.digests)


def keys(*events: dict[str, object]) -> list[str]:
    return [event_key(id) for id in ids(*events)]


def test_what_was_appended_is_seen(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))
    assert not place.has_changed()

    ledger.add(ASSIGN)

    assert place.has_changed()
    place.read()
    assert len(place.content.digests) == 2
    assert not place.has_changed()


def test_another_file_in_its_place_is_read_anew(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT, ASSIGN))

    ledger.write(ASSIGN, SHOWN, INIT)
    place.read()

    assert held(place) == keys(ASSIGN, SHOWN, INIT)


def test_another_file_that_begins_with_all_of_it_is_read_from_there(ledger: Ledger) -> None:
    """Git writes files anew, also where lines only came behind the others."""
    place = looked(ledger.add(INIT, ASSIGN))
    place.was_reread = False
    before = ledger.path.stat().st_ino

    part = ledger.path.with_name("part")
    part.write_bytes(log(INIT, ASSIGN, SHOWN))
    part.replace(ledger.path)
    assert ledger.path.stat().st_ino != before
    found = place.read()

    assert [each.key for each in found] == keys(SHOWN)
    assert (place.was_reread, held(place)) == (False, keys(INIT, ASSIGN, SHOWN))
    part.write_bytes(log(INIT, SHOWN, ASSIGN, ACCEPTED))
    part.replace(ledger.path)
    place.read()
    assert (place.was_reread, held(place)) == (True, keys(INIT, SHOWN, ASSIGN, ACCEPTED))


def test_a_torn_line_is_told_and_taken_when_it_is_whole(ledger: Ledger) -> None:
    whole = log(INIT, ASSIGN)
    ledger.path.write_bytes(whole[:-20])
    place = looked(ledger)
    assert (len(place.content.digests), place.status.faults) == (1, (2,))

    with ledger.path.open("ab") as file:
        file.write(whole[-20:])
    place.read()

    assert (len(place.content.digests), place.status.faults) == (2, ())


def test_lines_that_are_no_events_are_told_by_their_numbers(ledger: Ledger) -> None:
    ledger.add(INIT)
    with ledger.path.open("ab") as file:
        file.write(b"nonsense\n")
    place = looked(ledger)
    ledger.add(ASSIGN, {**INIT, "agent_id": "eve"})
    place.read()

    assert (len(place.content.digests), place.status.faults) == (2, (2, 4))


def test_a_log_that_is_gone_takes_nothing_with_it(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))

    ledger.path.unlink()

    assert place.has_changed()
    place.read()
    assert (len(place.content.digests), bool(place.status.trouble)) == (1, True)
    assert not place.has_changed()
    ledger.add(INIT, ASSIGN)
    place.read()
    assert (len(place.content.digests), place.status.trouble) == (2, "")


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
    place = LedgerFile(str(file / ".pact"))

    assert not place.has_changed()
    assert place.trouble == places.UNREADABLE_NOTICE
    place.read()
    assert place.status.trouble


def test_a_log_beyond_all_measure_is_not_read(ledger: Ledger) -> None:
    with ledger.add(INIT).path.open("r+b") as file:
        file.truncate(64 * MIB + 1)

    place = looked(ledger)

    assert place.status.trouble == "The log is larger than 64 MiB, the limit pact_log"
    assert place.blind_reason == place.status.trouble
    assert held(place) == []


def in_place(ledger: Ledger, *events: dict[str, object]) -> None:
    """Other bytes in the same file, as an editor may write them."""
    with ledger.path.open("r+b") as file:
        file.write(log(*events))


@pytest.mark.parametrize("grows", [False, True])
def test_what_is_rewritten_within_the_file_is_seen_at_once(ledger: Ledger, grows: bool) -> None:
    one, other = line("join", BOB, id="E1"), line("join", BOB, id="E2")
    rest = line("note", BOB, text="x" * 10_000)
    place = looked(ledger.add(one, rest))
    more = (INIT,) if grows else ()

    in_place(ledger, other)
    ledger.add(*more)

    assert place.refresh().read
    assert (held(place), place.was_reread) == (keys(other, rest, *more), True)
    assert not place.refresh().read


def test_of_a_file_that_only_grew_the_end_is_parsed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = looked(ledger.add(INIT, ASSIGN))
    place.was_reread = False
    parsed = list[bytes]()

    def counted(data: bytes, *words: Any) -> Any:
        parsed.append(data)
        return mirror_lines.parse_sources(data, *words)

    monkeypatch.setattr(places, "parse_sources", counted)
    ledger.add(SHOWN)

    assert [each.key for each in place.refresh().events] == keys(SHOWN)
    assert (parsed, place.was_reread) == ([log(SHOWN)], False)


def test_a_last_line_without_its_line_break_is_an_event_once(ledger: Ledger) -> None:
    ledger.path.write_bytes(log(INIT, ASSIGN)[:-1])
    place = looked(ledger)
    assert (held(place), place.status.faults, place.trouble) == (keys(INIT, ASSIGN), (), "")

    ledger.path.write_bytes(log(INIT, ASSIGN, SHOWN)[:-1])
    assert [each.key for each in place.refresh().events] == keys(SHOWN)

    assert (held(place), place.status.faults) == (keys(INIT, ASSIGN, SHOWN), ())
    ledger.path.write_bytes(log(INIT)[:-1])
    alone = looked(ledger)
    assert (held(alone), alone.trouble) == (keys(INIT), "")


def test_a_file_of_other_things_is_no_log(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (places, mirror_lines):
        monkeypatch.setattr(module, "MAX_FAULTS", 3)
    found = LedgerFile(str(ledger.add(INIT).directory))
    found.read()

    ledger.path.write_bytes(b"x\n" * 9)
    assert found.refresh()
    assert (len(found.content.digests), found.status.trouble) == (1, places.NOT_A_LOG_NOTICE)

    ledger.path.write_bytes(b"x\n" * 3)
    ledger.add(INIT, ASSIGN)
    assert found.refresh()
    assert (len(found.content.digests), found.status.faults) == (2, (1, 2, 3))


def test_a_path_that_can_be_none_is_no_pact() -> None:
    found = LedgerFile("/a\0b")

    found.read()

    assert found.status.trouble == places.UNREADABLE_NOTICE
