"""`POST /sessions/{id}/messages`: one envelope in, its place in the room out."""

import asyncio
from collections.abc import Callable
from time import perf_counter

from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from accord.core.dialects import pvp
from accord.core.dialects.codes import CODES
from accord.core.kernel.authority import Kind, May
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin
from accord.engine.cell import Asked, Outcome
from accord.transports.bodies import in_time
from accord.transports.bucket import Bucket
from accord.transports.caller import RUNTIME, Caller, Callers
from accord.transports.http.benches import Load
from accord.transports.http.visits import Lobby, Visitor
from accord.transports.identity import open_actor
from accord.transports.reception import named
from accord.transports.replies import advised, answer, raw

LARGEST_REST = 16 << 20
NEW = "new"
Take = Callable[[int], None]
JSON = "application/json"
PLAIN = "identity"
# What nobody looked into has no id.
UNREAD = frozenset({Why.TOO_MANY, Why.TOO_LARGE, Why.UNAUTHENTICATED, Why.LATE})
# More of it may be on its way, which nobody wants.
UNFINISHED = frozenset({Why.TOO_LARGE, Why.LATE})


class Mailbox:
    """Where envelopes are posted."""

    def __init__(self, callers: Callers, lobby: Lobby) -> None:
        self.callers = callers
        self.reception = callers.reception
        self.lobby = lobby
        self.load = Load(self.reception.limits)

    async def take(self, request: Request) -> Response:
        """200 with the message's place, or the error it earns."""
        data = b""
        message: Message | None = None
        caller: Caller | None = None
        try:
            caller = self.callers.who(request)
            with self.load.of(caller.principal) as take:
                data = await body_of(request, self.reception.limits, take)
            self.callers.still(caller)
            message = self._read(caller, data, request.path_params["id"])
            return await self._said(self._speaker(caller, message), message)
        except ClientDisconnect:
            return Response(status_code=400)  # for nobody
        except Refused as no:
            seat = caller.actor.seat if caller else ""
            if message is not None:
                kind = type(message.body)
                return self.refused(no, message.room, message.id, kind=kind, seat=seat)
            gist = ("", None) if no.why in UNREAD else pvp.gist(data)
            return self.refused(no, *gist, seat=seat)

    def _read(self, caller: Caller, data: bytes, place: str) -> Message:
        """The message, counted as every transport counts."""
        bucket = self.callers.bucket(caller)
        if bucket is not None:
            bucket.weigh(len(data), asyncio.get_running_loop().time())
            if bucket.spent:
                bucket.glance(data)
        began = perf_counter()
        try:
            message = addressed(pvp.decode(data, self.reception.limits.message), place)
        except Refused:
            charge(bucket)
            raise
        if bucket is not None:
            bucket.worked(perf_counter() - began)
            bucket.count(message.body.type, len(data))
        return message

    def _speaker(self, caller: Caller, message: Message) -> Caller:
        """On trust, whoever joins says what kind they are."""
        body = message.body
        agent = isinstance(body, SessionJoin) and body.participant.kind == "agent"
        if caller.identity is None and agent:
            return caller._replace(actor=open_actor(caller.actor.seat, Kind.AGENT, RUNTIME))
        return caller

    async def _said(self, caller: Caller, message: Message) -> Response:
        """What the engine makes of it."""
        message = honest(message)
        if isinstance(message.body, SessionCreate):
            message = named(message, caller.actor.seat)
        stream, seat = f"room/{message.room}", caller.actor.seat
        enters = message.body.needs is May.ENTER
        visitor = self.lobby.visitor(stream, seat) if enters else None
        refused, seq = await self._ask(caller, message, visitor)
        if visitor is not None:
            self.lobby.settle(visitor)
        self.lobby.spoke(stream, seat)
        if refused is not None:
            raise refused
        return answer({"id": message.id, "seq": seq, "session": message.room})

    async def _ask(
        self, caller: Caller, message: Message, visitor: Visitor | None
    ) -> tuple[Refused | None, int]:
        done: asyncio.Future[tuple[Refused | None, int]]
        done = asyncio.get_running_loop().create_future()

        def told(outcome: Outcome) -> None:
            if not done.done():
                # Not the outcome: a refusal keeps this frame, and would be kept by it for ever.
                done.set_result((outcome.refused, seq_of(outcome)))

        take = self.reception.taker(private=caller.private)
        take(Asked(message, caller.actor, told, visitor))
        return await done

    def refused(
        self,
        no: Refused,
        session: str,
        related_to: str | None,
        *,
        kind: type[Body] | None = None,
        seat: str = "",
    ) -> Response:
        """The error, as PVP says it and as HTTP does (UNI-26)."""
        said = self.reception.refusal(no, session, related_to, kind, seat)
        response = advised(raw(said, CODES[no.why].http), no)
        if no.why in UNFINISHED:
            response.headers["connection"] = "close"
        return response


def addressed(message: Message, place: str) -> Message:
    """The message, if it is for where it was posted (OPEN-50)."""
    fits = message.room == place
    if place == NEW:
        fits = isinstance(message.body, SessionCreate)
    if not fits:
        detail = "The session in the path is the envelope's; `new` is for a session.create"
        raise Refused(Why.MALFORMED, detail)
    return message


def honest(message: Message) -> Message:
    """Whoever comes in over HTTP is told of as such, whatever they say."""
    body = message.body
    if isinstance(body, SessionJoin):
        who = replace(body.participant, transport="http")
        return replace(message, body=replace(body, participant=who))
    return message


def charge(bucket: Bucket | None) -> None:
    """Nonsense counts as well."""
    if bucket is not None:
        bucket.messages -= 1


def seq_of(outcome: Outcome) -> int:
    """The place of what was said; a signal has none."""
    id = outcome.asked.message.id
    return next((s.record.seq for s in outcome.sealed if s.record.id == id), 0)


async def body_of(request: Request, limits: Limits, take: Take) -> bytes:
    """The body, never more of it than there may be; a form of another page is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise Refused(Why.MEDIA_TYPE, f"Send the envelope with Content-Type: {JSON}")
    if request.headers.get("content-encoding", PLAIN).lower() != PLAIN:
        raise Refused(Why.MEDIA_TYPE, "Send the envelope as it is, without Content-Encoding")
    return await in_time(whole(request, limits, take), limits.body_seconds)


async def whole(request: Request, limits: Limits, take: Take) -> bytes:
    """All of the body; who sends too much may finish, within reason, so that it hears why."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limits.frame:
            take(len(chunk))
            body += chunk
        elif size > LARGEST_REST:
            break
        else:
            body.clear()
    if size > limits.frame:
        raise reached("message", limits.message, f"A message may have {limits.message} bytes")
    return bytes(body)
