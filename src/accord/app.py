"""The assembly: the one place where store, engine and transports meet."""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from accord.core import people, room
from accord.core.dialects import canonical
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.ids import ulid
from accord.core.kernel.refusal import Refused, Why
from accord.core.people.tokens import TokenRevoked
from accord.core.room.state import House
from accord.desk import SHELL, STREAM, LocalDesk, Wish
from accord.engine import workers
from accord.engine.clock import SystemClock
from accord.engine.engine import Engine, World
from accord.engine.heads import HeadSigner
from accord.engine.ports import Clock, EventLog, Sealed, StoreError
from accord.stores import open_log
from accord.transports import archive, operator
from accord.transports.guard import Guard
from accord.transports.head import Porch, http_class
from accord.transports.identity import Keyring, bearer, ensure_loopback, open_actor
from accord.transports.reception import Reception, Trust
from accord.transports.websocket import Hall, protocol_class

log = logging.getLogger("accord")

CONTEXTS = (room.CONTEXT, people.CONTEXT)
DATABASE = "accord.db"
KEYS = "keys"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # where there is such a thing
# Collecting often costs a tenth of the throughput; nothing on the hot path makes cycles.
GC_THRESHOLD = (50_000, 20, 50)


class Options(msgspec.Struct, frozen=True):
    """How a server runs."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 7420
    store: str | None = None
    auth: str = "token"
    durability: str = "full"
    rate: float | None = 200.0
    ready_file: Path | None = None
    house: House = House()

    @property
    def store_url(self) -> str:
        """The store, by default a file in the data directory."""
        return self.store or f"sqlite:{self.home / DATABASE}"


def fresh_ids(clock: Clock) -> Callable[[], str]:
    """ULIDs of this moment."""
    return lambda: ulid(clock.now(), os.urandom(10))


def make_engine(events: EventLog, house: House | None = None, **options: Any) -> Engine:
    """An engine on this log, with everything Accord knows."""
    clock = options.pop("clock", None) or SystemClock()
    world = World(canonical, clock, fresh_ids(clock), house or House())
    return Engine(events, CONTEXTS, world, **options)


@contextlib.asynccontextmanager
async def local_desk(home: Path, store: str | None = None) -> AsyncIterator[LocalDesk]:
    """Tokens and keys without a server, on the same files."""
    options = Options(home=home, store=store)
    events = await open_log(options.store_url)
    try:
        engine = make_engine(events)
        keyring = Keyring.open(home / KEYS, engine.clock.now)
        yield LocalDesk(engine, keyring, engine.clock)
        await engine.settle()
    finally:
        await events.close()


class Server:
    """Everything a running server consists of."""

    def __init__(self, options: Options, events: EventLog) -> None:
        self.options = options
        self.events = events
        self.engine = make_engine(events, options.house)
        self.keyring = Keyring.open(options.home / KEYS, self.engine.clock.now)
        self.desk = LocalDesk(self.engine, self.keyring, self.engine.clock)
        trust = Trust(self.keyring, self.revoked, open=options.auth == "open")
        self.reception = Reception(self.engine, trust, options.rate)
        self.porch = Porch()
        self.hall = Hall(self.reception, self.porch)
        self.signer = HeadSigner(events, self.keyring, self.engine.clock)
        self.engine.heard.append(self.heard)
        self.tasks: list[asyncio.Task[None]] = []

    def revoked(self) -> Any:
        """The revoked tokens, as far as the log says now."""
        people = self.engine.peek(STREAM)
        if people is None:
            raise Refused(Why.UNAVAILABLE, "Who may come in is being looked up; try again")
        return people.revoked

    def heard(self, sealed: Sealed) -> None:
        """A revocation ends connections at once."""
        event = sealed.record.event
        if isinstance(event, TokenRevoked):
            self.hall.revoke(event.jti)

    async def start(self) -> str:
        """Take up what the log holds; returns a token for the operator."""
        await self.desk.introduce()
        await self.engine.start()
        for work in (self.engine.follow(), workers.run(self.events, self.signer)):
            self.tasks.append(asyncio.create_task(work))
        wish = Wish(id=operator_id(), kind=Kind.HUMAN, roles=frozenset({Role.ADMIN}))
        return (await self.desk.office(SHELL).issue(wish)).token

    async def stop(self) -> None:
        """Finish what is under way, then let go."""
        self.hall.say_goodbye()
        self.engine.scheduler.stop()
        self.engine.pulse.scheduler.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.engine.settle()
        with contextlib.suppress(StoreError):  # what is not signed now is at the next start
            await workers.finish(self.events, self.signer)
        await self.events.close()

    async def identify(self, request: Request) -> Actor:
        """Who is asking over HTTP; asking counts like any message."""
        actor = self._who(request)
        now = asyncio.get_running_loop().time()
        if (bucket := self.reception.buckets.of(actor, now)) is not None:
            bucket.weigh(0, now)
            bucket.count("", 0)
        return actor

    def _who(self, request: Request) -> Actor:
        """A token, or on trust whoever `as` says."""
        token = bearer(request.headers.getlist("authorization"))
        if token is None and self.reception.is_open and (name := request.query_params.get("as")):
            return open_actor(name, Kind.HUMAN)
        if token is None:
            raise Refused(Why.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        return self.reception.identify(token).actor

    def app(self) -> ASGIApp:
        """What is served over plain HTTP."""
        routes = [
            Route("/", home),
            Route("/healthz", healthz),
            *archive.routes(archive.Archive(self.engine), self.identify),
            *operator.routes(self.desk),
        ]
        return Guard(Starlette(routes=routes), strict=self.reception.is_open)


async def home(request: Request) -> Response:
    """A page that says what this is and how to come in."""
    return HTMLResponse(HOME.replace("{url}", str(request.base_url).rstrip("/")))


async def healthz(request: Request) -> Response:
    """Alive."""
    return PlainTextResponse("ok\n")


HOME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Accord</title>
<style>
 body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 12vh auto; padding: 0 1rem;
        color: #1c1e21; background: #fbfaf8 }
 h1 { font-weight: 600; letter-spacing: -.02em }
 code, pre { font: 14px/1.6 ui-monospace, monospace }
 pre { background: #f0eee9; padding: 1rem; border-radius: 8px; overflow-x: auto }
 @media (prefers-color-scheme: dark) { body { color: #e8e6e3; background: #17181a }
  pre { background: #222427 } }
</style>
<h1>Accord</h1>
<p>People and coding agents decide together here, and nothing risky runs until the right people
agree. This server speaks PVP over WebSocket at <code>/ws</code>.</p>
<p>From a shell, with the token the server printed or an operator gave you:</p>
<pre>export ACCORD_URL={url}
export ACCORD_TOKEN=…
accord session create --name "First steps"
accord gates</pre>
<p>This version has no page of its own to work on. The sign-in link that the server printed leads
here, and into that page once it is there; until then the shell is the way in.</p>
</html>
"""


def operator_id() -> str:
    """The name of whoever started the server, as a participant id."""
    name = os.environ.get("SUDO_USER") or os.environ.get("USER") or "admin"
    slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower()).strip("-")
    return slug if slug and slug != "system" else "admin"


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
    other = "--port 7420" if error.errno == errno.EACCES else "--port 0"
    return Refused(Why.UNAVAILABLE, f"Cannot listen on {host}:{port}: {what}; try {other}")


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the serving; what comes after it is ours, the store above all.

        uvicorn would raise the signal again, and the process would die of it.
        """
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in signals}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


class Ready(msgspec.Struct, frozen=True):
    """What a started server tells."""

    url: str
    ws_url: str
    pid: int
    admin_token: str


def write_ready(path: Path, ready: Ready) -> None:
    """The ready file appears whole, for its owner alone."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(ready))
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


async def serve(options: Options, told: Callable[[Ready], None]) -> None:
    """Run until a signal; `told` hears the address once connections are accepted."""
    if options.auth == "open":
        ensure_loopback(options.host)
    sock = bind(options.host, options.port)
    try:
        events = await open_log(options.store_url, durability=options.durability)
        server = Server(options, events)
        token = await server.start()
    except BaseException:
        sock.close()
        raise
    ready = _ready(options, sock, token)

    def on_ready() -> None:
        if options.ready_file:
            write_ready(options.ready_file, ready)
        told(ready)

    config = uvicorn.Config(
        server.app(),
        ws=protocol_class(server.hall.admit, server.porch),
        http=http_class(server.porch),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    try:
        await _Uvicorn(config, on_ready).serve(sockets=[sock])
    finally:
        await server.stop()


def _ready(options: Options, sock: socket.socket, token: str) -> Ready:
    port = sock.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    where = f"{host}:{port}"
    return Ready(f"http://{where}", f"ws://{where}/ws", os.getpid(), token)


def run(options: Options, told: Callable[[Ready], None]) -> None:
    """Serve on the fastest loop there is."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(options, told))
