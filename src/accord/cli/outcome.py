"""How a command that failed ends: a sentence on standard error and an exit code (UNI-26)."""

import errno
import os
import sys
import traceback

from accord.cli.address import advice
from accord.client.errors import (
    ClientError,
    Rejected,
    Replaced,
    ServerRefused,
    SessionOver,
    SignedOut,
    Unreachable,
)
from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.engine.ports import DamagedError, ForeignStoreError, StoreError, UnknownStoreError
from accord.settings import SettingsError
from accord.show.text import safe

DEBUG = "ACCORD_DEBUG"
# Whoever asks without a token has said --as.
NO_TOKEN = "Send a token"  # noqa: S105 - how a sentence begins
NOT_OPEN = "this server is not open; leave out --as, and put a token into ACCORD_TOKEN"

# Of a wrong state, only what was removed says where there is more.
REMOVED = "after"
# The first reason of each code stands for all that share it; PVP tells no finer.
BY_CODE = {codes.pvp: why for why, codes in reversed(CODES.items())} | {
    "INVALID_STATE": Why.WRONG_STATE,
    "INTERNAL_ERROR": Why.INTERNAL,
}

ITS_OWNER = "run this as whoever owns it, or change its rights"
MAKE_ROOM = "make room and try again"
FEWER_FILES = "close some, or raise the limit (ulimit -n)"
# What the system says no with, whose fault that is, and what to do.
SYSTEM: dict[int | None, tuple[Why, str]] = {
    errno.EACCES: (Why.FORBIDDEN, ITS_OWNER),
    errno.EPERM: (Why.FORBIDDEN, ITS_OWNER),
    errno.ENOENT: (Why.UNKNOWN, "check the name, and that its folder is there"),
    errno.EISDIR: (Why.MALFORMED, "name a file"),
    errno.ENOTDIR: (Why.MALFORMED, "a file is where a folder should be; name another place"),
    errno.ENAMETOOLONG: (Why.MALFORMED, "choose a shorter one"),
    errno.ENOSPC: (Why.UNAVAILABLE, MAKE_ROOM),
    errno.EDQUOT: (Why.UNAVAILABLE, MAKE_ROOM),
    errno.EROFS: (Why.UNAVAILABLE, "name another place, or mount that one for writing"),
    errno.EMFILE: (Why.UNAVAILABLE, FEWER_FILES),
    errno.ENFILE: (Why.UNAVAILABLE, FEWER_FILES),
}


def explain(error: Exception) -> int:
    """Say what went wrong; returns the exit code."""
    why, sentence = reason(error)
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    print(f"accord: {safe(sentence)}", file=sys.stderr)
    return CODES[why].exit


def reason(error: Exception) -> tuple[Why, str]:
    """Which kind of no it was, and how to say it."""
    match error:
        case Refused():
            return error.why, error.detail
        case ClientError():
            return of_client(error)
        case SettingsError():
            return Why.MALFORMED, str(error)
        case DamagedError():
            return Why.DAMAGED, str(error)
        case ForeignStoreError():
            return Why.WRONG_STATE, str(error)
        case UnknownStoreError():
            return Why.MALFORMED, str(error)
        case StoreError():
            return Why.UNAVAILABLE, str(error)
        case OSError():
            return of_system(error)
        case _:
            return Why.INTERNAL, unexpected(error)


def of_client(error: ClientError) -> tuple[Why, str]:
    """What the server refused, or why it could not be asked."""
    match error:
        case ServerRefused() if error.message.startswith(NO_TOKEN):
            return Why.UNAUTHENTICATED, NOT_OPEN
        case ServerRefused(code="INVALID_STATE") if REMOVED in error.details:
            return Why.REMOVED, error.message
        case ServerRefused():
            return BY_CODE.get(error.code, Why.INTERNAL), error.message
        case SignedOut():
            return Why.UNAUTHENTICATED, f"the server does not let you in: {error}"
        case Unreachable():
            return Why.UNAVAILABLE, unreachable(error)
        case SessionOver() | Rejected() | Replaced():
            return Why.WRONG_STATE, str(error)
        case _:
            return Why.INTERNAL, str(error)


def unreachable(error: Unreachable) -> str:
    """Where nobody answers, and what to do about it."""
    if not isinstance(error.__cause__, OSError):
        return str(error)
    what, found, _ = str(error).partition(" cannot be reached")
    return f"{what}{found}; {advice(what)}" if found else str(error)


def of_system(error: OSError) -> tuple[Why, str]:
    """What the system would not do, whose fault that may be, and what to do about it."""
    if error.errno not in SYSTEM:
        return Why.INTERNAL, of_file(error)
    if isinstance(error, IsADirectoryError) and error.filename:
        return Why.MALFORMED, f"{error.filename} is a directory; name a file"
    why, cure = SYSTEM[error.errno]
    return why, f"{of_file(error)}; {cure}"


def of_file(error: OSError) -> str:
    """Which file, then what the system says of it."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def unexpected(error: Exception) -> str:
    """A fault of ours: what it was, and where to look."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    where = "above" if os.environ.get(DEBUG) else f"run it again with {DEBUG}=1 to see where"
    return f"something went wrong inside Accord ({what}); {where}"
