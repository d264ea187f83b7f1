"""Atomic file writes: a reader sees the old file or the new one, also after a power cut."""

import os
from pathlib import Path

PRIVATE_FILE_MODE = 0o600
NOFOLLOW_FLAG = getattr(os, "O_NOFOLLOW", 0)


def write_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace `path` with a file of mode 600; a symbolic link there is replaced, not followed."""
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    handle = create_part_file(part, path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def create_part_file(part: Path, path: Path) -> int:
    """Create the temporary file; an error names `path`, the file that the user knows."""
    try:
        return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | NOFOLLOW_FLAG, PRIVATE_FILE_MODE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def sync_directory(folder: Path) -> None:
    """Make created and renamed names in this directory durable."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
