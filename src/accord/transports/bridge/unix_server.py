"""The bridge on a Unix socket: one line of JSON in, one out (OPEN-56)."""

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import Callable

import msgspec

from accord.core.dialects.refusals import http_refusal
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.bridge.actions import (
    MAX_REQUEST_BYTES,
    ActionResponse,
    BridgeHandler,
    RequestRate,
    parse_line,
    run_action,
)
from accord.transports.bridge.socket_files import BoundSocket

# macOS has no SO_PEERCRED; its `struct xucred` begins with a version and the uid.
_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED = 0, 1, 76


def read_peer_uid(handle: int) -> int | None:
    """The uid of the connected process; None where the kernel does not provide it."""
    with socket.fromfd(handle, socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        if sys.platform == "darwin":
            credentials = peer.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED)
            return int(struct.unpack_from("=II", credentials)[1])
        if not hasattr(socket, "SO_PEERCRED"):
            return None
        credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])


log = logging.getLogger("accord.bridge")

CONNECTION_TIMEOUT_S = 8.0  # for request and response together
MAX_CONNECTIONS = 64

PeerUid = Callable[[int], int | None]


class UnixServer:
    """Serves all connections to the bridge's sockets."""

    def __init__(
        self,
        clerk: BridgeHandler,
        uid: PeerUid = read_peer_uid,
        meter: RequestRate | None = None,
    ) -> None:
        self.handlers = clerk
        self.peer_uid = uid
        self.request_rate = meter or RequestRate()
        self.connection_count = 0
        self.servers: list[asyncio.Server] = []
        self.socket_files: list[BoundSocket] = []

    async def listen(self, bound: BoundSocket) -> None:
        """Serve this socket too."""
        self.socket_files.append(bound)
        server = await asyncio.start_unix_server(
            self._serve, sock=bound.sock, limit=MAX_REQUEST_BYTES
        )
        self.servers.append(server)

    def close(self) -> None:
        """Stop listening and remove the files."""
        for server in self.servers:
            server.close()
        for place in self.socket_files:
            place.remove()
        self.servers, self.socket_files = [], []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            async with asyncio.timeout(CONNECTION_TIMEOUT_S):
                answer = await self._answer(reader, writer)
                body = http_refusal(answer).body if isinstance(answer, Refused) else answer
                writer.write(msgspec.json.encode(body) + b"\n")
                await writer.drain()
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self.connection_count -= 1
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> ActionResponse | Refused:
        try:
            line = await self._read_line(reader)  # read first, or the client may miss the refusal
            self._ensure_allowed(writer)
            action, parameters = parse_line(line)
        except Refused as refusal:
            return refusal
        return await run_action(self.handlers, action, parameters)

    def _ensure_allowed(self, writer: asyncio.StreamWriter) -> None:
        """Check the peer's uid, in case the file's mode was changed."""
        if self.connection_count > MAX_CONNECTIONS:
            raise Refused(Reason.TOO_MANY, "Too many hooks are connected; try again")
        self.request_rate.charge()
        handle = writer.get_extra_info("socket").fileno()
        if (uid := self.peer_uid(handle)) != os.geteuid():
            log.warning("bridge.stranger", extra={"uid": uid})
            raise Refused(Reason.FORBIDDEN, "This bridge is for the user who started the server")

    async def _read_line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            line = error.partial  # the final newline is optional
        except asyncio.LimitOverrunError:
            raise Refused(
                Reason.TOO_LARGE, f"A line may have at most {MAX_REQUEST_BYTES} bytes"
            ) from None
        return line
