"""Ends a failed command with one sentence on standard error and an exit code (UNI-26)."""

import errno
import os
import sys
import traceback

from accord.cli.server_url import unreachable_advice
from accord.client.errors import (
    ClientError,
    Rejected,
    Replaced,
    ServerRefused,
    SessionOver,
    SignedOut,
    Unreachable,
)
from accord.core.dialects.error_codes import reason_of
from accord.core.dialects.refusals import exit_refusal
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import DamagedError, ForeignStoreError, StoreError, UnknownStoreError
from accord.hosts.configuration.entry import ConfigurationError
from accord.hosts.connections import ConnectionRecordError
from accord.settings.client import SettingsError
from accord.settings.profiles import ProfileError
from accord.show.text import escape_controls

DEBUG_VARIABLE = "ACCORD_DEBUG"
# A request without a token was made with --as.
NO_TOKEN_PREFIX = "Send a token"  # noqa: S105 - the beginning of a message
NOT_OPEN_SENTENCE = "this server does not run with --auth open; leave out --as and log in"

# Among INVALID_STATE errors, only those about removed messages carry this detail.
REMOVED_DETAIL = "after"

OWNER_ADVICE = "run this as its owner, or change its permissions"
DISK_FULL_ADVICE = "free some disk space and try again"
OPEN_FILES_ADVICE = "close some files, or raise the limit (ulimit -n)"
# Operating system errors: the reason to report and the advice to give.
REASON_BY_ERRNO: dict[int | None, tuple[Reason, str]] = {
    errno.EACCES: (Reason.FORBIDDEN, OWNER_ADVICE),
    errno.EPERM: (Reason.FORBIDDEN, OWNER_ADVICE),
    errno.ENOENT: (Reason.NOT_FOUND, "check the name, and that its directory exists"),
    errno.EISDIR: (Reason.MALFORMED, "give the name of a file"),
    errno.ENOTDIR: (Reason.MALFORMED, "a file is in the place of a directory; use another path"),
    errno.ENAMETOOLONG: (Reason.MALFORMED, "choose a shorter name"),
    errno.ENOSPC: (Reason.UNAVAILABLE, DISK_FULL_ADVICE),
    errno.EDQUOT: (Reason.UNAVAILABLE, DISK_FULL_ADVICE),
    errno.EROFS: (Reason.UNAVAILABLE, "use another path, or mount this one for writing"),
    errno.EMFILE: (Reason.UNAVAILABLE, OPEN_FILES_ADVICE),
    errno.ENFILE: (Reason.UNAVAILABLE, OPEN_FILES_ADVICE),
}


def report_error(error: Exception) -> int:
    """Print what went wrong; returns the exit code."""
    refusal = exit_refusal(Refused(*classify_error(error)))
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    print(f"accord: {escape_controls(refusal.sentence)}", file=sys.stderr)
    return refusal.code


def classify_error(error: Exception) -> tuple[Reason, str]:
    """The reason and the sentence for an error."""
    match error:
        case Refused():
            return error.reason, error.detail
        case ClientError():
            return classify_client_error(error)
        case SettingsError() | ProfileError():
            return Reason.MALFORMED, str(error)
        case ConfigurationError() | ConnectionRecordError():
            return Reason.WRONG_STATE, str(error)
        case DamagedError():
            return Reason.DAMAGED, str(error)
        case ForeignStoreError():
            return Reason.WRONG_STATE, str(error)
        case UnknownStoreError():
            return Reason.MALFORMED, str(error)
        case StoreError():
            return Reason.UNAVAILABLE, str(error)
        case OSError():
            return classify_os_error(error)
        case _:
            return Reason.INTERNAL, internal_error_sentence(error)


def classify_client_error(error: ClientError) -> tuple[Reason, str]:
    """The reason and the sentence for a refusal by the server or a failed connection."""
    match error:
        case ServerRefused() if error.message.startswith(NO_TOKEN_PREFIX):
            return Reason.UNAUTHENTICATED, NOT_OPEN_SENTENCE
        case ServerRefused(code="INVALID_STATE") if REMOVED_DETAIL in error.details:
            return Reason.REMOVED, error.message
        case ServerRefused():
            return reason_of(error.code, error.status), error.message
        case SignedOut():
            return Reason.UNAUTHENTICATED, f"the server does not accept your token: {error}"
        case Unreachable():
            return Reason.UNAVAILABLE, unreachable_sentence(error)
        case SessionOver() | Rejected() | Replaced():
            return Reason.WRONG_STATE, str(error)
        case _:
            return Reason.INTERNAL, str(error)


def unreachable_sentence(error: Unreachable) -> str:
    """Which server did not answer, and what to do."""
    if not isinstance(error.__cause__, OSError):
        return str(error)
    what, found, _ = str(error).partition(" cannot be reached")
    return f"{what}{found}; {unreachable_advice(what)}" if found else str(error)


def classify_os_error(error: OSError) -> tuple[Reason, str]:
    """The reason and the sentence, with advice, for an operating system error."""
    if error.errno not in REASON_BY_ERRNO:
        return Reason.INTERNAL, os_error_sentence(error)
    if isinstance(error, IsADirectoryError) and error.filename:
        return Reason.MALFORMED, f"{error.filename} is a directory; give the name of a file"
    reason, advice = REASON_BY_ERRNO[error.errno]
    return reason, f"{os_error_sentence(error)}; {advice}"


def os_error_sentence(error: OSError) -> str:
    """The file, then the system's own message."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def internal_error_sentence(error: Exception) -> str:
    """A bug in Accord: the exception, and how to see its traceback."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    where = (
        "the traceback is above"
        if os.environ.get(DEBUG_VARIABLE)
        else f"run it again with {DEBUG_VARIABLE}=1 to see where"
    )
    return f"something went wrong inside Accord ({what}); {where}"
