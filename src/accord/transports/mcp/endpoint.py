"""`/mcp`: authenticates each request, then answers it by the fast path or by the SDK."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import accord
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.refusal import Reason, Refused
from accord.identity.token_expiry import ExpiryTimer
from accord.transports.edge.http_protocol import (
    BODY_STATE_KEY,
    RESPOND_STATE_KEY,
    SECURE_STATE_KEY,
)
from accord.transports.edge.origin import OWN_HOST_DETAIL
from accord.transports.http.auth import HTTP_RUNTIME, Authenticator, Caller, claimed_actor
from accord.transports.http.body_limits import collect_long_body, read_within
from accord.transports.http.messages.waiting_limits import BodyQuota, Waiters, wait_disconnect
from accord.transports.http.responses import method_refusal_response, new_request_id
from accord.transports.mcp.resources import ResourceChanges
from accord.transports.mcp.sessions import MAX_SESSIONS_PER_PRINCIPAL, McpSessions
from accord.transports.mcp.tool import ToolCall
from accord.transports.mcp.tool_call_fast_path import (
    AUTHORIZATION,
    COOKIE,
    HOST,
    MODERN_REVISION,
    FastCall,
    RequestHeaders,
    ToolCallFastPath,
    read_headers,
)
from accord.transports.mcp.tool_calls import ToolBox

if TYPE_CHECKING:
    from accord.transports.mcp.sdk_app import SdkApp

log = logging.getLogger("accord.mcp")

PATH = "/mcp"
SERVER_INFO = {"name": "accord", "title": "Accord", "version": accord.__version__}
SESSION_HEADER = b"mcp-session-id"
MODERN_HEADER = (b"mcp-protocol-version", MODERN_REVISION.encode())
OPEN_REQUESTS_PER_PRINCIPAL = 2 * MAX_SESSIONS_PER_PRINCIPAL
CHECK_IDLE_S = 60.0
BEARER = b"Bearer "
NO_STATE: Mapping[str, Any] = {}
JSON_HEADER = (b"content-type", b"application/json")
HEADER_LINES = b"content-type: application/json\r\ncontent-length: %d\r\n%b"
SESSION_LINE = b"mcp-session-id: %b\r\n"


class OpenRequest:
    """A request that may stay open; it ends when its token does, or the server."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.task: asyncio.Task[None] | None = None
        self.ended = ""

    def end_wait(self, reason: str) -> None:
        self.ended = reason
        if self.task is not None:
            self.task.cancel()


class McpEndpoint:
    """The ASGI application at `/mcp`."""

    def __init__(
        self,
        authenticator: Authenticator,
        box: ToolBox,
        changes: ResourceChanges,
        is_own_host: Callable[[str], bool],
        new_id: Callable[[], str] = new_request_id,
    ) -> None:
        self.authenticator = authenticator
        self.intake = authenticator.intake
        self.limits = self.intake.limits
        self.box = box
        self.changes = changes
        self.is_own_host = is_own_host
        self.new_id = new_id
        self.sessions = McpSessions(lambda: asyncio.get_running_loop().time())
        self.fast_path = ToolCallFastPath(box, self.sessions, SERVER_INFO)
        self.body_quota = BodyQuota(self.limits)
        # A session may have a stream, and as many clients without sessions may listen.
        self.open_requests = Waiters(self.limits)
        self.open_requests.max_per_principal = OPEN_REQUESTS_PER_PRINCIPAL
        self._sdk: asyncio.Task[SdkApp] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, are_single = read_headers(scope["headers"])
        try:
            caller = self._authenticate(scope, headers, are_single=are_single)
            self.authenticator.charge_request(caller.actor)
            self.intake.traffic.note(caller.actor)
            if scope["method"] != "POST":
                await self._by_sdk(scope, receive, send, caller)
                return
            # Most bodies have arrived with their head, so that there is nothing to wait for.
            arrived: bytearray | None = scope.get("state", NO_STATE).get(BODY_STATE_KEY)
            if arrived is not None:
                body = self._within_limit(arrived)
            else:
                body = await self._read_body(scope, receive, caller)
                receive = replay(body, receive)
            fast = self.fast_path.recognise(headers, body, caller.principal) if are_single else None
            if fast is not None and fast.tool.asks_with not in fast.arguments:
                await self._by_fast_path(fast, caller, scope, receive, send)
            else:
                await self._by_sdk(scope, receive, send, caller)
        except ClientDisconnect:
            return
        except Refused as refusal:
            self.intake.record_refusal(refusal, "")
            response = method_refusal_response(refusal, self.new_id())
            await response(scope, receive, send)

    def _authenticate(self, scope: Scope, headers: RequestHeaders, *, are_single: bool) -> Caller:
        """By a token in `Authorization` alone: a browser's cookie is for our own pages."""
        if not self.is_own_host(headers.get(HOST, b"").strip(b" \t").decode("latin-1")):
            raise Refused(Reason.FORBIDDEN, OWN_HOST_DETAIL)
        credentials, is_open = headers.get(AUTHORIZATION), self.intake.is_open
        if credentials is None and not is_open:
            raise Refused(Reason.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        private = scope.get("state", NO_STATE).get(SECURE_STATE_KEY, False)
        if are_single and credentials is not None and credentials.startswith(BEARER):
            identity = self.intake.identify(credentials[len(BEARER) :].strip().decode("latin-1"))
            return Caller(replace(identity.actor, runtime=HTTP_RUNTIME), identity, private)
        if are_single and credentials is None and COOKIE not in headers:
            claimed = claimed_actor(scope["query_string"])
            if claimed is not None:
                return Caller(claimed, secure=private)
        return self.authenticator.authenticate(Request(scope))

    def _within_limit(self, body: bytearray) -> bytes:
        if len(body) > self.limits.frame:
            raise long_request_refusal(self.limits)
        return bytes(body)

    async def _read_body(self, scope: Scope, receive: Receive, caller: Caller) -> bytes:
        """The body, if the connection and the token last that long."""
        with self.body_quota.reserve(caller.principal) as reserve:
            refusal = long_request_refusal(self.limits)
            reading = collect_long_body(
                Request(scope, receive), self.limits.frame, reserve, refusal
            )
            body = await read_within(reading, self.limits.body_seconds)
        self.authenticator.ensure_still_valid(caller)
        return body

    async def _by_fast_path(
        self, fast: FastCall, caller: Caller, scope: Scope, receive: Receive, send: Send
    ) -> None:
        call = ToolCall(caller, self.new_id, lambda: wait_disconnect(receive))
        answer = await self.box.call(fast.tool.name, fast.arguments, call)
        data = self.fast_path.render(fast, answer)
        respond = scope.get("state", NO_STATE).get(RESPOND_STATE_KEY)
        if respond is not None:
            session = SESSION_LINE % fast.session if fast.session else b""
            if respond(scope, HEADER_LINES % (len(data), session), data):
                return
        headers = [JSON_HEADER, (b"content-length", b"%d" % len(data))]
        if fast.session:
            headers.append((SESSION_HEADER, fast.session))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _by_sdk(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        """Let the SDK answer, and follow which sessions it opens and closes."""
        # Whitespace around a value is not part of it (RFC 9110, 5.5); the parser leaves some.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        sdk = await self._loaded_sdk()
        id = Headers(scope=scope).get("mcp-session-id", "").encode("latin-1")
        session = self.sessions.by_id.get(id)
        if session is not None and session.principal == caller.principal:
            session.open_requests += 1
        if not id and scope["method"] == "POST" and MODERN_HEADER not in scope["headers"]:
            for surplus in self.sessions.surplus_of(caller.principal):
                await self.end_session(surplus)

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._note_response(message, scope["method"], id, caller)
            await send(message)

        try:
            await self._run_open(sdk, scope, receive, watched_send, caller)
        finally:
            if session is not None and session.principal == caller.principal:
                session.open_requests -= 1
                session.last_used = self.sessions.now()

    def _note_response(self, message: Message, method: str, id: bytes, caller: Caller) -> None:
        if method == "DELETE":
            self._forget(id)
            return
        opened = next((value for name, value in message["headers"] if name == SESSION_HEADER), b"")
        if opened and opened != id:
            self.sessions.opened(opened, caller.principal)

    async def _run_open(
        self, sdk: "SdkApp", scope: Scope, receive: Receive, send: Send, caller: Caller
    ) -> None:
        """Run the SDK's handler so that the end of the token or of the server ends it."""
        request = OpenRequest(caller)
        self.open_requests.add(request)
        request.task = asyncio.ensure_future(sdk.handle(scope, receive, send, caller, self.new_id))
        timer = self._expiry_timer(request)
        try:
            await request.task
        except asyncio.CancelledError:
            if not request.ended:
                request.task.cancel()
                raise
        finally:
            if timer is not None:
                timer.cancel()
            self.open_requests.remove(request)

    def _expiry_timer(self, request: OpenRequest) -> ExpiryTimer | None:
        identity = request.caller.identity
        if identity is None:
            return None
        return ExpiryTimer(
            lambda: self.intake.seconds_answered(identity),
            lambda: request.end_wait("the token has expired"),
        )

    # The SDK

    async def _loaded_sdk(self) -> "SdkApp":
        if self._sdk is None:
            self._sdk = asyncio.create_task(self._load_sdk())
        return await asyncio.shield(self._sdk)

    def _running_sdk(self) -> "SdkApp | None":
        loading = self._sdk
        if loading is None or not loading.done() or loading.cancelled() or loading.exception():
            return None
        return loading.result()

    async def _load_sdk(self) -> "SdkApp":
        """Import the SDK in a thread, so that other requests are served meanwhile."""
        module = await asyncio.to_thread(import_sdk)
        sdk: SdkApp = module.SdkApp(self.box, self.changes, SERVER_INFO, self.limits.frame)
        self._tasks += [asyncio.create_task(sdk.run()), asyncio.create_task(self._end_idle())]
        return sdk

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(CHECK_IDLE_S)
            for id in self.sessions.idle():
                await self.end_session(id)

    async def end_session(self, id: bytes) -> None:
        """End a session as its owner would, with a DELETE."""
        principal = self.sessions.principal_of(id)
        self._forget(id)
        if principal is not None and (sdk := self._running_sdk()) is not None:
            await sdk.delete_session(id, principal)

    def _forget(self, id: bytes) -> None:
        self.sessions.closed(id)
        if (sdk := self._running_sdk()) is not None:
            sdk.resources.session_closed(id.decode("latin-1"))

    def end_revoked(self, jti: str) -> None:
        """End all open requests that use a revoked token."""
        self.open_requests.end_revoked(jti)

    def end_all(self) -> None:
        """End everything because the server stops."""
        self.open_requests.end_all()
        if (sdk := self._running_sdk()) is not None:
            sdk.stop()

    async def close(self) -> None:
        """Wait for the SDK's task to end."""
        if self._tasks:
            run, *others = self._tasks
            for task in others:
                task.cancel()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(5):
                    await run


class PathDispatch:
    """Sends `/mcp` to its own application before any route is compared."""

    def __init__(self, app: ASGIApp, mcp: ASGIApp) -> None:
        self.app = app
        self.mcp = mcp

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return (self.mcp if scope["path"] == PATH else self.app)(scope, receive, send)


def long_request_refusal(limits: Limits) -> Refused:
    """For a request body that is larger than a frame may be."""
    detail = f"The request body is larger than {limits.frame} bytes"
    return limit_exceeded("frame", limits.frame, detail)


def import_sdk() -> Any:
    """The module that uses the SDK."""
    from accord.transports.mcp import sdk_app

    return sdk_app


def replay(body: bytes, receive: Receive) -> Receive:
    """A receive function that first gives a body that was already read."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
