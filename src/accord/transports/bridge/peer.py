"""Who is at the other end of a Unix socket, as the kernel says it."""

import socket
import struct
import sys

# macOS has no SO_PEERCRED: its `struct xucred` begins with a version and the uid.
_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED = 0, 1, 76


def uid(handle: int) -> int | None:
    """The user of the process that connected; None where the kernel does not tell."""
    with socket.fromfd(handle, socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        if sys.platform == "darwin":
            told = peer.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED)
            return int(struct.unpack_from("=II", told)[1])
        if not hasattr(socket, "SO_PEERCRED"):
            return None
        told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", told)[1])
