"""`POST /sessions/{id}/messages`: submit one envelope."""

import asyncio
from time import perf_counter
from typing import NamedTuple

from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from accord.core.dialects import pvp
from accord.core.dialects.refusals import http_refusal
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.session_lifecycle import SessionCreate
from accord.engine.streams.stream import Outcome, Submission
from accord.identity.token_signing import trusted_actor
from accord.transports.http.auth import HTTP_RUNTIME, Authenticator, Caller
from accord.transports.http.body_limits import ReserveBytes, collect_long_body, read_within
from accord.transports.http.messages.polling_presence import PollingMember, PollingPresence
from accord.transports.http.messages.waiting_limits import BodyQuota
from accord.transports.http.responses import json_response
from accord.transports.intake import with_session_id
from accord.transports.rate_limit import Bucket

NEW_SESSION = "new"
JSON_TYPE = "application/json"
IDENTITY_ENCODING = "identity"
# Refusals before decoding, when the message's id is unknown.
UNDECODED_REASONS = frozenset(
    {Reason.TOO_MANY, Reason.TOO_LARGE, Reason.UNAUTHENTICATED, Reason.TIMED_OUT}
)


class Receipt(NamedTuple):
    """An accepted message: its id, `seq` and session."""

    id: str
    seq: int
    session: str


class MessagePoster:
    """Accepts posted envelopes."""

    def __init__(self, authenticator: Authenticator, presence: PollingPresence) -> None:
        self.authenticator = authenticator
        self.intake = authenticator.intake
        self.presence = presence
        self.body_quota = BodyQuota(self.intake.limits)

    async def post(self, request: Request) -> Response:
        """200 with the message's id and seq, or an error envelope."""
        data = b""
        message: Message | None = None
        caller: Caller | None = None
        try:
            caller = self.authenticator.authenticate(request)
            with self.body_quota.reserve(caller.principal) as reserve:
                data = await read_envelope(request, self.intake.limits, reserve)
            self.authenticator.ensure_still_valid(caller)
            message = self._decode(caller, data, request.path_params["id"])
            return json_response((await self._submit(caller, message))._asdict())
        except ClientDisconnect:
            return Response(status_code=400)  # the client has gone; this is never read
        except Refused as refusal:
            seat = caller.actor.principal if caller else ""
            if message is not None:
                kind = type(message.body)
                return self.error_response(refusal, message.room, message.id, kind=kind, seat=seat)
            session_and_id = (
                ("", None) if refusal.reason in UNDECODED_REASONS else pvp.session_and_id_of(data)
            )
            return self.error_response(refusal, *session_and_id, seat=seat)

    async def send(self, caller: Caller, data: bytes, session: str) -> Receipt:
        """Submit an envelope that arrived by other means than a POST; raises Refused."""
        message: Message | None = None
        try:
            message = self._decode(caller, data, session)
            return await self._submit(caller, message)
        except Refused as refusal:
            kind = None if message is None else type(message.body)
            self.intake.record_refusal(refusal, session, kind, caller.actor.principal)
            raise

    def _decode(self, caller: Caller, data: bytes, session: str) -> Message:
        """The decoded message, charged against the rate limit as in every transport."""
        bucket = self.authenticator.bucket_of(caller)
        if bucket is not None:
            bucket.charge_bytes(len(data), asyncio.get_running_loop().time())
            if bucket.is_exhausted:
                bucket.precheck(data)
        started = perf_counter()
        try:
            message = ensure_addressed(pvp.decode(data, self.intake.limits.message), session)
        except Refused:
            charge_malformed(bucket)
            raise
        if bucket is not None:
            bucket.charge_work_time(perf_counter() - started)
            bucket.charge_message(message.body.type, len(data))
        return message

    def _actor_kind_of(self, caller: Caller, message: Message) -> Caller:
        """Without tokens, the join itself says whether the caller is an agent."""
        body = message.body
        agent = isinstance(body, SessionJoin) and body.participant.kind == "agent"
        if caller.identity is None and agent:
            return caller._replace(
                actor=trusted_actor(caller.actor.principal, Kind.AGENT, HTTP_RUNTIME)
            )
        return caller

    async def _submit(self, caller: Caller, message: Message) -> Receipt:
        """Submit to the engine and wait for the outcome."""
        caller = self._actor_kind_of(caller, message)
        message = with_http_transport(message)
        if isinstance(message.body, SessionCreate):
            message = with_session_id(message, caller.actor.principal)
        stream, seat = f"room/{message.room}", caller.actor.principal
        is_join = message.body.needs is Permission.ENTER
        member = self.presence.member(stream, seat) if is_join else None
        refused, id, seq = await self._outcome_of(caller, message, member)
        if member is not None:
            self.presence.track(member)
        self.presence.on_request(stream, caller.actor)
        if refused is not None:
            raise refused
        return Receipt(id, seq, message.room)

    async def _outcome_of(
        self, caller: Caller, message: Message, member: PollingMember | None
    ) -> tuple[Refused | None, str, int]:
        done: asyncio.Future[tuple[Refused | None, str, int]]
        done = asyncio.get_running_loop().create_future()

        def on_outcome(outcome: Outcome) -> None:
            if not done.done():
                # Not the outcome itself: its refusal references this frame, which would be a cycle.
                done.set_result((outcome.refusal, *id_and_seq_of(outcome)))

        submit = self.intake.submit_for(secure=caller.secure)
        submit(Submission(message, caller.actor, on_outcome, member))
        return await done

    def error_response(
        self,
        refusal: Refused,
        session: str,
        related_to: str | None,
        *,
        kind: type[Body] | None = None,
        seat: str = "",
    ) -> Response:
        """The PVP error envelope with the matching HTTP status (UNI-26)."""
        frame = self.intake.error_frame(refusal, session, related_to, kind, seat)
        rendered = http_refusal(refusal)
        return Response(frame, rendered.status, rendered.headers, JSON_TYPE)


def ensure_addressed(message: Message, session: str) -> Message:
    """Refuse a message whose session is not the one in the path (OPEN-50)."""
    matches = message.room == session
    if session == NEW_SESSION:
        matches = isinstance(message.body, SessionCreate)
    if not matches:
        detail = "The session in the path must be the envelope's; use `new` only for session.create"
        raise Refused(Reason.MALFORMED, detail)
    return message


def with_http_transport(message: Message) -> Message:
    """A join over HTTP says so, whatever the client wrote."""
    body = message.body
    if isinstance(body, SessionJoin):
        participant = replace(body.participant, transport="http")
        return replace(message, body=replace(body, participant=participant))
    return message


def charge_malformed(bucket: Bucket | None) -> None:
    """Charge for a message that cannot be decoded."""
    if bucket is not None:
        bucket.messages_left -= 1


def id_and_seq_of(outcome: Outcome) -> tuple[str, int]:
    """Id and seq of the message, of a repeated `session.create` the first one's; 0 for a signal."""
    id = outcome.submission.message.id
    by_id = {each.record.id: each.record.seq for each in outcome.records}
    if outcome.is_retry and by_id and id not in by_id:
        return next(iter(by_id.items()))
    return id, by_id.get(id, 0)


async def read_envelope(request: Request, limits: Limits, reserve: ReserveBytes) -> bytes:
    """The body within its limits; the JSON content type keeps out cross-site forms."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON_TYPE:
        raise Refused(
            Reason.UNSUPPORTED_MEDIA_TYPE, f"Send the envelope with Content-Type: {JSON_TYPE}"
        )
    if request.headers.get("content-encoding", IDENTITY_ENCODING).lower() != IDENTITY_ENCODING:
        raise Refused(
            Reason.UNSUPPORTED_MEDIA_TYPE,
            "Send the envelope uncompressed, without Content-Encoding",
        )
    body = collect_long_body(request, limits.frame, reserve, long_message_refusal(limits))
    return await read_within(body, limits.body_seconds)


def long_message_refusal(limits: Limits) -> Refused:
    """For a body that is longer than a frame, and therefore longer than a message may be."""
    detail = f"A message may have at most {limits.message} bytes"
    return limit_exceeded("message", limits.message, detail)
