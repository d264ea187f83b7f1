"""The assembly: the one place where store, engine and transports meet."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from accord.config import Config
from accord.config.descriptors import room_for
from accord.core import people, room
from accord.core.dialects import canonical
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.ulid import ulid
from accord.core.people.tokens import TokenRevoked
from accord.core.provenance import commits
from accord.core.room.state import House, Resolution
from accord.core.work import mirror
from accord.desk import SHELL, STREAM, LocalDesk, Wish
from accord.engine import workers
from accord.engine.clock import SystemClock, WallClock
from accord.engine.engine import Engine, World
from accord.engine.heads import HeadSigner
from accord.engine.lag import Lag
from accord.engine.ports import Clock, EventLog, Sealed, StoreError
from accord.home import KEYS, place
from accord.kernel import Kernel
from accord.mirror.service import Mirrors
from accord.stores import open_log
from accord.transports import archive, bridge, descriptions, operator, pages, probes, unrouted
from accord.transports.caller import Callers
from accord.transports.facts import Sources
from accord.transports.guard import Guard
from accord.transports.hall import Hall
from accord.transports.http import Http
from accord.transports.identity import Keyring
from accord.transports.porch import Porch
from accord.transports.reception import Reception, Trust
from accord.transports.requests import Counted, Requests, Tracer
from accord.transports.scrape import Scrape

if TYPE_CHECKING:
    from accord.config.renewal import Renewal

log = logging.getLogger("accord")

NOT_IN_TIME = (
    "The server stops, and the store did not answer in time. It may have been kept or not: "
    "come back and send it once more with the same id"
)
CONTEXTS = (room.CONTEXT, people.CONTEXT, commits.CONTEXT, mirror.CONTEXT)


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
    otel: bool = False
    drain: float = 0.0
    stop_timeout: float = 10.0
    keep_ended_days: int | None = None
    house: House = House()
    bridge: int | None = None
    tls: tuple[Path, Path] | None = None

    @classmethod
    def of(cls, config: Config, home: Path, bridge: int | None = None) -> "Options":
        """As flags, environment and file say."""
        house = House(
            gate_seconds=config.gate_seconds,
            on_gate_timeout=Resolution(config.on_gate_timeout),
            grant_seconds=config.grant_seconds,
            grace_seconds=config.grace_seconds,
            limits=config.limits,
        )
        return cls(
            home=home,
            host=config.host,
            port=config.port,
            store=config.store,
            auth=config.auth,
            durability=config.durability,
            rate=None if config.rate_limit is None else float(config.rate_limit),
            ready_file=config.ready_file,
            otel=config.otel == "on",
            drain=config.drain,
            stop_timeout=config.stop_timeout,
            keep_ended_days=config.keep_ended_days,
            house=house,
            bridge=bridge,
            tls=config.tls,
        )

    def secure(self) -> "Renewal | None":
        """What TLS is spoken with, if it is; refused where that cannot be used."""
        if self.tls is None:
            return None
        from accord.config.renewal import Renewal  # few servers speak it themselves

        return Renewal(*self.tls)

    @property
    def store_url(self) -> str:
        """The store, by default a file in the data directory."""
        return place(self.home, self.store)


def fresh_ids(clock: Clock) -> Callable[[], str]:
    """ULIDs of this moment."""
    return lambda: ulid(clock.now(), os.urandom(10))


def make_engine(events: EventLog, house: House | None = None, **options: Any) -> Engine:
    """An engine on this log, with everything Accord knows."""
    clock = options.pop("clock", None) or SystemClock()
    rules = msgspec.structs.replace(house or House(), judge=Kernel())
    world = World(canonical, clock, fresh_ids(clock), rules)
    return Engine(events, CONTEXTS, world, **options)


@contextlib.asynccontextmanager
async def local_desk(home: Path, store: str | None = None) -> AsyncIterator[LocalDesk]:
    """Tokens and keys without a server, on the same files."""
    options = Options(home=home, store=store)
    events = await open_log(options.store_url)
    try:
        engine = make_engine(events)
        keyring = Keyring.open(home / KEYS)
        yield LocalDesk(engine, keyring, WallClock())
        await engine.settle()
    finally:
        await events.close()


class Server:
    """Everything a running server consists of."""

    def __init__(self, options: Options, events: EventLog) -> None:
        self.options = options
        self.events = events
        self.engine = make_engine(events, options.house)
        self.keyring = Keyring.open(options.home / KEYS)
        self.desk = LocalDesk(self.engine, self.keyring, WallClock())
        trust = Trust(self.keyring, self.revoked, open=options.auth == "open")
        self.reception = Reception(self.engine, trust, options.rate)
        self.porch = Porch(options.house.limits)
        self.hall = Hall(self.reception, self.porch)
        self.archive, self.callers = archive.Archive(self.engine), Callers(self.reception)
        self.http = Http(self.callers, self.archive)
        self.signer = HeadSigner(events, self.keyring, self.engine.clock)
        self.engine.turned.append(self.heard)
        self.mirrors = Mirrors(self.engine)
        self.tasks: list[asyncio.Task[None]] = []
        self.renewal: Renewal | None = None
        self.stopping = False
        self.lag = Lag()
        self.requests = Requests()
        self.readiness = self._readiness()
        self.scrape = Scrape(self._metrics, self.desk, count=self.callers.count)

    def _readiness(self) -> probes.Readiness:
        checks: dict[str, probes.Check] = {
            "store": probes.store_works(self.events),
            "workers": probes.Following(self.events, [self.signer.name], self.works),
        }
        return probes.Readiness(checks, lambda: self.stopping)

    async def _metrics(self) -> bytes:
        workers = (self.signer.name,)
        from accord.transports import metrics  # much to read, and not everybody asks

        ends = self.renewal.ends if self.renewal else None
        return await metrics.text(
            Sources(self.engine, self.hall, self.porch, self.lag, self.requests, workers, ends)
        )

    def works(self) -> bool:
        """Whether nothing that should go on for ever has ended."""
        return bool(self.tasks) and not any(task.done() for task in self.tasks)

    def revoked(self) -> Any:
        """The revoked tokens, as far as the log says now."""
        people = self.engine.peek(STREAM)
        if people is None:
            raise Refused(Why.UNAVAILABLE, "Who may come in is being looked up; try again")
        return people.revoked

    def heard(self, stream: str, fresh: Sequence[Sealed]) -> None:
        """A revocation ends connections at once."""
        for sealed in fresh if stream == STREAM else ():
            if isinstance(event := sealed.record.event, TokenRevoked):
                self.hall.revoke(event.jti)
                self.http.revoke(event.jti)

    def make_room(self) -> None:
        """Ask the system for as many open files as connections are allowed."""
        self.porch.most = room_for(self.porch.most)

    def secured(self, renewal: "Renewal") -> None:
        """Look after the certificate, and tell until when it is good."""
        self.renewal = renewal
        self.tasks.append(asyncio.create_task(renewal.run()))

    def traced(self, tracer: Tracer) -> None:
        """Tell whoever traces what was done."""
        self.engine.tally.trace, self.requests.tracer = tracer.span, tracer

    async def start(self) -> str:
        """Take up what the log holds; returns a token for the operator."""
        await self.desk.introduce()
        self.reception.sessions.look(await self.engine.start())
        heads = workers.run(self.events, self.signer, self.engine.tally)
        always = (self.engine.follow(), heads, self.lag.run(), self.mirrors.run())
        for work in (*always, *self._retention()):
            self.tasks.append(asyncio.create_task(work))
        wish = Wish(id=operator_id(), kind=Kind.HUMAN, roles=frozenset({Role.ADMIN}))
        return (await self.desk.office(SHELL).issue(wish)).token

    def bridge(self) -> bridge.Bridge:
        """Where git hooks ask, to be opened while it serves."""
        desk = bridge.Desk(self.engine, self.mirrors, lambda: self.stopping)
        return bridge.Bridge(desk, self.options.home, self.options.bridge)

    def say_goodbye(self) -> None:
        """Let everybody go who is connected or waits."""
        self.hall.say_goodbye()
        self.http.say_goodbye()

    def _retention(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Nothing, unless somebody asked for it."""
        days = self.options.keep_ended_days
        if days is not None:
            from accord import retention  # few ask for it

            keys, why = self.options.home / KEYS, f"{days} days after the end"
            trust = retention.Trust(self.keyring, keys, SYSTEM, why)
            keeper = retention.Retention(self.events, self.engine.clock, trust)
            yield retention.run(keeper, days, self.engine.opener.forget)

    async def wind_down(self, within: float) -> None:
        """Take nothing more, and finish what is decided; who waits longer is told to ask again."""
        self.stopping = self.reception.closed = True
        self.engine.scheduler.stop()
        self.engine.pulse.scheduler.stop()
        if not await in_time(self.engine.settle(), within):
            log.error("stop.abandoned", extra={"ms": int(within * 1000)})
            self.engine.abandon(Refused(Why.UNAVAILABLE, NOT_IN_TIME))

    async def stop(self, within: float = 10.0) -> bool:
        """Let go of everything; False when the store did not, in so many seconds."""
        self.say_goodbye()
        for task in self.tasks:
            task.cancel()
        return await in_time(self._let_go(), within)

    async def _let_go(self) -> None:
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.engine.settle()
        with contextlib.suppress(StoreError):  # what is not signed now is at the next start
            await workers.finish(self.events, self.signer)
        await self.events.close()

    def app(self) -> ASGIApp:
        """What is served over plain HTTP."""
        routes = [
            Route("/", pages.home(is_open=self.reception.is_open)),
            Route("/healthz", probes.healthz),
            *descriptions.routes(),
            Route("/readyz", self.readiness.page),
            Route("/metrics", self.scrape.page),
            *self.http.routes(),
            *archive.routes(self.archive, self.callers.identify),
            *operator.routes(self.desk, self.callers.count, self.reception.limits),
        ]
        app = Starlette(routes=routes, exception_handlers=unrouted.HANDLERS)
        counted = Counted(app, self.requests, routes)
        return Guard(counted, strict=self.reception.is_open, closed=lambda: self.reception.closed)


async def in_time(work: Coroutine[Any, Any, None], seconds: float) -> bool:
    """Whether it was done in so many seconds; else it goes on unwatched."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=max(0.0, seconds))
    if done:
        task.result()
    return bool(done)


def operator_id() -> str:
    """The name of whoever started the server, as a participant id."""
    name = os.environ.get("SUDO_USER") or os.environ.get("USER") or "admin"
    slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower()).strip("-")
    return slug if slug and slug != "system" else "admin"
