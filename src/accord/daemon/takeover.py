"""One daemon at a time: the lock that it holds, and how a newer one takes over.

A process that only finds out that a daemon runs imports nothing more than this.
"""

import fcntl
import json
import os
import socket
import time
from typing import Any

from accord import __version__
from accord.hosts.gate_hook import SOCKET_FILE

LOCK_FILE = "daemon.lock"
PRIVATE_FILE_MODE = 0o600
ASK_TIMEOUT_S = 10.0
TAKEOVER_TIMEOUT_S = 20.0
TAKEOVER_POLL_S = 0.05
# Not the names of events of hosts.
STATUS, STOP = "daemon-status", "daemon-stop"


class AlreadyRunningError(Exception):
    """Another daemon listens."""


def take_lock(version: str = __version__) -> int:
    """The lock of the working directory; raises AlreadyRunningError if a daemon answers there.

    One of an older version may still end what it has begun, and one that starts may not listen yet.
    """
    handle = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    deadline = time.monotonic() + TAKEOVER_TIMEOUT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            running = ask_daemon(STATUS)
            is_current = running is not None and not is_newer(version, str(running.get("version")))
            if is_current or time.monotonic() > deadline:
                os.close(handle)
                raise AlreadyRunningError from None
            if running is not None:
                ask_daemon(STOP)
            time.sleep(TAKEOVER_POLL_S)
        else:
            return handle


def ask_daemon(event: str, timeout_s: float = ASK_TIMEOUT_S) -> dict[str, Any] | None:
    """Ask the daemon of the working directory; None if none answers."""
    request = {"record": "", "host": "", "event": event, "payload": {}}
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(SOCKET_FILE)
            connection.sendall(json.dumps(request).encode() + b"\n")
            received = b""
            while chunk := connection.recv(1 << 16):
                received += chunk
        answer = json.loads(received)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def is_newer(one: str, other: str) -> bool:
    """Whether a version is newer than another; what cannot be compared is not."""
    try:
        return version_key(one) > version_key(other)
    except ValueError:
        return False


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a version."""
    return tuple(int(part) for part in version.split("."))
