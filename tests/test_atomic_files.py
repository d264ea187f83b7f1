"""Atomic writes of private files."""

import os
import stat
from pathlib import Path

import pytest

from accord.atomic_files import sync_directory, write_private


def test_file_is_private_and_complete(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old, and longer than what follows")
    file.chmod(0o666)

    write_private(file, b"new")

    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [file] == list(tmp_path.iterdir())


def test_symbolic_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_text("theirs")
    ours.symlink_to(theirs)

    write_private(ours, b"ours", durable=True)

    assert not ours.is_symlink()
    assert (theirs.read_text(), ours.read_text()) == ("theirs", "ours")


def test_failed_write_keeps_the_old_file_and_leaves_no_other(
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


def test_durable_write_syncs_the_file_before_the_rename_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced = tmp_path / "key", list[tuple[str, bool]]()

    def fsync(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        synced.append((kind, file.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_private(file, b"1", durable=True)
    sync_directory(tmp_path)
    write_private(file, b"2")

    assert synced == [("file", False), ("folder", True), ("folder", True)]
