"""Rooms over plain HTTP: envelopes are posted, and read by polling or as events."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.transports.archive import Archive
from accord.transports.caller import Callers
from accord.transports.endpoint import Endpoint, mounted
from accord.transports.http.events import Events
from accord.transports.http.poll import AFTER, LIMIT, WAIT, Polls
from accord.transports.http.post import Mailbox
from accord.transports.http.reader import Reader
from accord.transports.http.visits import Lobby
from accord.transports.replies import guarded

MESSAGES = "/sessions/{id}/messages"


class Http:
    """Everything PVP over HTTP needs, for one server."""

    def __init__(self, callers: Callers, archive: Archive) -> None:
        reader = Reader(archive)
        self.lobby = Lobby(archive.engine)
        self.mailbox = Mailbox(callers, self.lobby)
        self.polls = Polls(callers, reader, self.lobby)
        self.events = Events(callers, reader)

    def routes(self) -> list[Route]:
        """The table as routes."""
        return mounted(TABLE, self._serve)

    def _serve(self, row: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            return await row.handler(self, request)

        return guarded(handler)

    def revoke(self, jti: str) -> None:
        """End whatever waits on a revoked token."""
        self.polls.bench.revoke(jti)
        self.events.bench.revoke(jti)

    def say_goodbye(self) -> None:
        """The server stops; nobody waits any longer."""
        self.lobby.scheduler.stop()
        self.polls.bench.clear()
        self.events.bench.clear()


async def post(http: Http, request: Request) -> Response:
    """Say something in a session: one envelope, answered with its place."""
    return await http.mailbox.take(request)


async def poll(http: Http, request: Request) -> Response:
    """What was said behind a message, now or within `wait` seconds."""
    return await http.polls.take(request)


async def events(http: Http, request: Request) -> Response:
    """The session as server-sent events, behind `Last-Event-ID` or `after`."""
    return await http.events.take(request)


TABLE: tuple[Endpoint, ...] = (
    Endpoint("POST", MESSAGES, post, body="envelope"),
    Endpoint("GET", MESSAGES, poll, query=(AFTER, LIMIT, WAIT), head=False),
    Endpoint(
        "GET", "/sessions/{id}/events", events, query=(AFTER,), answers={200: "events"}, head=False
    ),
)
