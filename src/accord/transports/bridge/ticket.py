"""The token file: whoever can read it is the owner of the data directory (OPEN-56)."""

import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from accord.core.kernel.refusal import Refused, Why
from accord.files import NO_LINKS, write_private
from accord.transports.identity import bearer

FILE = "bridge.token"
LONGEST = 128
OTHERS = 0o077


def ticket(home: Path) -> str:
    """The token of this data directory, made anew where none lies that only we can have read."""
    path = home / FILE
    return _kept(path) or _made(path)


def _kept(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | NO_LINKS)
    except OSError:
        return ""
    with os.fdopen(handle, "r", encoding="ascii", errors="replace") as file:
        info = os.fstat(file.fileno())
        ours = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid()
        text = file.read(LONGEST).strip() if ours and not info.st_mode & OTHERS else ""
    return text if len(text) >= 32 else ""


def _made(path: Path) -> str:
    """Appears whole: a hook reads all of it or none."""
    made = secrets.token_urlsafe(32)
    write_private(path, f"{made}\n".encode("ascii"))
    return made


def check(expected: str, authorization: Sequence[str]) -> None:
    """Refuse whoever does not show it."""
    shown = bearer(authorization)
    if shown is None or not hmac.compare_digest(shown.encode(), expected.encode()):
        detail = f"Send the text of {FILE} in the data directory as `Authorization: Bearer …`"
        raise Refused(Why.UNAUTHENTICATED, detail)
