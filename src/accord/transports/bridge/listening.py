"""Where a server's bridge listens: its own socket, and the places that hooks know by heart."""

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .lines import Lines
from .meter import Meter
from .place import COMPATIBLE, Unusable, bind, private, shared
from .table import Clerk

log = logging.getLogger("accord.bridge")

HOST = "127.0.0.1"


class Places(NamedTuple):
    """Where to listen; without a port only in the data directory, so that many can run."""

    home: Path
    port: int | None = None
    env: Mapping[str, str] = os.environ
    compatible: Path = COMPATIBLE

    def sockets(self) -> Iterator[Path]:
        """The files, the most certain first."""
        yield private(self.home)
        if self.port is not None:
            yield from shared(self.env, self.compatible)


class Listening:
    """The bridge's sockets while the server runs; whatever is taken is a warning, not an end."""

    def __init__(self, clerk: Clerk, places: Places) -> None:
        self.places = places
        self.meter = Meter()
        self.lines = Lines(clerk, meter=self.meter)

    async def open(self) -> None:
        """Listen on every socket that can be had."""
        if not hasattr(socket, "AF_UNIX"):
            return
        for path in self.places.sockets():
            try:
                await self.lines.listen(bind(path))
            except Unusable as no:
                log.warning("bridge.without", extra={"detail": str(no)})

    def port(self) -> socket.socket | None:
        """The bridge's port, if it is wanted and free."""
        if self.places.port is None:
            return None
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, self.places.port))
        except OSError as error:
            sock.close()
            where = f"{HOST}:{self.places.port}"
            detail = f"{where}: {error.strerror}; hooks use the socket"
            log.warning("bridge.without", extra={"detail": detail})
            return None
        sock.listen(64)
        sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
        return sock

    def close(self) -> None:
        """Let go of the sockets and remove their files."""
        self.lines.close()
