"""The bridge on a Unix socket: one JSON line in, one out (OPEN-56)."""

import asyncio
import logging
import os
from collections.abc import Callable

import msgspec

from accord.core.kernel.refusal import Refused, Why

from . import peer
from .meter import Meter
from .place import Bound
from .table import LARGEST_ASK, Answer, Clerk, answered, read_line, told

log = logging.getLogger("accord.bridge")

SECONDS = 8.0  # to ask, to be answered and to read it
MOST = 64

Uid = Callable[[int], int | None]


class Lines:
    """Everybody who is connected to the bridge's sockets."""

    def __init__(self, clerk: Clerk, uid: Uid = peer.uid, meter: Meter | None = None) -> None:
        self.clerk = clerk
        self.uid = uid
        self.meter = meter or Meter()
        self.here = 0
        self.servers: list[asyncio.Server] = []
        self.places: list[Bound] = []

    async def listen(self, bound: Bound) -> None:
        """Serve this socket, too."""
        self.places.append(bound)
        server = await asyncio.start_unix_server(self._met, sock=bound.sock, limit=LARGEST_ASK)
        self.servers.append(server)

    def close(self) -> None:
        """Nobody new comes in, and the files are gone."""
        for server in self.servers:
            server.close()
        for place in self.places:
            place.remove()
        self.servers, self.places = [], []

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.here += 1
        try:
            async with asyncio.timeout(SECONDS):
                answer, _ = told(await self._answer(reader, writer))
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self.here -= 1
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer | Refused:
        try:
            line = await self._line(reader)  # or whoever is refused would not hear why
            self._check(writer)
            action, said = read_line(line)
        except Refused as no:
            return no
        return await answered(self.clerk, action, said)

    def _check(self, writer: asyncio.StreamWriter) -> None:
        """The file's mode says the same; this holds even where somebody opened it up."""
        if self.here > MOST:
            raise Refused(Why.TOO_MANY, "Too many hooks ask at once; try again")
        self.meter.count()
        handle = writer.get_extra_info("socket").fileno()
        if (who := self.uid(handle)) != os.geteuid():
            log.warning("bridge.stranger", extra={"uid": who})
            raise Refused(Why.FORBIDDEN, "This bridge is for the user who started the server")

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as short:
            line = short.partial  # a line may end with what was sent
        except asyncio.LimitOverrunError:
            raise Refused(Why.TOO_LARGE, f"A line has at most {LARGEST_ASK} bytes") from None
        return line
