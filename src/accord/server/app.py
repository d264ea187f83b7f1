"""Assembles the server from store, engine and transports."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from accord.api.people import InvitationRequest
from accord.api.tokens import TokenRequest
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.state import People
from accord.core.people.tokens import TokenRevoked
from accord.data_dir import KEYS_DIR_NAME
from accord.engine import workers
from accord.engine.committer import of_streams
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord, EventLog, ServerLink, StoreError
from accord.engine.scheduling import WallClock
from accord.engine.servers.group import ServerGroup
from accord.engine.workers import HeadSigner
from accord.identity.sign_in_service import SignInService
from accord.identity.token_service import PEOPLE_STREAM, SHELL_ACTOR, TokenService
from accord.identity.token_signing import Keyring
from accord.pact.mirror.service import MirrorService
from accord.server.call_rules import SignedCallRules
from accord.server.engine_factory import make_engine
from accord.server.options import ServerOptions, operator_id
from accord.server.several_servers import LagCheck, SeveralServers
from accord.settings.server.open_files import raise_for_connections
from accord.telemetry.loop_lag import LoopLag
from accord.telemetry.measurements import MetricSources
from accord.telemetry.metrics_endpoint import MetricsEndpoint
from accord.telemetry.middleware import RequestStats, RequestStatsMiddleware, Tracer
from accord.transports import bridge
from accord.transports.bridge.member_handlers import MemberHandlers
from accord.transports.bridge.queries import BridgeQueries
from accord.transports.edge.connection_limits import ConnectionLimits, PrincipalConnections
from accord.transports.edge.origin import OriginMiddleware, names_this_server
from accord.transports.http import (
    admin,
    error_handlers,
    health,
    page,
    session_turns,
    sessions,
)
from accord.transports.http.api_docs import endpoints as api_docs
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.git_hooks import GitHookEndpoints
from accord.transports.http.home import HomeEndpoints
from accord.transports.http.messages.endpoints import MessageEndpoints
from accord.transports.http.messages.waiting_limits import Waiters
from accord.transports.http.people.sign_in import SignInEndpoints
from accord.transports.http.policies.signed_policies import PolicyEndpoints
from accord.transports.http.policies.standing_grants import StandingGrantEndpoints
from accord.transports.http.repositories.decisions import DecisionEndpoints
from accord.transports.http.repositories.pacts import PactEndpoints
from accord.transports.http.routing_table import ALL_ADMIN_ENDPOINTS
from accord.transports.intake import AuthPolicy, Intake
from accord.transports.mcp import endpoint
from accord.transports.mcp.endpoint import McpEndpoint
from accord.transports.mcp.msg_tools import MSG_TOOLS
from accord.transports.mcp.pvp_tools import PVP_TOOLS, PvpServices
from accord.transports.mcp.resources import ResourceChanges, ResourceServices, agents_in
from accord.transports.mcp.tool_calls import ToolBox
from accord.transports.msg.endpoints import MethodEndpoints
from accord.transports.msg.service import ThreadService
from accord.transports.msg.thread_index import save_index
from accord.transports.msg.waking.reactions import AttentionWorker
from accord.transports.msg.waking.wake_methods import state_of_agent
from accord.transports.msg.watching import ThreadWatcher
from accord.transports.websocket.registry import WebSocketRegistry
from accord.waking.configuration import load_wake_file
from accord.waking.machine import machine_name
from accord.waking.waker import CommandWaker

if TYPE_CHECKING:
    from accord.settings.server.certificate_reload import CertificateReloader

log = logging.getLogger("accord")

STOP_TIMEOUT_DETAIL = (
    "The server is stopping and the store did not respond in time, so the message may or may not "
    "be stored; send it again with the same id"
)


class PeopleDirectory:
    """Who ever had a token, according to the log."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine

    def kind_of(self, workspace: str, id: str) -> Kind | None:
        """The kind of this principal; Refused until the log was read."""
        people: People | None = self._engine().peek(PEOPLE_STREAM)
        if people is None:
            detail = "The server is still reading its tokens; try again in a second"
            raise Refused(Reason.UNAVAILABLE, detail)
        return people.kind_of(workspace, id)


class Server:
    """All parts of a running server."""

    def __init__(
        self, options: ServerOptions, events: EventLog, link: ServerLink | None = None
    ) -> None:
        self.options = options
        self.events = events
        is_open = options.auth == "open"
        policy = msgspec.structs.replace(
            options.policy,
            grace_ends_membership=is_open,
            directory=None if is_open else PeopleDirectory(lambda: self.engine),
            call_rules=SignedCallRules(self.known_people),
        )
        self.engine = make_engine(events, policy)
        self.keyring = Keyring.open(options.home / KEYS_DIR_NAME)
        self.session_reader = sessions.SessionReader(self.engine)
        self.token_service = TokenService(
            self.engine, self.keyring, WallClock(), self.session_reader.index.sessions_of
        )
        trust = AuthPolicy(
            self.keyring,
            self.revoked_tokens,
            open=is_open,
            server_id=lambda: self.known_people().server_id,
            id_secret=lambda: self.known_people().id_secret,
        )
        self.intake = Intake(self.engine, trust, options.rate_limit)
        self.connection_limits = ConnectionLimits(options.limits)
        self.websockets = WebSocketRegistry(
            self.intake, self.connection_limits, is_tls=options.tls is not None
        )
        self.callers = Authenticator(self.intake)
        self.http = MessageEndpoints(self.callers, self.session_reader)
        self.threads = ThreadService(self.intake, self.session_reader, self._waker())
        self.threads.wakes.conversations.polling = self.http.poller.wakeups.waiting_in
        self.http.poller.on_page = self.threads.session_delivery.on_poll
        self.intake.watch_thread = ThreadWatcher(self.threads, self.http.poller.reader).take
        self.attention_worker = AttentionWorker(self.threads)
        self.methods = MethodEndpoints(self.callers, self.threads)
        self.home = HomeEndpoints(self.callers, self.session_reader, self.threads)

        def is_own_host(host: str) -> bool:
            return names_this_server(host, options.host, options.public_url)

        self.sign_in = SignInEndpoints(
            self.callers,
            SignInService(self.token_service),
            lambda actor: self.token_service.admin_for(actor).people,
            options.limits,
            is_own_host,
        )
        pvp = PvpServices(
            self.http, self.home.reader, self.threads, self._agents, lambda: self.public_url
        )
        box = ToolBox(
            [
                *((tool, self.threads) for tool in MSG_TOOLS),
                *((tool, pvp) for tool in PVP_TOOLS),
            ]
        )
        self.public_url = (options.public_url or "").rstrip("/")
        resources = ResourceServices(pvp)
        self.mcp = McpEndpoint(
            self.callers,
            box,
            ResourceChanges(resources),
            is_own_host,
        )
        self.head_signer = HeadSigner(events, self.keyring, self.engine.clock)
        self.engine.on_state_change.append(of_streams(PEOPLE_STREAM, self.close_revoked))
        self.mirrors = MirrorService(self.engine)
        self.git_hooks = GitHookEndpoints(
            self.callers,
            lambda actor, writes: MemberHandlers(
                self.engine, self.mirrors, actor, self.stopping.is_set, writes=writes
            ),
        )
        self.policies = PolicyEndpoints(self.callers, self.known_people)
        self.standing_grants = StandingGrantEndpoints(self.callers)
        self.decisions = DecisionEndpoints(
            self.callers,
            BridgeQueries(self.engine),
            lambda actor: MemberHandlers(self.engine, self.mirrors, actor),
        )
        self.pacts = PactEndpoints(self.callers, self.engine, self.mirrors)
        self.several: SeveralServers | None = None
        if link is not None:
            self.engine.servers = ServerGroup(link, self.engine)
            self.several = SeveralServers(self.engine.servers, self.engine, self)
        self.tasks: list[asyncio.Task[None]] = []
        self.certificate_reload: CertificateReloader | None = None
        self.stopping = asyncio.Event()
        self.loop_lag = LoopLag()
        self.request_metrics = RequestStats()
        self.readiness = self._readiness()
        self.metrics_endpoint = MetricsEndpoint(
            self._metrics, self.token_service, count=self.callers.charge_request
        )

    def _waker(self) -> CommandWaker | None:
        """What may wake agents here; Refused if the operator's file is wrong."""
        file = self.options.wake
        return None if file is None else CommandWaker(load_wake_file(file), machine_name())

    def _readiness(self) -> health.Readiness:
        checks: dict[str, health.HealthCheck] = {
            "store": health.store_check(self.events),
            "workers": health.WorkerCheck(self.events, [self.head_signer.name], self.tasks_running),
        }
        if self.several is not None:
            checks["lag"] = LagCheck(self.events, self.engine)
        return health.Readiness(checks, self.stopping.is_set)

    def principal_limits(self) -> list[PrincipalConnections[Any] | Waiters]:
        """Limits on what one principal has open at a time."""
        http = (self.http.poller.waiters, self.http.event_streams.waiters)
        home = (self.home.streams.waiters, self.mcp.open_requests)
        return [self.websockets.principal_connections, *http, *home]

    async def _metrics(self) -> bytes:
        workers = (self.head_signer.name,)
        from accord.telemetry import metrics  # imported late: it is large and not always enabled

        ends = self.certificate_reload.expires_at if self.certificate_reload else None
        return await metrics.render_metrics(
            MetricSources(
                self.engine,
                self.websockets,
                self.connection_limits,
                self.loop_lag,
                self.request_metrics,
                workers,
                ends,
            )
        )

    def tasks_running(self) -> bool:
        """Whether no background task has ended."""
        return bool(self.tasks) and not any(task.done() for task in self.tasks)

    def known_people(self) -> People:
        """Tokens, revocations and keys according to the log; Refused until they were read."""
        people: People | None = self.engine.peek(PEOPLE_STREAM)
        if people is None:
            detail = "The server is still reading revoked tokens; try again in a second"
            raise Refused(Reason.UNAVAILABLE, detail)
        return people

    async def _agents(self, caller: Caller) -> list[dict[str, Any]]:
        """The agents of the caller's workspace that have a token, and how they are."""
        workspace = caller.actor.workspace
        enrolled = agents_in(self.known_people(), workspace, self.engine.clock.now())
        return [each | state_of_agent(self.threads, workspace, each["id"]) for each in enrolled]

    def revoked_tokens(self) -> Container[str]:
        return self.known_people().revoked

    def close_revoked(self, _: str, fresh: Sequence[EncodedRecord]) -> None:
        """Close connections whose token was revoked."""
        for encoded in fresh:
            if isinstance(event := encoded.record.event, TokenRevoked):
                self.websockets.close_revoked(event.jti)
                self.http.end_revoked(event.jti)
                self.home.streams.waiters.end_revoked(event.jti)
                self.mcp.end_revoked(event.jti)

    def raise_file_limit(self) -> None:
        """Raise the limit of open files to the number of connections allowed."""
        self.connection_limits.max_connections = raise_for_connections(
            self.connection_limits.max_connections
        )

    def start_certificate_reload(self, renewal: "CertificateReloader") -> None:
        """Reload the certificate when it changes, and report its expiry."""
        self.certificate_reload = renewal
        self.tasks.append(asyncio.create_task(renewal.run()))

    def set_tracer(self, tracer: Tracer) -> None:
        """Report finished work to this tracer."""
        self.engine.counters.on_span, self.request_metrics.tracer = tracer.span, tracer

    async def start(self) -> str:
        """Open the log, start all tasks, and return a token for the operator."""
        if self.several is not None:
            await self.several.group.start()
        await self.token_service.record_active_key()
        await self.token_service.choose_id_secret()
        self.intake.session_quota.load(await self.engine.start())
        await self.attention_worker.load()
        led = {"heads": self._sign_heads, "attention": self._react, **self._retention_tasks()}
        several = self.several
        loops = (
            self.engine.follow_log(),
            *(several.run_led(name, work) if several else work() for name, work in led.items()),
            self.loop_lag.run(),
            self.mirrors.run(),
        )
        for loop in loops:
            self.tasks.append(asyncio.create_task(loop))
        request = TokenRequest(id=operator_id(), kind=Kind.HUMAN, roles=frozenset({Role.ADMIN}))
        return (await self.token_service.admin_for(SHELL_ACTOR).issue(request)).token

    async def _sign_heads(self) -> None:
        await workers.run_worker(self.events, self.head_signer, self.engine.counters)

    async def _react(self) -> None:
        """Follow the log for what messages lead to; another server may have done it until now."""
        if self.several is not None:
            await self.attention_worker.load()
        counters = self.engine.counters
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(workers.run_worker(self.events, self.attention_worker, counters))
            tasks.create_task(self.attention_worker.run_sweeps())

    async def sign_in_codes(self) -> tuple[str, ...]:
        """One-time codes for the operator, if wanted: one for a browser, one for a shell."""
        if not self.options.sign_in_link:
            return ()
        request = InvitationRequest(id=operator_id(), roles=frozenset({Role.ADMIN}))
        people = self.token_service.admin_for(SHELL_ACTOR).people
        made = [await people.invite(request, invitation=False) for _ in range(2)]
        return tuple(each.code for each in made)

    def bridge(self) -> bridge.Bridge:
        """The socket for git hooks, to be opened while serving."""
        handlers = bridge.BridgeHandlers(self.engine, self.mirrors, self.stopping.is_set)
        return bridge.Bridge(handlers, self.options.home, self.options.bridge_port)

    def disconnect_all(self) -> None:
        """Close all connections and waiting requests."""
        self.websockets.close_all()
        self.http.end_all()
        self.home.streams.waiters.end_all()
        self.mcp.end_all()
        self.threads.wakes.supervised.stop()

    def _retention_tasks(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Only if retention is configured."""
        days = self.options.keep_ended_days
        if days is None:
            return {}
        from accord.operations import retention  # imported late: rarely used

        keys, why = self.options.home / KEYS_DIR_NAME, f"{days} days after the end"
        trust = retention.PruneAuthority(self.keyring, keys, SYSTEM, why)
        keeper = retention.Retention(self.events, self.engine.clock, trust)
        evict = self.engine.stream_cache.evict
        return {"retention": lambda: retention.run_retention(keeper, days, evict)}

    async def finish_pending(self, within: float) -> None:
        """Accept nothing more and finish what was decided; after a timeout refuse the rest."""
        self.stopping.set()
        self.intake.closed = True
        if self.several is not None:
            self.several.group.hand_over()
        await self.threads.wakes.stop()
        self.engine.scheduler.stop()
        self.engine.heartbeat.scheduler.stop()
        if not await finished_within(self.engine.wait_until_idle(), within):
            log.error("stop.abandoned", extra={"ms": int(within * 1000)})
            self.engine.abandon_pending(Refused(Reason.UNAVAILABLE, STOP_TIMEOUT_DETAIL))

    async def stop(self, within: float = 10.0) -> bool:
        """Close everything; False if the store did not close in this many seconds."""
        self.disconnect_all()
        for task in self.tasks:
            task.cancel()
        return await finished_within(self._close(), within)

    async def _close(self) -> None:
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.mcp.close()
        await self.engine.wait_until_idle()
        await save_index(self.threads.index)
        if self.several is None or not self.several.link.others:
            with contextlib.suppress(StoreError):  # the next start signs what is not signed now
                await workers.finish_worker(self.events, self.head_signer)
        if self.several is not None:
            await self.several.group.stop()
        await self.events.close()

    def asgi_app(self, proxied: Callable[[Any], Any] = lambda app: app) -> ASGIApp:
        """The HTTP application; `proxied` wraps the part that looks at the client's address."""
        routes = [
            Route("/", page.page),
            Route("/healthz", health.healthz),
            *api_docs.routes(),
            Route("/readyz", self.readiness.readyz),
            Route("/metrics", self.metrics_endpoint.metrics),
            *self.http.routes(),
            *self.methods.routes(),
            *self.home.routes(),
            *self.git_hooks.routes(),
            *self.policies.routes(),
            *self.standing_grants.routes(),
            *self.decisions.routes(),
            *self.pacts.routes(),
            *self.sign_in.routes(),
            *sessions.routes(self.session_reader, self.callers.actor_of),
            *sessions.routes(
                self.session_reader, self.callers.actor_of, session_turns.TURN_ENDPOINTS
            ),
            *admin.routes(
                ALL_ADMIN_ENDPOINTS,
                self.token_service,
                self.callers.charge_request,
                self.intake.limits,
            ),
        ]
        app = Starlette(routes=routes, exception_handlers=error_handlers.EXCEPTION_HANDLERS)
        app.router.redirect_slashes = False  # the address would come from the Host header
        counted = RequestStatsMiddleware(proxied(app), self.request_metrics, routes)
        mcp = RequestStatsMiddleware(self.mcp, self.request_metrics, label=endpoint.PATH)
        return OriginMiddleware(
            endpoint.PathDispatch(page.PageMiddleware(counted), mcp),
            strict=self.intake.is_open,
            closed=lambda: self.intake.closed,
        )


async def finished_within(work: Coroutine[Any, Any, None], seconds: float) -> bool:
    """Whether it finished within this many seconds; if not it goes on in the background."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=max(0.0, seconds))
    if done:
        task.result()
    return bool(done)
