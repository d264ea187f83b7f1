"""Serving: the socket, uvicorn on it, and the word that it is ready."""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import msgspec
import uvicorn

from accord.app import Options, Server
from accord.core.kernel.refusal import Refused, Why
from accord.files import write_private
from accord.stores import open_log
from accord.transports.doorway import door
from accord.transports.identity import ensure_loopback
from accord.transports.websocket import protocol_class

if TYPE_CHECKING:
    from accord.config.renewal import Renewal
    from accord.tracing import Tracing

log = logging.getLogger("accord")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANG_UP = getattr(signal, "SIGHUP", None)  # where there is such a thing
# However little time is left, something is tried.
SHORTEST_S = 0.5
# The store would not let go in time; trying again later may help.
UNFINISHED = 6
# Collecting often costs a tenth of the throughput; nothing on the hot path makes cycles.
GC_THRESHOLD = (50_000, 20, 50)


def bind(host: str, port: int) -> socket.socket:
    """The listening socket; a taken port is a refusal that helps."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise unbound(host, port, error) from error
    sock.listen(1024)
    sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
    return sock


def unbound(host: str, port: int, error: OSError) -> Refused:
    """Why nobody can listen there, and what to try."""
    what = error.strerror or str(error)
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        detail = f"{host} is no address of this machine ({what}); try --host 127.0.0.1"
        return Refused(Why.MALFORMED, detail)
    taken = "stop what listens there, or name another --port; 0 picks a free one"
    do = "name a --port above 1023" if error.errno == errno.EACCES else taken
    return Refused(Why.UNAVAILABLE, f"Cannot listen on {host}:{port}: {what}; {do}")


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it is ready and when it is about to stop."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.ready = ready
        self.end = end

    def stop_listening(self) -> None:
        """Nobody new comes in."""
        for each in self.servers:
            each.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.end()  # or uvicorn would wait for whoever waits for us
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are not uvicorn's: it would raise them again, and the process die of it."""
        yield


class Ending:
    """The first signal asks for a good end within a time, the second for any.

    Whatever was acknowledged is on disk, so that nothing is lost either way.
    """

    def __init__(self, server: Server, http: _Uvicorn, renew: asyncio.Event | None) -> None:
        self.server = server
        self.renew = renew
        self.http = http
        self.loop = asyncio.get_running_loop()
        self.deadline: float | None = None
        self.work: asyncio.Task[None] | None = None
        self.asked = False

    def __enter__(self) -> Self:
        self.before = {each: signal.signal(each, self._take) for each in SIGNALS}
        if HANG_UP and signal.getsignal(HANG_UP) is not signal.SIG_IGN:  # as under nohup
            self.before[HANG_UP] = signal.signal(HANG_UP, self._hung_up)
        self.attached = os.isatty(0)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self.before.items():
            signal.signal(each, handler)

    @property
    def left(self) -> float:
        """Seconds until it has to be over."""
        if self.deadline is None:
            self.deadline = self.loop.time() + self.server.options.stop_timeout
        return max(SHORTEST_S, self.deadline - self.loop.time())

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            leave(128 + number)
        self.asked = True
        # At once: a flood of messages would keep the loop from its next turn.
        self.server.stopping = True
        self.server.reception.closed = not self.server.options.drain
        self.loop.call_soon_threadsafe(self._begin)

    def _hung_up(self, number: int, frame: FrameType | None) -> None:
        """Its terminal is gone; where it has none, somebody wants the certificate looked at."""
        if self.attached and not self.asked:  # shell and kernel may both tell of it
            self._take(number, frame)
        elif self.renew is not None:
            self.loop.call_soon_threadsafe(self.renew.set)

    def _begin(self) -> None:
        log.info("stop.begun")
        self.work = self.loop.create_task(self._end())

    async def _end(self) -> None:
        try:
            await asyncio.sleep(self.server.options.drain)
            self.http.stop_listening()
            await self.server.wind_down(self.left / 2)
            self.http.config.timeout_graceful_shutdown = max(1, int(self.left / 2))
        finally:
            self.http.should_exit = True


def report(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Something failed that nobody waits for; what it was about is not told."""
    log.error("loop.failed", exc_info=context.get("exception"))


def leave(status: int) -> NoReturn:
    """End the process now, whatever still hangs in it."""
    logging.shutdown()
    os._exit(status)


class Ready(msgspec.Struct, frozen=True):
    """What a started server tells."""

    url: str
    ws_url: str
    pid: int
    admin_token: str


def write_ready(path: Path, ready: Ready) -> None:
    """The ready file appears whole, for its owner alone."""
    write_private(path, msgspec.json.encode(ready))


def announce(file: Path | None, ready: Ready, told: Callable[[Ready], None]) -> None:
    """Connections are accepted: the ready file says so, and `told` hears it."""
    if file:
        write_ready(file, ready)
    told(ready)


async def serve(options: Options, told: Callable[[Ready], None]) -> None:
    """Run until a signal; `told` hears the address once connections are accepted."""
    if options.auth == "open":
        ensure_loopback(options.host)
    secure = options.secure()
    tracing = traced() if options.otel else None
    sock = bind(options.host, options.port)
    try:
        server, token = await _started(options, secure, tracing)
    except BaseException:
        sock.close()
        raise
    ready = _ready(options, sock, token)
    config = _config(server, secure)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    asyncio.get_running_loop().set_exception_handler(report)
    on_ready = partial(announce, options.ready_file, ready, told)
    http = _Uvicorn(config, on_ready, server.say_goodbye)
    with Ending(server, http, secure.asked if secure else None) as ending:
        try:
            async with server.bridge():
                await http.serve(sockets=[sock])
        finally:
            clean = await server.stop(ending.left)
            if tracing:
                await tracing.stop()
        if not clean:
            log.error("stop.unfinished")
            leave(UNFINISHED)
    log.info("stop.done")


async def _started(
    options: Options, secure: "Renewal | None", tracing: "Tracing | None"
) -> tuple[Server, str]:
    """A server that has taken up what its log holds, and a token for the operator."""
    events = await open_log(options.store_url, durability=options.durability)
    server = Server(options, events)
    server.make_room()
    if tracing:
        server.traced(tracing)
    token = await server.start()
    if secure:
        server.secured(secure)
    return server, token


def _config(server: Server, secure: "Renewal | None") -> uvicorn.Config:
    """How uvicorn serves it: our protocols at its socket, and not a word of its own."""
    return uvicorn.Config(
        server.app(),
        ws=protocol_class(server.hall),
        http=door(server.porch, secure and secure.shown),  # type: ignore[arg-type]  # only ever called
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )


def traced() -> "Tracing":
    """Traces, for which more has to be installed; refused where it is not."""
    from accord.tracing import Tracing

    return Tracing()


def _ready(options: Options, sock: socket.socket, token: str) -> Ready:
    port = sock.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    where = f"{host}:{port}"
    s = "s" if options.tls else ""
    return Ready(f"http{s}://{where}", f"ws{s}://{where}/ws", os.getpid(), token)


def run(options: Options, told: Callable[[Ready], None]) -> None:
    """Serve on the fastest loop there is."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options, told))
