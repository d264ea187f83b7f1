"""How a command that failed ends: a sentence on standard error and an exit code (UNI-26)."""

import os
import sys
import traceback

from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.engine.ports import ForeignStoreError, StoreError
from accord.settings import SettingsError

DEBUG = "ACCORD_DEBUG"


def explain(error: Exception) -> int:
    """Say what went wrong; returns the exit code."""
    why, sentence = reason(error)
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    print(f"accord: {sentence}", file=sys.stderr)
    return CODES[why].exit


def reason(error: Exception) -> tuple[Why, str]:
    """Which kind of no it was, and how to say it."""
    match error:
        case Refused():
            return error.why, error.detail
        case SettingsError():
            return Why.MALFORMED, str(error)
        case ForeignStoreError():
            return Why.WRONG_STATE, str(error)
        case StoreError():
            return Why.UNAVAILABLE, str(error)
        case PermissionError():
            return Why.FORBIDDEN, of_file(error)
        case FileNotFoundError():
            return Why.UNKNOWN, of_file(error)
        case OSError():
            return Why.INTERNAL, of_file(error)
        case _:
            return Why.INTERNAL, unexpected(error)


def of_file(error: OSError) -> str:
    """Which file, then what the system says of it."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def unexpected(error: Exception) -> str:
    """A fault of ours: what it was, and where to look."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    where = "above" if os.environ.get(DEBUG) else f"run it again with {DEBUG}=1 to see where"
    return f"something went wrong inside Accord ({what}); {where}"
