"""The ledger in a working tree: appended whole, locked as other tools lock, never made worse."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import Conflict
from accord.pact.ledger import FileLedger, LedgerMark, file_lock, replace_file
from tests.spec import proves


@pytest.fixture
def here(tmp_path: Path) -> FileLedger:
    return FileLedger(tmp_path / ".pact" / "log.jsonl", tmp_path / "pactify-log.lock")


@proves("PACT-2-1", "OPEN-106")
def test_lines_are_added_behind_what_is_there(here: FileLedger) -> None:
    port = here
    assert port.read() == (b"", LedgerMark())

    first = port.append(LedgerMark(), b"one\n")
    second = port.append(first, b"two\n")

    assert port.read() == (b"one\ntwo\n", second)
    assert here.mark() == second


@proves("PACT-2-1", "OPEN-106")
def test_a_missing_line_break_is_written_before_the_next_line(here: FileLedger) -> None:
    mark = here.append(LedgerMark(), b"one")

    mark = here.append(mark, b"two\n")
    here.append(mark, b"three\n")

    assert here.read()[0] == b"one\ntwo\nthree\n"


@proves("OPEN-106")
def test_whoever_read_an_older_ledger_is_told(here: FileLedger) -> None:
    mark = here.append(LedgerMark(), b"one\n")
    with here.path.open("ab") as other:
        other.write(b"two\n")

    with pytest.raises(Conflict):
        here.append(mark, b"three\n")
    with pytest.raises(Conflict):
        here.append(LedgerMark(), b"three\n")

    assert here.read()[0] == b"one\ntwo\n"


def test_a_link_or_a_pipe_in_its_place_is_left_alone(here: FileLedger, tmp_path: Path) -> None:
    here.path.parent.mkdir()
    (tmp_path / "private").write_text("keys\n")
    here.path.symlink_to(tmp_path / "private")

    for act in (here.read, lambda: here.append(LedgerMark(), b"x\n")):
        with pytest.raises(Refused) as no:
            act()
        assert no.value.reason is Reason.WRONG_STATE
    assert (tmp_path / "private").read_text() == "keys\n"
    here.path.unlink()
    os.mkfifo(here.path)
    with pytest.raises(Refused):
        here.append(LedgerMark(), b"x\n")


def test_a_full_disk_leaves_no_part_of_a_line(
    here: FileLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = here.append(LedgerMark(), b"one\n")
    whole = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: whole(handle, data[:3]))

    with pytest.raises(Refused) as no:
        here.append(mark, b"two and more\n")

    assert no.value.reason is Reason.UNAVAILABLE
    assert here.read()[0] == b"one\n"


@contextmanager
def another_holder(path: Path) -> Iterator[None]:
    """Another program that holds the lock as existing tools do: flock, exclusive."""
    code = (
        "import fcntl,sys; f=open(sys.argv[1],'a'); fcntl.flock(f,fcntl.LOCK_EX);"
        "print('held',flush=True); sys.stdin.read()"
    )
    held = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert held.stdin is not None
    held.stdout.readline()
    try:
        yield
    finally:
        held.stdin.close()
        held.wait()
        held.stdout.close()


@proves("OPEN-106")
def test_it_waits_for_whoever_holds_the_lock_and_says_so_in_the_end(tmp_path: Path) -> None:
    lock, naps = tmp_path / "pactify-log.lock", list[float]()
    here = FileLedger(tmp_path / "log.jsonl", lock, naps.append)

    with another_holder(lock):
        with pytest.raises(Refused) as no, here.locked():
            pass
        assert no.value.reason is Reason.UNAVAILABLE
        assert 59 < sum(naps) < 61

    with here.locked(), lock.open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_directory_can_be_locked_too(tmp_path: Path) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)

    with (
        file_lock(tmp_path, 1, time.sleep),
        pytest.raises(Refused),
        file_lock(tmp_path, 0.05, nap),
    ):
        pass
    assert naps


def test_a_file_is_replaced_whole_and_a_link_by_a_file(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("theirs")
    target.chmod(0o755)
    link.symlink_to(target)

    replace_file(link, b"ours", durable=True)
    replace_file(target, b"new")

    assert (link.is_symlink(), link.read_text(), target.read_text()) == (False, "ours", "new")
    assert target.stat().st_mode & 0o777 == 0o755
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "target"]
