"""Serving: the listening socket, uvicorn, signals, and the ready file."""

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
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from accord.atomic_files import write_private
from accord.core.kernel.refusal import Reason, Refused
from accord.data_dir import KEYS_DIR_NAME
from accord.identity.token_signing import ensure_loopback
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.server.several_servers import link_to_others
from accord.stores import open_log
from accord.transports.edge.tls import protocol_factory
from accord.transports.websocket.protocol import websocket_protocol_class

if TYPE_CHECKING:
    from accord.settings.server.certificate_reload import CertificateReloader
    from accord.telemetry.tracing import Tracing

log = logging.getLogger("accord")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANGUP_SIGNAL = getattr(signal, "SIGHUP", None)  # not on Windows
# Seconds that the last steps get even if no time is left.
MIN_STOP_S = 0.5
# Exit code if the store did not close in time; a retry may help.
EXIT_UNFINISHED = 6
# Frequent garbage collection costs a tenth of the throughput; hot paths make no cycles.
GC_THRESHOLD = (50_000, 20, 50)


def bind_socket(host: str, port: int) -> socket.socket:
    """The listening socket; Refused with a hint if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise bind_refusal(host, port, error) from error
    sock.listen(1024)
    sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
    return sock


def bind_refusal(host: str, port: int, error: OSError) -> Refused:
    """Why this address cannot be used, and what to try."""
    what = error.strerror or str(error)
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        detail = f"{host} is not an address of this machine ({what}); try --host 127.0.0.1"
        return Refused(Reason.MALFORMED, detail)
    taken = "stop what listens there, or name another --port; 0 picks a free one"
    do = "name a --port above 1023" if error.errno == errno.EACCES else taken
    return Refused(Reason.UNAVAILABLE, f"Cannot listen on {host}:{port}: {what}; {do}")


class _Uvicorn(uvicorn.Server):
    """uvicorn that reports when it is ready and when it is about to stop."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.on_ready = ready
        self.on_stop = end

    def stop_listening(self) -> None:
        """Accept no new connections."""
        for each in self.servers:
            each.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_stop()  # otherwise uvicorn waits for requests that wait for us
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: uvicorn would raise them again at the end and kill the process."""
        yield


class Shutdown:
    """The first signal asks for a graceful stop within a time, the second for an immediate one.

    Whatever was acknowledged is on disk, so nothing is lost either way.
    """

    def __init__(self, server: Server, http: _Uvicorn, renew: asyncio.Event | None) -> None:
        self.server = server
        self.reload_certificate = renew
        self.http = http
        self.loop = asyncio.get_running_loop()
        self.deadline: float | None = None
        self.work: asyncio.Task[None] | None = None
        self.stop_requested = False

    def __enter__(self) -> Self:
        self.old_handlers = {each: signal.signal(each, self._on_signal) for each in SIGNALS}
        if (
            HANGUP_SIGNAL and signal.getsignal(HANGUP_SIGNAL) is not signal.SIG_IGN
        ):  # ignored under nohup
            self.old_handlers[HANGUP_SIGNAL] = signal.signal(HANGUP_SIGNAL, self._on_hangup)
        self.has_terminal = os.isatty(0)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self.old_handlers.items():
            signal.signal(each, handler)

    @property
    def seconds_left(self) -> float:
        """Seconds left of the time for a graceful stop."""
        if self.deadline is None:
            self.deadline = self.loop.time() + self.server.options.stop_timeout
        return max(MIN_STOP_S, self.deadline - self.loop.time())

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stop_requested:
            exit_now(128 + number)
        self.stop_requested = True
        # At once: under a flood of messages the loop may not get to its next turn in time.
        self.server.stopping.set()
        self.server.intake.closed = not self.server.options.drain
        self.loop.call_soon_threadsafe(self._begin)

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        """The terminal closed; a server without a terminal reloads its certificate instead."""
        if self.has_terminal and not self.stop_requested:  # shell and kernel may both send it
            self._on_signal(number, frame)
        elif self.reload_certificate is not None:
            self.loop.call_soon_threadsafe(self.reload_certificate.set)

    def _begin(self) -> None:
        log.info("stop.begun")
        self.work = self.loop.create_task(self._end())

    async def _end(self) -> None:
        try:
            await asyncio.sleep(self.server.options.drain)
            self.http.stop_listening()
            await self.server.finish_pending(self.seconds_left / 2)
            self.http.config.timeout_graceful_shutdown = max(1, int(self.seconds_left / 2))
        finally:
            self.http.should_exit = True


def log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a callback by its type only; its text may contain content."""
    log.error("loop.failed", exc_info=context.get("exception"))


def exit_now(status: int) -> NoReturn:
    """End the process at once, whatever still runs in it."""
    logging.shutdown()
    os._exit(status)


class ReadyInfo(msgspec.Struct, frozen=True):
    """What a started server reports."""

    url: str
    ws_url: str
    pid: int
    admin_token: str


def write_ready_file(path: Path, ready: ReadyInfo) -> None:
    """Write the ready file atomically, readable by its owner only."""
    write_private(path, msgspec.json.encode(ready))


# Gets the address, and a one-time code for signing in if one is wanted.
OnReady = Callable[[ReadyInfo, tuple[str, ...]], None]


def announce(
    file: Path | None, ready: ReadyInfo, codes: tuple[str, ...], on_ready: OnReady
) -> None:
    """Connections are accepted: write the ready file and call `on_ready`."""
    if file:
        write_ready_file(file, ready)
    on_ready(ready, codes)


async def serve(options: ServerOptions, on_ready: OnReady) -> None:
    """Run until a signal; calls `on_ready` with the address once connections are accepted."""
    if options.auth == "open":
        ensure_loopback(options.host)
    secure = options.load_certificate()
    tracing = load_tracing() if options.otel == "on" else None
    sock = bind_socket(options.host, options.port)
    try:
        server, token = await _start_server(options, secure, tracing)
    except BaseException:
        sock.close()
        raise
    ready = _ready_info(options, sock, token)
    server.public_url = server.public_url or ready.url
    config = _uvicorn_config(server, secure)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    asyncio.get_running_loop().set_exception_handler(log_loop_error)
    on_started = partial(
        announce, options.ready_file, ready, await server.sign_in_codes(), on_ready
    )
    http = _Uvicorn(config, on_started, server.disconnect_all)
    with Shutdown(server, http, secure.reload_requested if secure else None) as ending:
        try:
            async with server.bridge():
                await http.serve(sockets=[sock])
        finally:
            clean = await server.stop(ending.seconds_left)
            if tracing:
                await tracing.stop()
        if not clean:
            log.error("stop.unfinished")
            exit_now(EXIT_UNFINISHED)
    log.info("stop.done")


async def _start_server(
    options: ServerOptions, secure: "CertificateReloader | None", tracing: "Tracing | None"
) -> tuple[Server, str]:
    """Start a server on its log; returns it with a token for the operator."""
    events = await open_log(options.store_url, durability=options.durability)
    link = await link_to_others(events, options.home / KEYS_DIR_NAME)
    server = Server(options, events, link)
    server.raise_file_limit()
    if tracing:
        server.set_tracer(tracing)
    token = await server.start()
    if secure:
        server.start_certificate_reload(secure)
    return server, token


def _uvicorn_config(server: Server, secure: "CertificateReloader | None") -> uvicorn.Config:
    """Configures uvicorn with our protocols and without its own logging."""
    config = uvicorn.Config(
        "",
        ws=websocket_protocol_class(server.websockets),
        http=protocol_factory(server.connection_limits, secure and secure.current_context),  # type: ignore[arg-type]  # only ever called
        lifespan="off",
        interface="asgi3",  # which uvicorn sees only in coroutine functions
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    # What a proxy says about its client matters to pages; reading it costs every call of a tool.
    proxied = partial(ProxyHeadersMiddleware, trusted_hosts=config.forwarded_allow_ips)
    config.app = server.asgi_app(proxied)
    return config


def load_tracing() -> "Tracing":
    """Tracing, if enabled; Refused if its packages are not installed."""
    from accord.telemetry.tracing import Tracing

    return Tracing()


def _ready_info(options: ServerOptions, sock: socket.socket, token: str) -> ReadyInfo:
    port = sock.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    where = f"{host}:{port}"
    s = "s" if options.tls else ""
    return ReadyInfo(f"http{s}://{where}", f"ws{s}://{where}/ws", os.getpid(), token)


def run_server(options: ServerOptions, on_ready: OnReady) -> None:
    """Serve on a uvloop event loop."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options, on_ready))
