"""The token file: whoever can read it is the owner of the data directory (OPEN-56)."""

import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from accord.core.kernel.refusal import Refused, Why
from accord.transports.identity import bearer

FILE = "bridge.token"
LONGEST = 128
OTHERS = 0o077
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


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
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(made + "\n")
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return made


def check(expected: str, authorization: Sequence[str]) -> None:
    """Refuse whoever does not show it."""
    shown = bearer(authorization)
    if shown is None or not hmac.compare_digest(shown.encode(), expected.encode()):
        detail = f"Send the text of {FILE} in the data directory as `Authorization: Bearer …`"
        raise Refused(Why.UNAUTHENTICATED, detail)
