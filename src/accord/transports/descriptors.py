"""Open files: every connection is one, and a system allows a process only so many."""

import contextlib
import logging

log = logging.getLogger("accord")

# For the store, the bridge, and whatever a library opens.
SPARE = 128
FEW = "the system allows {most} open files; raise its limit (LimitNOFILE in systemd, ulimit -n)"


def room_for(connections: int) -> int:
    """How many of so many connections there can be; the system's limit is raised if it may be.

    Past that limit newcomers would be dropped without a word, and the store could open nothing.
    """
    try:
        import resource
    except ImportError:  # a system that counts otherwise
        return connections
    kind, endless = resource.RLIMIT_NOFILE, resource.RLIM_INFINITY
    wanted = connections + SPARE
    most, hard = resource.getrlimit(kind)
    if most != endless and most < wanted:
        with contextlib.suppress(ValueError, OSError):  # an endless limit may have an end after all
            better = wanted if hard == endless else min(wanted, hard)
            resource.setrlimit(kind, (better, hard))
            most = better
    if most == endless or most >= wanted:
        return connections
    room = max(1, most - min(SPARE, most // 2))
    log.warning("connections.few", extra={"count": room, "detail": FEW.format(most=most)})
    return room
