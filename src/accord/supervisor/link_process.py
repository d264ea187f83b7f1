"""Starts the link as a process of its own, with one socket and the person's terminal."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping

# What the link's own requests depend on; the rest of the environment is the host's.
VARIABLES = ("HOME", "LANG", "PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")


class LinkProcess:
    """At most one runs at a time; those that ended are taken leave of."""

    def __init__(self, terminal: int, environment: Mapping[str, str]) -> None:
        self._terminal = terminal
        self._environment = {
            name: value
            for name, value in environment.items()
            if name in VARIABLES or name.lower().endswith("_proxy")
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> socket.socket:
        """Start one; returns our end of its socket."""
        self.close()
        ours, theirs = socket.socketpair()
        terminal = os.dup(self._terminal)
        try:
            self._process = subprocess.Popen(
                (
                    *(sys.executable, "-P", "-m", "accord.supervisor.link"),
                    *(str(theirs.fileno()), str(terminal)),
                ),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), terminal),
            )
        finally:
            theirs.close()
            os.close(terminal)
        return ours

    def close(self, wait_s: float = 5.0) -> None:
        """End the one before, if it has not ended by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
