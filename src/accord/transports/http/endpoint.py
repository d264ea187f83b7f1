"""HTTP endpoints as tables, from which routes and API descriptions are made."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.refusal import Reason, Refused

MAX_NUMBER_DIGITS = 16
BodyKind = Literal[
    "",
    "envelope",
    "token",
    "sign_in",
    "proof",
    "agent",
    "invitation",
    "git_action",
    "method",
    "policy",
    "standing_grant",
]
ResponseKind = Literal["json", "events", "nothing"]
Handler = Callable[[Any, Request], Awaitable[Response]]


class QueryParameter(NamedTuple):
    """A query parameter; an integer when it has a `maximum`."""

    name: str
    description: str
    default: int | None = None
    minimum: int = 0
    maximum: int | None = None

    def parse_int(self, request: Request) -> int:
        """The integer given, or the default; raises Refused when it is invalid or out of range."""
        text = request.query_params.get(self.name, str(self.default))
        digits = text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS
        if not digits or self.maximum is None or not self.minimum <= int(text) <= self.maximum:
            bounds = f"from {self.minimum} to {self.maximum}"
            raise Refused(Reason.MALFORMED, f"{self.name} must be a whole number {bounds}")
        return int(text)

    def get_text(self, request: Request) -> str | None:
        """The text given, if any."""
        return request.query_params.get(self.name)


class Endpoint(NamedTuple):
    """One endpoint: request, response and handler, whose docstring describes it in OpenAPI."""

    method: str
    path: str
    handler: Handler
    query: tuple[QueryParameter, ...] = ()
    body: BodyKind = ""
    responses: Mapping[int, ResponseKind] = {200: "json"}
    # Whether HEAD is allowed along with GET.
    allows_head: bool = True
    # Whether it needs no token.
    is_public: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        return (
            (self.method, "HEAD") if self.method == "GET" and self.allows_head else (self.method,)
        )

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]


RequestHandler = Callable[[Request], Awaitable[Response]]
BindEndpoint = Callable[[Endpoint], RequestHandler]


def routes_of(table: Iterable[Endpoint], serve: BindEndpoint) -> list[Route]:
    """One Starlette route per path, so that it can list the allowed methods."""
    endpoints: dict[str, list[Endpoint]] = {}
    for endpoint in table:
        endpoints.setdefault(endpoint.path, []).append(endpoint)
    return [
        route_by_method(path, [(endpoint, serve(endpoint)) for endpoint in group])
        for path, group in endpoints.items()
    ]


def route_by_method(path: str, endpoints: Iterable[tuple[Endpoint, RequestHandler]]) -> Route:
    """A route that dispatches by method."""
    by_method = {method: handler for endpoint, handler in endpoints for method in endpoint.methods}

    async def dispatch(request: Request) -> Response:
        return await by_method[request.method](request)

    route = Route(path, dispatch, methods=list(by_method))
    route.methods = set(by_method)
    return route
