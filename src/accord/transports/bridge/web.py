"""The bridge over HTTP, on 127.0.0.1 alone and for no page of any site (OPEN-56)."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from accord.core.kernel.refusal import Refused, Why
from accord.transports import replies
from accord.transports.guard import is_loopback, named
from accord.transports.unrouted import allowed, why_not

from .meter import Meter
from .table import ACTIONS, LARGEST_ASK, SECONDS, Action, Answer, Clerk, answered, as_object, told
from .ticket import check

MOST_VALUES = 32


def app(clerk: Clerk, ticket: str, port: int, meter: Meter | None = None) -> ASGIApp:
    """What is served on the bridge's port."""
    routes = [Route(row.path, handler(clerk, row, ticket), methods=[row.method]) for row in ACTIONS]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: unknown})
    return Shut(inner, port, meter or Meter())


def reply(answer: Answer | Refused) -> Response:
    """JSON that nobody keeps."""
    content, status = told(answer)
    return replies.answer(content, status)


def handler(clerk: Clerk, row: Action, ticket: str) -> Callable[[Request], Awaitable[Response]]:
    """One action over HTTP."""

    async def handled(request: Request) -> Response:
        try:
            if not row.open:
                check(ticket, request.headers.getlist("authorization"))
            said = query(request) if row.method == "GET" else as_object(await body(request))
        except Refused as no:
            return reply(no)
        return reply(await answered(clerk, row, said, text=row.method == "GET"))

    return handled


async def unknown(request: Request, error: Exception) -> Response:
    """What no action takes."""
    response = reply(why_not(request, error, f"there are {', '.join(row.path for row in ACTIONS)}"))
    response.headers.update(allowed(error))
    return response


def query(request: Request) -> dict[str, str]:
    """The values of a query, each said once."""
    pairs = request.query_params.multi_items()
    if len(pairs) > MOST_VALUES or len({key for key, _ in pairs}) != len(pairs):
        raise Refused(Why.MALFORMED, "Each value is said once")
    return dict(pairs)


async def body(request: Request) -> bytes:
    """The body, in time and never more of it than there should be."""
    read = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                read += chunk
                if len(read) > LARGEST_ASK:
                    raise Refused(Why.TOO_LARGE, f"The body has more than {LARGEST_ASK} bytes")
    except TimeoutError:
        raise Refused(Why.LATE, "The body did not come in time") from None
    return bytes(read)


class Shut:
    """No page may ask, by whatever name it reached us; nobody may ask too often."""

    def __init__(self, inner: ASGIApp, port: int, meter: Meter) -> None:
        self.inner = inner
        self.names = port
        self.meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or say why not."""
        try:
            self._check(scope)
        except Refused as no:
            await reply(no)(scope, receive, send)
        else:
            await self.inner(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        self.meter.count()
        hosts = named(scope, b"host")
        # A name that was made to mean 127.0.0.1 is still another name (DNS rebinding).
        own = len(hosts) == 1 and is_loopback(hosts[0]) and port_of(hosts[0]) in {None, self.names}
        if not own:
            raise Refused(Why.FORBIDDEN, f"Ask for http://127.0.0.1:{self.names}")
        site = [each for each in named(scope, b"sec-fetch-site") if each != "none"]
        if named(scope, b"origin") or site:
            raise Refused(Why.FORBIDDEN, "Pages may not use the git bridge")


def port_of(host: str) -> int | None:
    """The port that a host names, if any; the name itself is a loopback one."""
    _, colon, digits = host.removeprefix("[::1]").rpartition(":")
    return int(digits) if colon and digits.isdigit() else None
