"""Disks of a test's own, which fill up and go away, where the machine lets us make such ones."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_disk(folder: Path, size: str) -> Iterator[Path]:
    """A small one; the test is skipped where nobody may mount it."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("no right to mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> Path:
    """Take all the room there is."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return path
    return path


def seal(disk: Path) -> None:
    """Nobody writes to it any more."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
