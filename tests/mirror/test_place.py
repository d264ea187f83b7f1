"""One ledger on disk: read when it changed, and never written to."""

import os
from pathlib import Path

import pytest

from accord.core.dialects import pactmirror
from accord.core.kernel.limits import MIB
from accord.mirror import place as places
from accord.mirror.place import Place, together
from tests.core.work.story import log
from tests.mirror.scene import ASSIGN, INIT, SHOWN, Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact")


def looked(ledger: Ledger) -> Place:
    place = Place(str(ledger.directory))
    place.read()
    return place


def test_what_was_appended_is_seen(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))
    assert not place.changed()

    ledger.add(ASSIGN)

    assert place.changed()
    place.read()
    assert len(place.look.events) == 2
    assert not place.changed()


def test_another_file_in_its_place_is_read_anew(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT, ASSIGN))

    ledger.write(ASSIGN, SHOWN, INIT)
    place.read()

    assert [each.line for each in place.look.events] == log(
        ASSIGN, SHOWN, INIT
    ).decode().splitlines()


def test_a_torn_line_is_told_and_taken_when_it_is_whole(ledger: Ledger) -> None:
    whole = log(INIT, ASSIGN)
    ledger.path.write_bytes(whole[:-20])
    place = looked(ledger)
    assert (len(place.look.events), place.look.faults) == (1, (2,))

    with ledger.path.open("ab") as file:
        file.write(whole[-20:])
    place.read()

    assert (len(place.look.events), place.look.faults) == (2, ())


def test_lines_that_are_no_events_are_told_by_their_numbers(ledger: Ledger) -> None:
    ledger.add(INIT)
    with ledger.path.open("ab") as file:
        file.write(b"nonsense\n")
    place = looked(ledger)
    ledger.add(ASSIGN, {**INIT, "agent_id": "eve"})
    place.read()

    assert (len(place.look.events), place.look.faults) == (2, (2, 4))


def test_a_log_that_is_gone_takes_nothing_with_it(ledger: Ledger) -> None:
    place = looked(ledger.add(INIT))

    ledger.path.unlink()

    assert place.changed()
    place.read()
    assert (len(place.look.events), bool(place.look.trouble)) == (1, True)
    assert not place.changed()
    ledger.add(INIT, ASSIGN)
    place.read()
    assert (len(place.look.events), place.look.trouble) == (2, "")


def test_what_is_no_plain_file_is_left_alone(ledger: Ledger, tmp_path: Path) -> None:
    elsewhere = tmp_path / "secrets.jsonl"
    elsewhere.write_bytes(log(INIT))
    ledger.path.symlink_to(elsewhere)
    assert (looked(ledger).look.events, bool(looked(ledger).look.trouble)) == ((), True)

    ledger.path.unlink()
    os.mkfifo(ledger.path)
    assert looked(ledger).look.events == ()


def test_a_directory_that_cannot_be_entered_is_no_pact(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no directory")
    place = Place(str(file / ".pact"))

    assert not place.changed()
    place.read()
    assert place.look.trouble


def test_a_log_beyond_all_measure_is_not_read(ledger: Ledger) -> None:
    with ledger.add(INIT).path.open("r+b") as file:
        file.truncate(64 * MIB + 1)

    place = looked(ledger)

    assert place.look.trouble == "The log has over 64 MiB, which is the limit pact_log"
    assert place.look.events == ()


def test_working_trees_of_one_repository_are_read_together(tmp_path: Path) -> None:
    one = looked(Ledger(tmp_path / "one").add(INIT, ASSIGN))
    other = looked(Ledger(tmp_path / "other").add(INIT, SHOWN))

    assert [each.line for each in together([one, other])] == log(
        INIT, ASSIGN, SHOWN
    ).decode().splitlines()


def test_a_file_of_other_things_is_no_log(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (places, pactmirror):
        monkeypatch.setattr(module, "MOST_FAULTS", 3)
    found = Place(str(ledger.add(INIT).directory))
    found.read()

    ledger.path.write_bytes(b"x\n" * 9)
    assert found.refresh()
    assert (len(found.look.events), found.look.trouble) == (1, places.NO_LOG)

    ledger.path.write_bytes(b"x\n" * 3)
    ledger.add(INIT, ASSIGN)
    assert found.refresh()
    assert (len(found.look.events), found.look.faults) == (2, (1, 2, 3))


def test_a_path_that_can_be_none_is_no_pact() -> None:
    found = Place("/a\0b")

    found.read()

    assert found.look.trouble == places.UNREADABLE
