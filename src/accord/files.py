"""Files that appear whole: whoever reads one reads all of it, before a power cut and after it."""

import os
import secrets
from pathlib import Path

PRIVATE_FILE = 0o600
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def write_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    """All of the file or nothing, for its owner alone; what stood there gives way, also a link."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = begin(part, path)
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
        sync(path.parent)


def begin(part: Path, path: Path) -> int:
    """Open what is to become `path`; where that fails it is the file people know that failed."""
    try:
        return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, PRIVATE_FILE)
    except OSError as no:
        raise OSError(no.errno, no.strerror, str(path)) from None


def sync(folder: Path) -> None:
    """Make the names in this folder durable."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
