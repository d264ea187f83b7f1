"""PVP over plain HTTP: post envelopes, read them by polling or as events."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.transports.http.auth import Authenticator
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.messages.event_stream import EventStreams
from accord.transports.http.messages.message_pages import MessageReader
from accord.transports.http.messages.poll import (
    AFTER_MESSAGE_QUERY,
    POLL_LIMIT_QUERY,
    WAIT_QUERY,
    Poller,
)
from accord.transports.http.messages.polling_presence import PollingPresence
from accord.transports.http.messages.post import MessagePoster
from accord.transports.http.responses import with_refusals
from accord.transports.http.sessions import SessionReader

MESSAGES_PATH = "/sessions/{id}/messages"


class MessageEndpoints:
    """What the message endpoints of one server need."""

    def __init__(self, authenticator: Authenticator, sessions: SessionReader) -> None:
        reader = MessageReader(sessions)
        self.presence = PollingPresence(sessions.engine)
        sessions.on_read = self.presence.on_request
        self.poster = MessagePoster(authenticator, self.presence)
        self.poller = Poller(authenticator, reader, self.presence)
        self.event_streams = EventStreams(authenticator, reader)

    def routes(self) -> list[Route]:
        return routes_of(MESSAGE_ENDPOINTS, self._serve)

    def _serve(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            return await endpoint.handler(self, request)

        return with_refusals(handler)

    def end_revoked(self, jti: str) -> None:
        """End all waiting requests that use a revoked token."""
        self.poller.waiters.end_revoked(jti)
        self.event_streams.waiters.end_revoked(jti)

    def end_all(self) -> None:
        """End all waiting requests because the server stops."""
        self.presence.scheduler.stop()
        self.poller.waiters.end_all()
        self.event_streams.waiters.end_all()


async def post(http: MessageEndpoints, request: Request) -> Response:
    """Sends one message to a session."""
    return await http.poster.post(request)


async def poll(http: MessageEndpoints, request: Request) -> Response:
    """Messages after a given one, waiting up to `wait` seconds if there is none."""
    return await http.poller.poll(request)


async def events(http: MessageEndpoints, request: Request) -> Response:
    """The session as server-sent events, after `Last-Event-ID` or `after`."""
    return await http.event_streams.open_stream(request)


MESSAGE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", MESSAGES_PATH, post, body="envelope"),
    Endpoint(
        "GET",
        MESSAGES_PATH,
        poll,
        query=(AFTER_MESSAGE_QUERY, POLL_LIMIT_QUERY, WAIT_QUERY),
        allows_head=False,
    ),
    Endpoint(
        "GET",
        "/sessions/{id}/events",
        events,
        query=(AFTER_MESSAGE_QUERY,),
        responses={200: "events"},
        allows_head=False,
    ),
)
