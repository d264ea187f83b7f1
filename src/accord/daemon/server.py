"""The daemon's socket: one line of JSON in, one out, for processes of the same user.

One daemon per configuration directory holds `daemon.lock` for as long as it listens. A hook of a
newer version makes it stop listening, so that a new daemon takes over; what it has begun it ends.
"""

import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from accord import __version__
from accord.core.kernel.timestamps import to_iso
from accord.daemon.host_calls import HookRequest
from accord.daemon.requests import RequestHandler
from accord.daemon.takeover import STATUS, STOP, is_newer
from accord.hosts.gate_hook import SOCKET_FILE, peer_uid

log = logging.getLogger("accord.daemon")

MAX_REQUEST_BYTES = 9 << 20
MAX_CONNECTIONS = 64
REQUEST_TIMEOUT_S = 10.0
END_TIMEOUT_S = 30.0


class DaemonServer:
    """Listens in one directory, which is the process's working directory."""

    def __init__(self, handler: RequestHandler, lock: int, version: str = __version__) -> None:
        self._handler = handler
        self._lock = lock
        self._version = version
        self._started_at = time.time()
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._listener = bind_private()
        self._is_ending = threading.Event()

    def serve(self) -> None:
        """Answer until a newer version or a person ends it."""
        while not self._is_ending.is_set():
            try:
                peer, _ = self._listener.accept()
            except OSError:
                break  # closed by `stop`
            self._slots.acquire()
            threading.Thread(target=self._serve_peer, args=(peer,), daemon=True).start()
        deadline = time.monotonic() + END_TIMEOUT_S
        for _ in range(MAX_CONNECTIONS):  # what has begun is ended
            self._slots.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def stop(self) -> None:
        """Stop listening at once, so that another daemon can."""
        if not self._is_ending.is_set():
            self._is_ending.set()
            with suppress(OSError):
                Path(SOCKET_FILE).unlink()
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            os.close(self._lock)

    def _serve_peer(self, peer: socket.socket) -> None:
        try:
            with peer:
                answer = self._answer(peer)
                peer.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass  # the hook has gone
        except Exception:
            log.exception("a request failed")
        finally:
            self._slots.release()

    def _answer(self, peer: socket.socket) -> dict[str, Any]:
        if peer_uid(peer) != os.geteuid():
            return {"error": "this daemon is for another user."}
        line = read_line(peer)
        if line is None:
            return {"error": f"the request is larger than {MAX_REQUEST_BYTES >> 20} MiB."}
        try:
            request = msgspec.json.decode(line, type=HookRequest)
        except (msgspec.DecodeError, RecursionError) as error:
            return {"error": f"the request is not valid: {str(error)[:200]}."}
        if request.event == STATUS:
            return self._status()
        if request.event == STOP or is_newer(request.version, self._version):
            self.stop()
            return {"replaced": True, "pid": os.getpid()}
        return self._handler.answer(request)

    def _status(self) -> dict[str, Any]:
        return {
            "version": self._version,
            "pid": os.getpid(),
            "started_at": to_iso(int(self._started_at * 1000)),
            "connections": self._handler.status(),
        }


def read_line(peer: socket.socket) -> bytes | None:
    """The request; None if it is too long."""
    peer.settimeout(REQUEST_TIMEOUT_S)
    received = bytearray()
    while not received.endswith(b"\n"):
        chunk = peer.recv(1 << 16)
        if not chunk:
            break
        received += chunk
        if len(received) > MAX_REQUEST_BYTES:
            return None
    peer.settimeout(END_TIMEOUT_S)
    return bytes(received)


def bind_private() -> socket.socket:
    """Listen for this user alone; the caller holds the lock, so an old socket is a stale one."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    Path(SOCKET_FILE).unlink(missing_ok=True)
    previous = os.umask(0o177)
    try:
        listener.bind(SOCKET_FILE)  # relative, because the path of a socket is short
    finally:
        os.umask(previous)
    listener.listen(MAX_CONNECTIONS)
    return listener
