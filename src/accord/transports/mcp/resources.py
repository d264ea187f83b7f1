"""Resources: what an agent may read by address, and notices when it changes.

Every read, every subscription and every notice is authorised by itself, because a member may leave
and a token may end in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from accord.api import threads as threads_api
from accord.api.agent_tools import WhatsWaiting
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.people.state import People
from accord.core.room.threads.state import STREAM_PREFIX as THREAD_STREAM
from accord.core.views import sessions
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.mcp.pvp_tools import PvpServices, whats_waiting
from accord.transports.mcp.tool import ToolCall, encode
from accord.transports.msg.method_table import call_method
from accord.transports.msg.service import ThreadService

SCHEME = "accord://"
ROOM_STREAM = "room/"
MIME_TYPE = "application/json"
MAX_URIS = 100
MAX_PENDING = 1000
# Changes within this time are one notice.
COALESCE_S = 0.05
DENIED_DETAIL = "There is no resource {uri} that you may read"


class Resource(NamedTuple):
    """A resource, or a template of one if `uri` ends with `{id}`."""

    uri: str
    name: str
    description: str


RESOURCES = (
    Resource(f"{SCHEME}inbox", "inbox", "What waits for you: gates, stalls, unread threads."),
    Resource(f"{SCHEME}threads", "threads", "Your threads with unread counts."),
    Resource(f"{SCHEME}agents", "agents", "The agents of your workspace."),
)
TEMPLATES = (
    Resource(f"{SCHEME}threads/{{id}}", "thread", "One thread and what you have not read in it."),
    Resource(f"{SCHEME}sessions/{{id}}", "session", "One session: members, gates, context."),
)


class ResourceServices(NamedTuple):
    """What resources are read from."""

    pvp: PvpServices

    @property
    def threads(self) -> ThreadService:
        return self.pvp.threads

    @property
    def engine(self) -> Engine:
        return self.threads.engine

    @property
    def authenticator(self) -> Authenticator:
        return self.pvp.poller.authenticator


def parse_uri(uri: str) -> tuple[str, str]:
    """Collection and id; raises Refused for an address that is none of ours."""
    kind, _, id = uri.removeprefix(SCHEME).partition("/")
    plain = {resource.uri for resource in RESOURCES}
    is_template = kind in {"threads", "sessions"} and bool(id) and "/" not in id
    if not uri.startswith(SCHEME) or not (uri in plain or is_template):
        raise denied(uri)
    return kind, unquote(id)


def denied(uri: str) -> Refused:
    """The same for what does not exist and for what the reader may not see."""
    return Refused(Reason.NOT_FOUND, DENIED_DETAIL.format(uri=uri[:200]))


async def read(services: ResourceServices, call: ToolCall, uri: str) -> bytes:
    """The content as JSON; raises Refused."""
    kind, id = parse_uri(uri)
    try:
        return encode(await READERS[kind](services, call, id))
    except Refused as refusal:
        if id and refusal.reason in {Reason.NO_ROOM, Reason.NOT_FOUND, Reason.FORBIDDEN}:
            raise denied(uri) from None
        raise


async def check_readable(services: ResourceServices, caller: Caller, uri: str) -> None:
    """Refuse an address that the caller may not read now."""
    services.authenticator.ensure_still_valid(caller)
    kind, id = parse_uri(uri)
    try:
        if kind == "sessions":
            await services.pvp.poller.reader.sessions.readable_room(id, caller.actor)
        elif kind == "threads" and id:
            await services.threads.thread_for(id, caller.actor)
    except Refused:
        raise denied(uri) from None


async def _read_inbox(services: ResourceServices, call: ToolCall, _: str) -> Any:
    return await whats_waiting(services.pvp, call, WhatsWaiting())


async def _read_threads(services: ResourceServices, call: ToolCall, id: str) -> Any:
    if not id:
        return await call_method(
            services.threads, call.caller, "list_threads", threads_api.ListThreads()
        )
    thread = await call_method(
        services.threads, call.caller, "get_thread", threads_api.GetThread(thread_id=id)
    )
    about = msgspec.to_builtins(thread)
    unread = threads_api.ReadMessages(thread_id=id, since_seq=about["last_read_seq"])
    page = await call_method(services.threads, call.caller, "read_messages", unread)
    return {"thread": about, **msgspec.to_builtins(page)}


async def _read_session(services: ResourceServices, call: ToolCall, id: str) -> Any:
    room = await services.pvp.poller.reader.sessions.readable_room(id, call.caller.actor)
    return sessions.session_detail(room, call.caller.actor.principal)


async def _read_agents(services: ResourceServices, call: ToolCall, _: str) -> Any:
    return {"agents": await services.pvp.agents(call.caller)}


READERS: dict[str, Callable[[ResourceServices, ToolCall, str], Awaitable[Any]]] = {
    "inbox": _read_inbox,
    "threads": _read_threads,
    "sessions": _read_session,
    "agents": _read_agents,
}


def agents_in(people: People, workspace: str, now: Instant) -> list[dict[str, Any]]:
    """The agents of a workspace that hold a valid token."""
    live = [
        token
        for token in people.tokens.values()
        if token.kind is Kind.AGENT
        and token.workspace == workspace
        and token.expires_at > now
        and token.jti not in people.revoked
    ]
    names = {token.id: token.name or token.id for token in live}
    return [{"id": id, "name": names[id]} for id in sorted(names)]


# Notices


class Subscription:
    """The addresses that one caller watches, and the streams that changed since the last notice."""

    def __init__(self, caller: Caller, uris: Sequence[str]) -> None:
        self.caller = caller
        self.uris = set(uris)
        self.changed: set[str] = set()
        self.has_changes = asyncio.Event()

    def mark(self, stream: str) -> None:
        """A stream changed; beyond the limit the oldest mark stands for all."""
        if len(self.changed) < MAX_PENDING:
            self.changed.add(stream)
            self.has_changes.set()

    def uris_about(self, stream: str) -> set[str]:
        """Which of the addresses may read differently now."""
        prefix, _, id = stream.partition("/")
        if stream.startswith(ROOM_STREAM):
            return self.uris & {f"{SCHEME}sessions/{id}", f"{SCHEME}inbox"}
        if stream.startswith(THREAD_STREAM):
            return self.uris & {f"{SCHEME}threads/{id}", f"{SCHEME}threads", f"{SCHEME}inbox"}
        return self.uris & {f"{SCHEME}agents"} if prefix == "people" else set()


class ResourceChanges:
    """All subscriptions of one server."""

    def __init__(self, services: ResourceServices) -> None:
        self.services = services
        self.subscriptions: set[Subscription] = set()

    def add(self, subscription: Subscription) -> None:
        if not self.subscriptions:
            self.services.engine.on_state_change.append(self._on_change)
        self.subscriptions.add(subscription)

    def remove(self, subscription: Subscription) -> None:
        if subscription in self.subscriptions:
            self.subscriptions.remove(subscription)
            if not self.subscriptions:
                self.services.engine.on_state_change.remove(self._on_change)

    def _on_change(self, stream: str, _: Sequence[EncodedRecord]) -> None:
        for subscription in self.subscriptions:
            if subscription.uris_about(stream):
                subscription.mark(stream)

    async def next_changes(self, subscription: Subscription) -> list[str]:
        """Wait for changes; the addresses about which this caller may still hear."""
        await subscription.has_changes.wait()
        await asyncio.sleep(COALESCE_S)
        streams, subscription.changed = subscription.changed, set()
        subscription.has_changes.clear()
        found: set[str] = set()
        for stream in streams:
            found |= await self._allowed(subscription, stream)
        return sorted(found)

    async def _allowed(self, subscription: Subscription, stream: str) -> set[str]:
        """Nothing if the caller may not read what changed, even of a list that it would be in."""
        try:
            self.services.authenticator.ensure_still_valid(subscription.caller)
            may_hear = await self._may_hear(subscription.caller, stream)
        except Refused:
            return set()
        return subscription.uris_about(stream) if may_hear else set()

    async def _may_hear(self, caller: Caller, stream: str) -> bool:
        """Whether the caller may know that this changed now; may raise Refused.

        A former member still reads what was said before it left, and hears of nothing since.
        """
        kind, _, id = stream.partition("/")
        if kind == "thread":
            await self.services.threads.thread_for(id, caller.actor)
        elif kind == "room":
            sessions = self.services.pvp.poller.reader.sessions
            room = await sessions.readable_room(id, caller.actor)
            return caller.actor.principal in room.members
        return True
