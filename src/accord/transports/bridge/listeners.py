"""The addresses a bridge listens on.

Its data directory's socket, and those hooks try by default.
"""

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from accord.transports.bridge.actions import BridgeHandler, RequestRate
from accord.transports.bridge.socket_files import (
    COMPATIBLE_SOCKET,
    UnusableSocket,
    bind_socket,
    data_dir_socket,
    shared_sockets,
)
from accord.transports.bridge.unix_server import UnixServer

log = logging.getLogger("accord.bridge")

BRIDGE_HOST = "127.0.0.1"


class ListenAddresses(NamedTuple):
    """Where to listen.

    Without a port only in the data directory, so that several servers can run.
    """

    home: Path
    port: int | None = None
    env: Mapping[str, str] = os.environ
    compatible_path: Path = COMPATIBLE_SOCKET

    def sockets(self) -> Iterator[Path]:
        """Socket files, the most reliable first."""
        yield data_dir_socket(self.home)
        if self.port is not None:
            yield from shared_sockets(self.env, self.compatible_path)


class Listeners:
    """The bridge's sockets; an address that is taken is a warning, not an error."""

    def __init__(self, handlers: BridgeHandler, addresses: ListenAddresses) -> None:
        self.addresses = addresses
        self.request_rate = RequestRate()
        self.unix_server = UnixServer(handlers, meter=self.request_rate)

    async def open(self) -> None:
        """Listen on every socket that is available."""
        if not hasattr(socket, "AF_UNIX"):
            return
        for path in self.addresses.sockets():
            try:
                await self.unix_server.listen(bind_socket(path))
            except UnusableSocket as error:
                log.warning("bridge.without", extra={"detail": str(error)})

    def bind_port(self) -> socket.socket | None:
        """The bridge's TCP port, if configured and free."""
        if self.addresses.port is None:
            return None
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((BRIDGE_HOST, self.addresses.port))
        except OSError as error:
            sock.close()
            where = f"{BRIDGE_HOST}:{self.addresses.port}"
            detail = f"{where}: {error.strerror}; hooks use the Unix socket instead"
            log.warning("bridge.without", extra={"detail": detail})
            return None
        sock.listen(64)
        sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
        return sock

    def close(self) -> None:
        """Close the sockets and remove their files."""
        self.unix_server.close()
