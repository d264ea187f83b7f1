"""`GET /home` and `GET /home/events`: what concerns the caller in all sessions and threads."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from accord.api.threads import GetThread
from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.state import Room
from accord.core.room.threads.state import STREAM_PREFIX as THREAD_PREFIX
from accord.core.room.threads.state import Thread
from accord.core.views import home
from accord.core.views.sessions import is_known_to
from accord.core.views.thread_questions import questions_in
from accord.engine.ports import DamagedError
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.messages.event_stream import (
    KEEP_ALIVE_COMMENT,
    KEEP_ALIVE_INTERVAL_S,
    RETRY_LINE,
    expiry_timer,
)
from accord.transports.http.messages.waiting_limits import (
    Principal,
    Waiters,
    wait_disconnect,
    wait_first,
)
from accord.transports.http.responses import JSON_HEADERS, json_response, with_refusals
from accord.transports.http.session_index import IndexEntry
from accord.transports.http.sessions import SessionReader
from accord.transports.msg import read_methods
from accord.transports.msg.service import ThreadService

# Gates that ended longer ago are found in the session's log.
ENDED_GATES_MAX_AGE_S = 24 * 3600
MAX_SESSIONS = 500
# Changes of a session within this time are sent as one event.
COALESCE_S = 0.05
HOME_EVENT, SESSION_EVENT, THREAD_EVENT = "home", "session", "thread"
WHOLE_HOME = ""  # among the changed sessions: everything
NOTHING = home.SessionConcerns([], [], [], 0)


class HomeReader:
    """Reads what concerns a caller; costs as much as those of its sessions that are not at rest."""

    def __init__(self, sessions: SessionReader, threads: ThreadService) -> None:
        self.silence = threads.silence
        self.index = sessions.index
        self.engine = sessions.engine
        self.threads = threads

    async def read(
        self, actor: Actor, limits: home.HomeLimits = home.HOME_LIMITS
    ) -> dict[str, Any]:
        names, more = await self.relevant_sessions(actor)
        concerns = [await self.concerns(name, actor) for name in names]
        return await self.combine(concerns, actor, limits, more=more)

    async def combine(
        self,
        concerns: Iterable[home.SessionConcerns],
        actor: Actor,
        limits: home.HomeLimits = home.HOME_LIMITS,
        *,
        more: bool,
    ) -> dict[str, Any]:
        """One home: what concerns sessions, silences, and unread threads with the newest first."""
        silences = self.silence.silences_for(actor)
        unread = await read_methods.unread_threads(self.threads, actor)
        return home.combine(
            concerns,
            limits,
            silences=silences,
            questions=await read_methods.questions(self.threads, actor),
            unread_threads=unread,
            more=more,
        )

    async def relevant_sessions(self, actor: Actor) -> tuple[list[str], bool]:
        """The sessions to look at, and whether there are more of them than one answer covers."""
        since = self._since()
        entries = (await self.index.sessions_of(actor)).items()
        relevant = [
            (not entry.needs_attention, -entry.last_gate_ended_at, name)
            for name, entry in entries
            if entry.needs_attention or entry.last_gate_ended_at >= since
        ]
        names = [name for *_, name in sorted(relevant)]
        return names[:MAX_SESSIONS], len(names) > MAX_SESSIONS

    async def concerns(self, name: str, actor: Actor) -> home.SessionConcerns:
        """What one session contributes; nothing if it is damaged, which reading it reports."""
        try:
            room: Room = await self.engine.state(name)
        except DamagedError:
            return NOTHING
        if not is_known_to(room, actor):
            return NOTHING
        return home.session_concerns(room, actor.principal, self._since())

    def _since(self) -> int:
        return self.engine.clock.now() - ENDED_GATES_MAX_AGE_S * MS_PER_SECOND


class HomeSubscriber:
    """A reader of `/home/events`, and the sessions that changed since they were sent to it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.is_connected = True
        self.has_changes = asyncio.Event()
        self.changed: set[str] = set()
        self.sent: dict[str, bytes] = {}

    def mark_changed(self, name: str) -> None:
        self.changed.add(name)
        self.has_changes.set()

    def take_changed(self) -> list[str]:
        names = sorted(self.changed)
        self.changed.clear()
        self.has_changes.clear()
        return names

    def close(self, reason: str) -> None:  # noqa: ARG002 - the reader reconnects and is told then
        self.is_connected = False
        self.has_changes.set()

    end_wait = close

    def is_news(self, name: str, data: bytes, *, empty: bool = False) -> bool:
        """Whether this differs from what was last sent about the session or thread."""
        digest = b"" if empty else sha256(data).digest()
        if self.sent.get(name, b"") == digest:
            return False
        self.sent[name] = digest
        if empty:
            del self.sent[name]
        return True


class HomeStreams:
    """All open streams of `/home/events`."""

    def __init__(self, authenticator: Authenticator, reader: HomeReader) -> None:
        self.authenticator = authenticator
        self.reader = reader
        self.waiters = Waiters(authenticator.intake.limits)
        self.subscribers: dict[Principal, set[HomeSubscriber]] = {}

    def open_stream(self, request: Request) -> Response:
        """200 with a stream that stays open."""
        subscriber = HomeSubscriber(self.authenticator.authenticate_counted(request))
        self.waiters.add(subscriber)
        if not self.subscribers:
            self.reader.index.on_change.append(self._on_change)
            self.reader.silence.on_change.append(self._on_silence)
            self.reader.threads.index.on_change.append(self._on_thread_change)
        self.subscribers.setdefault(subscriber.caller.principal, set()).add(subscriber)
        return HomeStreamResponse(self, subscriber)

    def unsubscribe(self, subscriber: HomeSubscriber) -> None:
        subscriber.is_connected = False
        self.waiters.remove(subscriber)
        principal = subscriber.caller.principal
        self.subscribers[principal].discard(subscriber)
        if not self.subscribers[principal]:
            del self.subscribers[principal]
        if not self.subscribers:
            self.reader.index.on_change.remove(self._on_change)
            self.reader.silence.on_change.remove(self._on_silence)
            self.reader.threads.index.on_change.remove(self._on_thread_change)

    def _on_change(self, name: str, entry: IndexEntry) -> None:
        for subscriber in self._among(entry.principals):
            subscriber.mark_changed(name)

    def _on_silence(self, workspace: str) -> None:
        """Silences are of no session, so operators are sent the whole home again."""
        for subscribers in self.subscribers.values():
            for subscriber in subscribers:
                actor = subscriber.caller.actor
                if actor.thread_role is ThreadRole.OPERATOR and actor.workspace == workspace:
                    subscriber.mark_changed(WHOLE_HOME)

    def _on_thread_change(self, thread: Thread) -> None:
        for subscriber in self._among(read_methods.participants_of(thread)):
            subscriber.mark_changed(f"{THREAD_PREFIX}{thread.id}")

    def _among(self, principals: frozenset[Principal]) -> Iterator[HomeSubscriber]:
        """The subscribers among these, by way of the shorter list."""
        smaller, larger = sorted((self.subscribers.keys(), principals), key=len)
        for principal in smaller:
            if principal in larger:
                yield from self.subscribers[principal]

    async def first_event(self, subscriber: HomeSubscriber) -> bytes:
        """The event that a stream begins with: the complete home."""
        actor = subscriber.caller.actor
        names, more = await self.reader.relevant_sessions(actor)
        parts = {name: await self.reader.concerns(name, actor) for name in names}
        for name, part in parts.items():
            subscriber.is_news(name, session_data(name, part), empty=part == NOTHING)
        whole = await self.reader.combine(parts.values(), actor, more=more)
        return format_event(HOME_EVENT, msgspec.json.encode(whole))

    async def next_events(self, subscriber: HomeSubscriber, names: Iterable[str]) -> bytes:
        """One event for each of these sessions and threads that looks different now."""
        events: list[bytes] = []
        for name in names:
            if name == WHOLE_HOME:
                return await self.first_event(subscriber)
            if name.startswith(THREAD_PREFIX):
                events.append(await self._thread_event(subscriber, name))
                continue
            part = await self.reader.concerns(name, subscriber.caller.actor)
            data = session_data(name, part)
            if subscriber.is_news(name, data, empty=part == NOTHING):
                events.append(format_event(SESSION_EVENT, data))
        return b"".join(events)

    async def _thread_event(self, subscriber: HomeSubscriber, name: str) -> bytes:
        """What changed about a thread; nothing if the caller may not read it any more."""
        id = name.removeprefix(THREAD_PREFIX)
        actor = subscriber.caller.actor
        request = GetThread(thread_id=id)
        try:
            detail = await read_methods.get_thread(self.reader.threads, actor, request)
            thread = await self.reader.threads.thread_for(id, actor)
        except (Refused, DamagedError):
            return b""
        questions = list(questions_in(thread, actor))
        data = msgspec.json.encode({"thread": detail, "questions": questions})
        return format_event(THREAD_EVENT, data) if subscriber.is_news(name, data) else b""


def session_data(name: str, part: home.SessionConcerns) -> bytes:
    """What one session contributes now; it replaces what was sent about it before."""
    session = name.partition("/")[2]
    return msgspec.json.encode({"session": session, **home.combine([part])})


def format_event(kind: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


class HomeStreamResponse(Response):
    """The streaming response: the whole home, then each session and thread that changes."""

    media_type = "text/event-stream"
    charset = "utf-8"

    def __init__(self, streams: HomeStreams, subscriber: HomeSubscriber) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({**JSON_HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self.streams = streams
        self.subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send until the reader disconnects, its token ends, or the server stops."""
        timer = expiry_timer(self.subscriber, self.streams.authenticator.intake.seconds_valid)
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            pump = asyncio.create_task(self._pump(send))
            await wait_first(pump, asyncio.create_task(wait_disconnect(receive)))
        finally:
            if timer is not None:
                timer.cancel()
            self.streams.unsubscribe(self.subscriber)

    async def _pump(self, send: Send) -> None:
        subscriber = self.subscriber
        data = RETRY_LINE + await self.streams.first_event(subscriber)
        while subscriber.is_connected:
            if data:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            try:
                async with asyncio.timeout(KEEP_ALIVE_INTERVAL_S):
                    await subscriber.has_changes.wait()
            except TimeoutError:
                data = KEEP_ALIVE_COMMENT
                continue
            await asyncio.sleep(COALESCE_S)
            data = await self.streams.next_events(subscriber, subscriber.take_changed())
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class HomeEndpoints:
    """What the home endpoints of one server need."""

    def __init__(
        self, authenticator: Authenticator, sessions: SessionReader, threads: ThreadService
    ) -> None:
        self.authenticator = authenticator
        self.reader = HomeReader(sessions, threads)
        self.streams = HomeStreams(authenticator, self.reader)

    def routes(self) -> list[Route]:
        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(HOME_ENDPOINTS, serve)


async def read_home(endpoints: HomeEndpoints, request: Request) -> Response:
    """What concerns you: gates, stalls, ended gates, silences, questions, unread threads."""
    actor = await endpoints.authenticator.actor_of(request)
    return json_response(await endpoints.reader.read(actor))


async def home_events(endpoints: HomeEndpoints, request: Request) -> Response:
    """As server-sent events: first `home`, then each `session` and `thread` that changes."""
    return endpoints.streams.open_stream(request)


HOME_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/home", read_home),
    Endpoint("GET", "/home/events", home_events, responses={200: "events"}, allows_head=False),
)
