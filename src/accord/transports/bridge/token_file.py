"""The bridge's token file.

Being able to read it proves ownership of the data directory (OPEN-56).
"""

import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from accord.atomic_files import NOFOLLOW_FLAG, write_private
from accord.core.kernel.refusal import Reason, Refused
from accord.identity.token_signing import bearer_token

TOKEN_FILE = "bridge.token"  # noqa: S105 - the name of a file
MAX_TOKEN_CHARS = 128
GROUP_OTHER_BITS = 0o077


def load_or_create_token(home: Path) -> str:
    """The token of this data directory, created anew unless a private one exists."""
    path = home / TOKEN_FILE
    return _load_token(path) or _create_token(path)


def _load_token(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | NOFOLLOW_FLAG)
    except OSError:
        return ""
    with os.fdopen(handle, "r", encoding="ascii", errors="replace") as file:
        info = os.fstat(file.fileno())
        is_ours = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid()
        text = (
            file.read(MAX_TOKEN_CHARS).strip()
            if is_ours and not info.st_mode & GROUP_OTHER_BITS
            else ""
        )
    return text if len(text) >= 32 else ""


def _create_token(path: Path) -> str:
    """Written atomically: a hook reads all of it or nothing."""
    token = secrets.token_urlsafe(32)
    write_private(path, f"{token}\n".encode("ascii"))
    return token


def ensure_token(expected: str, authorization: Sequence[str]) -> None:
    """Refuse a request without this token."""
    given = bearer_token(authorization)
    if given is None or not hmac.compare_digest(given.encode(), expected.encode()):
        detail = (
            f"Send the content of {TOKEN_FILE} in the data directory as `Authorization: Bearer …`"
        )
        raise Refused(Reason.UNAUTHENTICATED, detail)
