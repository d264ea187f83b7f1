"""The bridge over HTTP, on 127.0.0.1 only and not for web pages (OPEN-56)."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.bridge.actions import (
    ACTION_TIMEOUT_S,
    ACTIONS,
    MAX_REQUEST_BYTES,
    Action,
    ActionResponse,
    BridgeHandler,
    RequestRate,
    parse_object,
    run_action,
)
from accord.transports.bridge.token_file import ensure_token
from accord.transports.edge.origin import header_values, is_loopback
from accord.transports.http import responses
from accord.transports.http.error_handlers import allow_header, refusal_of_error

MAX_QUERY_VALUES = 32


def bridge_app(
    handlers: BridgeHandler, token: str, port: int, request_rate: RequestRate | None = None
) -> ASGIApp:
    """The ASGI application of the bridge's port."""
    routes = [
        Route(action.path, action_handler(handlers, action, token), methods=[action.method])
        for action in ACTIONS
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: handle_unknown})
    return LoopbackOnlyMiddleware(inner, port, request_rate or RequestRate())


def bridge_response(response: ActionResponse | Refused) -> Response:
    """The response as uncached JSON."""
    if isinstance(response, Refused):
        return responses.refusal_response(response)
    return responses.json_response(response)


def action_handler(
    handlers: BridgeHandler, action: Action, token: str
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of one action."""

    async def handler(request: Request) -> Response:
        try:
            if not action.public:
                ensure_token(token, request.headers.getlist("authorization"))
            parameters = (
                query_values(request)
                if action.method == "GET"
                else parse_object(await read_body(request))
            )
        except Refused as refusal:
            return bridge_response(refusal)
        return bridge_response(
            await run_action(handlers, action, parameters, text=action.method == "GET")
        )

    return handler


async def handle_unknown(request: Request, error: Exception) -> Response:
    """Refuse unknown paths and methods."""
    response = bridge_response(
        refusal_of_error(
            request, error, f"the actions are {', '.join(action.path for action in ACTIONS)}"
        )
    )
    response.headers.update(allow_header(error))
    return response


def query_values(request: Request) -> dict[str, str]:
    """The query's parameters, each given once."""
    pairs = request.query_params.multi_items()
    if len(pairs) > MAX_QUERY_VALUES or len({key for key, _ in pairs}) != len(pairs):
        raise Refused(Reason.MALFORMED, "Give each query parameter once")
    return dict(pairs)


async def read_body(request: Request) -> bytes:
    """The body, within limits of time and size; raises Refused."""
    body = bytearray()
    try:
        async with asyncio.timeout(ACTION_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_REQUEST_BYTES:
                    raise Refused(
                        Reason.TOO_LARGE, f"The body is larger than {MAX_REQUEST_BYTES} bytes"
                    )
    except TimeoutError:
        raise Refused(Reason.TIMED_OUT, "The request body did not arrive in time") from None
    return bytes(body)


class LoopbackOnlyMiddleware:
    """Refuses web pages, other host names, and callers over the rate limit."""

    def __init__(self, inner: ASGIApp, port: int, request_rate: RequestRate) -> None:
        self.inner = inner
        self.port = port
        self.request_rate = request_rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check(scope)
        except Refused as refusal:
            await bridge_response(refusal)(scope, receive, send)
        else:
            await self.inner(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        self.request_rate.charge()
        hosts = header_values(scope, b"host")
        # A name that resolves to 127.0.0.1 is still another name (DNS rebinding).
        is_own_host = (
            len(hosts) == 1 and is_loopback(hosts[0]) and port_of(hosts[0]) in {None, self.port}
        )
        if not is_own_host:
            raise Refused(Reason.FORBIDDEN, f"Use http://127.0.0.1:{self.port}")
        site = [value for value in header_values(scope, b"sec-fetch-site") if value != "none"]
        if header_values(scope, b"origin") or site:
            raise Refused(Reason.FORBIDDEN, "Web pages may not use the git bridge")


def port_of(host: str) -> int | None:
    """The port in a Host header, if any; the host itself is loopback."""
    _, colon, digits = host.removeprefix("[::1]").rpartition(":")
    return int(digits) if colon and digits.isdigit() else None
