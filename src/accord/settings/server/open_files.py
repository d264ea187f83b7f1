"""Open files: every connection needs a descriptor, and the system limits them per process."""

import contextlib
import logging
from typing import NamedTuple

from accord.core.kernel.refusal import Reason, Refused

log = logging.getLogger("accord")

# For the store, the bridge and libraries.
RESERVED_FILES = 128
# The minimum for a server with a few clients.
MIN_SERVER_FILES = 48
TOO_FEW_FILES_TEXT = "the system allows {most} open files, but a server needs more than {own}"
FEW_FILES_TEXT = (
    "the system allows {most} open files; raise the limit (LimitNOFILE in systemd, ulimit -n)"
)


class OpenFileLimit(NamedTuple):
    """The soft and hard limit on open files; None means unlimited."""

    soft: int | None
    hard: int | None

    def connections_within(self, connections: int) -> int:
        """How many of that many connections fit after raising the soft limit to the hard one."""
        if self.hard is None or self.hard >= connections + RESERVED_FILES:
            return connections
        spare = max(MIN_SERVER_FILES, min(RESERVED_FILES, self.hard // 2))
        return max(1, min(connections, self.hard - spare))

    @property
    def shortage(self) -> str:
        """Why the limit is too low for any server; empty if it is not."""
        none = self.hard is not None and self.hard <= MIN_SERVER_FILES
        return TOO_FEW_FILES_TEXT.format(most=self.hard, own=MIN_SERVER_FILES) if none else ""


def ensure_enough_files() -> None:
    """Refuse to start when the store itself could run out of descriptors."""
    if shortage := open_file_limit().shortage:
        detail = (
            f"Too few open files: {shortage}; raise the limit (LimitNOFILE in systemd, ulimit -n)"
        )
        raise Refused(Reason.UNAVAILABLE, detail)


def open_file_limit() -> OpenFileLimit:
    """The limits of this process; unlimited on systems without them."""
    try:
        import resource
    except ImportError:
        return OpenFileLimit(None, None)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OpenFileLimit(*(None if value == resource.RLIM_INFINITY else value for value in limits))


def raise_for_connections(connections: int) -> int:
    """Raise the soft limit as needed; returns how many of that many connections fit.

    Beyond the limit new connections would be dropped silently, and the store could not open files.
    """
    limit = open_file_limit()
    wanted = connections + RESERVED_FILES
    if limit.soft is not None and limit.soft < wanted:
        limit = raise_limit(wanted, limit)
    capacity = limit.connections_within(connections)
    if capacity < connections:
        detail = FEW_FILES_TEXT.format(most=limit.hard)
        log.warning("connections.few", extra={"count": capacity, "detail": detail})
    return capacity


def raise_limit(wanted: int, limit: OpenFileLimit) -> OpenFileLimit:
    """Raise the soft limit as far as allowed; the result is final."""
    import resource

    new_soft = wanted if limit.hard is None else min(wanted, limit.hard)
    hard = resource.RLIM_INFINITY if limit.hard is None else limit.hard
    with contextlib.suppress(ValueError, OSError):  # the system may refuse despite the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_soft, hard))
    now = open_file_limit().soft
    return OpenFileLimit(now, now)
