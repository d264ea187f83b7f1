"""A whole server in this process, and sockets into it; nobody but alice may know her session."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from uvicorn.server import ServerState

from accord.api.tokens import TokenRequest
from accord.core.kernel.messages import Message
from accord.core.kernel.role_permissions import Kind, Role
from accord.engine.streams.stream import Submission
from accord.identity.token_service import PEOPLE_STREAM, SHELL_ACTOR
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog
from accord.transports.edge.http_protocol import http_protocol_class
from accord.transports.websocket.protocol import websocket_protocol_class
from tests.helpers.engine.harness import PendingReply
from tests.helpers.room.scenario import ALICE, session_create

SESSION = "ses_hidden"
SECRET = b"xyzzy-plugh"
# Less than a trial may take, so that what hangs is named.
RESPONSE_TIMEOUT_S = 15.0
LOOP_TURNS = 12
CLOSE_POLLS = 3000
# A server forgets nothing, so now and then there is a new one.
MAX_INPUTS_PER_SERVER = 400
PIECE_SEPARATOR = b"|~|"


class InProcessServer:
    """The server, with mallory's token at hand."""

    def __init__(self, place: Path) -> None:
        self.directory = place
        self.loop = uvloop.new_event_loop()
        self.loop.set_exception_handler(self._fail)
        self.failures: list[dict[str, Any]] = []
        self.inputs_served = 0
        self.loop.run_until_complete(self._start())

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(context)

    async def _start(self) -> None:
        self.server = Server(ServerOptions(home=self.directory, rate_limit=None), MemoryLog())
        await self.server.start()
        wish = TokenRequest(id="mallory", kind=Kind.HUMAN, roles=frozenset({Role.DRIVER}))
        self.token = (
            await self.server.token_service.admin_for(SHELL_ACTOR).issue(wish)
        ).token.encode()
        opening = Message(
            "m", "2026-01-30T20:00:00Z", SESSION, "alice", session_create(SECRET.decode())
        )
        reply = PendingReply()
        self.server.engine.submit(f"room/{SESSION}", Submission(opening, ALICE, reply))
        await self.server.engine.wait_until_idle()
        assert reply.refusal is None
        self.config = uvicorn.Config(
            self.server.asgi_app(),
            interface="asgi3",
            ws=websocket_protocol_class(self.server.websockets),
            http=http_protocol_class(self.server.connection_limits),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
        self.config.load()
        self.state = ServerState()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.people = self.server.engine.peek(PEOPLE_STREAM)

    def exchange(self, pieces: Sequence[bytes]) -> bytes:
        """All that the server says to these bytes, until both sides have hung up."""
        self.inputs_served += 1
        known = [piece.replace(b"TOKEN", self.token) for piece in pieces]
        return self.loop.run_until_complete(self._exchange(known))

    async def _exchange(self, pieces: Sequence[bytes]) -> bytes:
        ours, theirs = await self._pair()
        with ours:
            made: Any = await self.loop.connect_accepted_socket(self._protocol, theirs)
            heard = asyncio.create_task(self._read(ours))
            try:
                with contextlib.suppress(OSError):
                    for piece in pieces:
                        await self.loop.sock_sendall(ours, piece)
                        await self._turns()
                    await self.server.engine.wait_until_idle()
                    await self._turns()
                    ours.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(RESPONSE_TIMEOUT_S):
                    said = await heard
            finally:
                heard.cancel()
                made[0].abort()
                await self._turns()
        await self._until_gone()
        self._check(said)
        return said

    async def _pair(self) -> tuple[socket.socket, socket.socket]:
        ours = socket.socket()
        ours.setblocking(False)
        await self.loop.sock_connect(ours, self.listener.getsockname())
        theirs, _ = self.listener.accept()
        theirs.setblocking(False)
        return ours, theirs

    def _protocol(self) -> Any:
        made: Any = self.config.http_protocol_class
        return made(config=self.config, server_state=self.state, app_state={}, _loop=self.loop)

    async def _read(self, ours: socket.socket) -> bytes:
        said = b""
        with contextlib.suppress(OSError):
            while more := await self.loop.sock_recv(ours, 1 << 16):
                said += more
        return said

    async def _turns(self) -> None:
        for _ in range(LOOP_TURNS):
            await asyncio.sleep(0)

    async def _until_gone(self) -> None:
        """No connection is left, also in the books; that takes a moment, not long."""
        for _ in range(CLOSE_POLLS):
            if not self.state.connections and not self.server.websockets.connections:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("a connection is left")

    def _check(self, said: bytes) -> None:
        """Nothing went wrong inside, nothing was told that is alice's, nobody was let in."""
        assert self.failures == [], self.failures
        assert self.server.engine.failures == []
        assert SECRET not in said, "a stranger heard of the session"
        assert self.people == self.server.engine.peek(PEOPLE_STREAM), (
            "a stranger changed who may come in"
        )

    def close(self) -> None:
        """Gone."""
        self.listener.close()
        self.loop.run_until_complete(self.server.stop())
        self.loop.close()


class ServerPool:
    """One house after the other."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.server = InProcessServer(place)

    def exchange(self, pieces: Sequence[bytes]) -> bytes:
        """As the one that stands now says it."""
        if self.server.inputs_served >= MAX_INPUTS_PER_SERVER:
            self.server.close()
            self.server = InProcessServer(self.place)
        return self.server.exchange(pieces)
