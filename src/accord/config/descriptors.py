"""Open files: every connection is one, and a system allows a process only so many."""

import contextlib
import logging
from typing import NamedTuple

from accord.core.kernel.refusal import Refused, Why

log = logging.getLogger("accord")

# For the store, the bridge, and whatever a library opens.
SPARE = 128
# So many of these a server needs with a few readers, however little it is given.
OWN = 48
TOO_FEW = "the system allows {most} open files, and a server needs more than {own}"
FEW = "the system allows {most} open files; raise its limit (LimitNOFILE in systemd, ulimit -n)"


class Allowed(NamedTuple):
    """So many files this process may open, and so many it could have by asking; None is no end."""

    now: int | None
    most: int | None

    def room(self, connections: int) -> int:
        """How many of so many connections there can be, once it has asked for them."""
        if self.most is None or self.most >= connections + SPARE:
            return connections
        spare = max(OWN, min(SPARE, self.most // 2))
        return max(1, min(connections, self.most - spare))

    @property
    def too_few(self) -> str:
        """Why no server can work with so few; empty where one can."""
        none = self.most is not None and self.most <= OWN
        return TOO_FEW.format(most=self.most, own=OWN) if none else ""


def ensure_enough() -> None:
    """Refused where the store could lack a file before anybody is connected."""
    if few := allowed().too_few:
        detail = f"Too few files: {few}; raise its limit (LimitNOFILE in systemd, ulimit -n)"
        raise Refused(Why.UNAVAILABLE, detail)


def allowed() -> Allowed:
    """What the system says; where it counts otherwise, there is no end."""
    try:
        import resource
    except ImportError:
        return Allowed(None, None)
    ends = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Allowed(*(None if end == resource.RLIM_INFINITY else end for end in ends))


def room_for(connections: int) -> int:
    """How many of so many connections there can be; the system's limit is raised if it may be.

    Past that limit newcomers would be dropped without a word, and the store could open nothing.
    """
    found = allowed()
    wanted = connections + SPARE
    if found.now is not None and found.now < wanted:
        found = asked(wanted, found)
    room = found.room(connections)
    if room < connections:
        detail = FEW.format(most=found.most)
        log.warning("connections.few", extra={"count": room, "detail": detail})
    return room


def asked(wanted: int, found: Allowed) -> Allowed:
    """What there is after asking for so many; more than that there will not be."""
    import resource

    better = wanted if found.most is None else min(wanted, found.most)
    hard = resource.RLIM_INFINITY if found.most is None else found.most
    with contextlib.suppress(ValueError, OSError):  # an endless limit may have an end after all
        resource.setrlimit(resource.RLIMIT_NOFILE, (better, hard))
    now = allowed().now
    return Allowed(now, now)
