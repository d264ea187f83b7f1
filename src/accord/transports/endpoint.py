"""What one can ask over HTTP, as tables: the routes and their descriptions come from these."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.refusal import Refused, Why

LONGEST_NUMBER = 16
Body = Literal["", "envelope", "token"]
Answer = Literal["json", "events", "nothing"]
Handler = Callable[[Any, Request], Awaitable[Response]]


class Query(NamedTuple):
    """A parameter of the query; a whole number where it has a `most`."""

    name: str
    meaning: str
    usual: int | None = None
    least: int = 0
    most: int | None = None

    def number(self, request: Request) -> int:
        """The whole number a caller gives, within its bounds; raises Refused."""
        text = request.query_params.get(self.name, str(self.usual))
        digits = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
        if not digits or self.most is None or not self.least <= int(text) <= self.most:
            bounds = f"from {self.least} to {self.most}"
            raise Refused(Why.MALFORMED, f"{self.name} is a whole number {bounds}")
        return int(text)

    def text(self, request: Request) -> str | None:
        """The words a caller gives, if any."""
        return request.query_params.get(self.name)


class Endpoint(NamedTuple):
    """One row: what is asked how, and what comes back. The handler's docstring says what for."""

    method: str
    path: str
    handler: Handler
    query: tuple[Query, ...] = ()
    body: Body = ""
    answers: Mapping[int, Answer] = {200: "json"}
    # Whether it may be asked for its head alone.
    head: bool = True

    @property
    def methods(self) -> tuple[str, ...]:
        """What it is asked by."""
        return (self.method, "HEAD") if self.method == "GET" and self.head else (self.method,)

    @property
    def summary(self) -> str:
        """What it does, in a sentence."""
        return (self.handler.__doc__ or "").partition("\n")[0]


Answering = Callable[[Request], Awaitable[Response]]
Serve = Callable[[Endpoint], Answering]


def mounted(table: Iterable[Endpoint], serve: Serve) -> list[Route]:
    """The table as Starlette takes it: one route for each path, so that it knows its methods."""
    rows: dict[str, list[Endpoint]] = {}
    for row in table:
        rows.setdefault(row.path, []).append(row)
    return [route(path, [(row, serve(row)) for row in each]) for path, each in rows.items()]


def route(path: str, rows: Iterable[tuple[Endpoint, Answering]]) -> Route:
    """One path, answered by the row of the method."""
    by_method = {method: answer for row, answer in rows for method in row.methods}

    async def answered(request: Request) -> Response:
        return await by_method[request.method](request)

    made = Route(path, answered, methods=list(by_method))
    made.methods = set(by_method)
    return made
