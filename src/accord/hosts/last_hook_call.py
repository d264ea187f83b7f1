"""When a host last asked our hook about a call: the time of an empty file beside the record.

`accord connect --check` can run the hook by itself, but only a call of the host shows that the host
runs it: settings may be switched off in ways that no file tells.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

SUFFIX = ".last-call"
NOTE_EVERY_S = 60.0
# The host's session that `connect --check` names when it runs the hook itself.
CHECK_SESSION = "accord-check"


def note_hook_call(record: Path) -> None:
    """The host asked now. A directory that cannot be written must not stop the call's decision."""
    with suppress(OSError):
        noted = last_hook_call(record)
        if noted is not None and abs(time.time() - noted) < NOTE_EVERY_S:
            return
        path = record.with_suffix(SUFFIX)
        path.touch(mode=0o600)
        os.utime(path)


def last_hook_call(record: Path) -> float | None:
    """When the host last asked, in seconds since 1970; None if not since it was connected."""
    try:
        at = record.with_suffix(SUFFIX).stat().st_mtime
        return at if at >= record.stat().st_mtime else None
    except FileNotFoundError:
        return None


def forget_hook_calls(record: Path) -> None:
    """For a host that is disconnected."""
    record.with_suffix(SUFFIX).unlink(missing_ok=True)
