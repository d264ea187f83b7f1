"""Files that appear whole, for their owner alone."""

import os
import stat
from pathlib import Path

import pytest

from accord.files import sync, write_private


def test_it_is_for_its_owner_alone_and_all_of_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old, and longer than what follows")
    file.chmod(0o666)

    write_private(file, b"new")

    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [file] == list(tmp_path.iterdir())


def test_a_link_gives_way_and_what_it_leads_to_is_let_be(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_text("theirs")
    ours.symlink_to(theirs)

    write_private(ours, b"ours", durable=True)

    assert not ours.is_symlink()
    assert (theirs.read_text(), ours.read_text()) == ("theirs", "ours")


def test_what_fails_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_private(file, b"new", durable=True)

    assert [file] == list(tmp_path.iterdir())
    assert file.read_text() == "old"


def test_durable_is_the_file_before_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced = tmp_path / "key", list[tuple[str, bool]]()

    def fsync(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        synced.append((kind, file.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_private(file, b"1", durable=True)
    sync(tmp_path)
    write_private(file, b"2")

    assert synced == [("file", False), ("folder", True), ("folder", True)]
