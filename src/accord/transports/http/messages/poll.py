"""`GET /sessions/{id}/messages`: messages after a given one, waiting for them if asked to."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.core.kernel.actor import Actor
from accord.engine.delivery.inactivity import heartbeat_policy_of
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord
from accord.engine.streams.stream import Stream
from accord.identity.token_expiry import ExpiryTimer
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.endpoint import QueryParameter
from accord.transports.http.messages.message_pages import EncodedPage, MessageReader
from accord.transports.http.messages.polling_presence import PollingPresence
from accord.transports.http.messages.waiting_limits import Waiters, wait_disconnect
from accord.transports.http.responses import raw_json_response
from accord.transports.http.sessions import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, conversation_stream

MAX_POLL_WAIT_S = 60

AFTER_MESSAGE_QUERY = QueryParameter(
    "after", "the id of the last message you received; if omitted, recent messages"
)
POLL_LIMIT_QUERY = QueryParameter(
    "limit", "maximum number of messages", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE
)
WAIT_QUERY = QueryParameter(
    "wait", "seconds to wait if there is no message yet", 0, 0, MAX_POLL_WAIT_S
)


class PollRequest(NamedTuple):
    """What a poll asks for."""

    session: str
    after: str | None
    limit: int
    wait_s: float = 0


# Returns when the client that waits has gone.
Disconnected = Callable[[], Awaitable[None]]


class WaitingPoll:
    """A poll waiting for messages of one session."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.woken = asyncio.Event()
        self.ended = False

    def end_wait(self, reason: str) -> None:  # noqa: ARG002 - a poll ends with what there is
        """Respond now."""
        self.ended = True
        self.woken.set()


class PollWakeups:
    """Wakes polls when their session's stream grows; listens to commits while a poll waits."""

    def __init__(self, engine: Engine) -> None:
        self.waiting: dict[str, set[WaitingPoll]] = {}
        self.on_commit_listeners = engine.on_commit

    def on_commit(self, stream: str, _: Sequence[EncodedRecord]) -> None:
        for wait in self.waiting.get(stream, ()):
            wait.woken.set()

    def add(self, stream: str, wait: WaitingPoll) -> None:
        if not self.waiting:
            self.on_commit_listeners.append(self.on_commit)
        self.waiting.setdefault(stream, set()).add(wait)

    def waiting_in(self, stream: str) -> set[str]:
        """Who waits for messages of this stream."""
        return {wait.caller.actor.principal for wait in self.waiting.get(stream, ())}

    def remove(self, stream: str, wait: WaitingPoll) -> None:
        polls = self.waiting[stream]
        polls.discard(wait)
        if not polls:
            del self.waiting[stream]
        if not self.waiting:
            self.on_commit_listeners.remove(self.on_commit)


class Poller:
    def __init__(
        self, authenticator: Authenticator, reader: MessageReader, presence: PollingPresence
    ) -> None:
        self.authenticator = authenticator
        self.reader = reader
        self.presence = presence
        self.wakeups = PollWakeups(reader.engine)
        self.waiters = Waiters(authenticator.intake.limits)
        # Called with what a member was given: stream, member, and the versions it lies between.
        self.on_page: Callable[[str, Actor, int, int], None] = lambda *_: None

    async def poll(self, request: Request) -> Response:
        """200 with the messages there are."""
        caller = self.authenticator.authenticate_counted(request)
        poll = PollRequest(
            request.path_params["id"],
            AFTER_MESSAGE_QUERY.get_text(request),
            POLL_LIMIT_QUERY.parse_int(request),
            WAIT_QUERY.parse_int(request),
        )
        page = await self.read(caller, poll, partial(wait_disconnect, request.receive))
        return page_response(page, poll.after)

    async def read(
        self, caller: Caller, poll: PollRequest, disconnected: Disconnected
    ) -> EncodedPage:
        """The messages there are, or those that arrive while it waits."""
        actor = caller.actor
        position = await self.reader.position(poll.session, actor)
        since = self.reader.window_start(position.stream)
        if poll.after is not None:
            since = await self.reader.version_of(position, actor.principal, poll.after)
        self.presence.on_act(position.stream, actor)
        page = await self.reader.read_page(poll.session, actor, since, poll.limit)
        if poll.wait_s and not page.frames and actor.principal in position.room.members:
            timeout_s = min(poll.wait_s, self._max_wait_s(position.stream))
            poll = poll._replace(wait_s=timeout_s)
            page = await self._wait_for_messages(caller, poll, page.version, disconnected)
            self.authenticator.ensure_still_valid(caller)
            self.presence.on_act(position.stream, actor)
        self.on_page(position.stream.id, actor, since, page.version)
        return page

    async def _wait_for_messages(
        self, caller: Caller, poll: PollRequest, since: int, disconnected: Disconnected
    ) -> EncodedPage:
        """Messages arriving in that time; empty when the client disconnects."""
        stream, wait = conversation_stream(poll.session), WaitingPoll(caller)
        self.waiters.add(wait)
        self.wakeups.add(stream, wait)
        disconnect = asyncio.ensure_future(disconnected())
        disconnect.add_done_callback(lambda _: wait.end_wait("disconnected"))
        timer = asyncio.get_running_loop().call_later(poll.wait_s, wait.end_wait, "timeout")
        expiry = self._expiry_timer(wait)
        try:
            while True:
                wait.woken.clear()
                page = await self.reader.read_page(poll.session, caller.actor, since, poll.limit)
                if page.frames or wait.ended:
                    return page
                since = page.version
                await wait.woken.wait()
        finally:
            timer.cancel()
            if expiry is not None:
                expiry.cancel()
            disconnect.cancel()
            self.wakeups.remove(stream, wait)
            self.waiters.remove(wait)

    def _expiry_timer(self, wait: WaitingPoll) -> ExpiryTimer | None:
        """A poll ends when its token expires."""
        identity = wait.caller.identity
        if identity is None:
            return None
        seconds_left = partial(self.authenticator.intake.seconds_answered, identity)
        return ExpiryTimer(seconds_left, partial(wait.end_wait, "the token has expired"))

    def _max_wait_s(self, stream: Stream) -> float:
        """Polls return before their member would become idle."""
        heartbeat = heartbeat_policy_of(stream)
        return heartbeat.idle_after_ms / 2000 if heartbeat is not None else MAX_POLL_WAIT_S


def page_response(page: EncodedPage, after: str | None) -> Response:
    """The page as JSON; `next` is the value of `after` for the next poll."""
    position = msgspec.json.encode(page.last_id or after)
    more = b"true" if page.has_more else b"false"
    messages = b",".join(page.frames)
    return raw_json_response(
        b'{"messages":[%b],"next":%b,"has_more":%b}' % (messages, position, more)
    )
