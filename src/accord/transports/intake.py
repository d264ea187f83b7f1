"""Where every transport hands in its PVP messages: identity, rate limit, quota, session."""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from accord.core.attention.runtimes import RuntimeStatus
from accord.core.attention.state import Seat
from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_id
from accord.core.kernel.limits import Limits, limit_exceeded
from accord.core.kernel.messages import Body, ChunkBatch, Instant, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.ulid import derive_ulid_after
from accord.core.people.state import CLOCK_SKEW_MS
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.session_lifecycle import SessionCreate, SessionCreated, SessionEnded
from accord.core.room.shared_context.secrets import SecretShare
from accord.core.room.threads.state import is_thread_id
from accord.engine.engine import Engine
from accord.engine.ports import Clock, EncodedRecord
from accord.engine.scheduling import WallClock
from accord.engine.streams.startup import RoomSummaries
from accord.engine.streams.stream import OnOutcome, Outcome, Peer, Submission
from accord.identity.token_signing import (
    Identity,
    Keyring,
    TokenVerifier,
    ensure_token_live,
    trusted_actor,
)
from accord.transports.rate_limit import Buckets
from accord.transports.refusal_log import RefusalLog

SESSION_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,128}")
UNNAMED_SESSIONS = frozenset({"", "new"})
ENTRY_BODIES = frozenset({SessionCreate, SessionJoin})
UNENCRYPTED_REFUSAL = (
    "This connection is not encrypted, so secrets cannot be shared over it. Configure TLS on the "
    "server (tls_cert, tls_key) and connect with wss:// or https://"
)
# Hands the messages of one connection in.
Submit = Callable[[Submission], None]


def with_session_id(message: Message, seat: str) -> Message:
    """A new session's message with an id: the creator's own, or a generated one (OPEN-5).

    A generated id is derived from sender and message id, so that a retry after a lost response gets
    the same session instead of a second one (OPEN-36).
    """
    if message.room in UNNAMED_SESSIONS:
        return replace(message, room=f"ses_{derive_ulid_after(message.id, seat)}")
    if not SESSION_ID_PATTERN.fullmatch(message.room) or is_thread_id(message.room):
        detail = (
            "A session id has 1 to 128 of A-Z a-z 0-9 _ - and does not begin with th_, as ids of "
            "threads do; leave it empty to get one"
        )
        raise Refused(Reason.MALFORMED, detail)
    return message


Key = TypeVar("Key")


MAX_SEEN_AGENTS = 100_000
# As a session counts its members' silence by default.
ACTIVE_MS, IDLE_MS = 120_000, 300_000


class AgentTraffic:
    """When each agent was last heard of, by anything that it sent (UNI-22); in memory alone.

    Heartbeats are not counted: a program that idles sends them too, and the registry keeps them.
    """

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._seen: OrderedDict[Seat, Instant] = OrderedDict()

    def note(self, actor: Actor) -> None:
        """The actor sent something; people are not followed."""
        if actor.kind is not Kind.AGENT:
            return
        seat = Seat(actor.workspace, actor.principal)
        self._seen[seat] = self._now()
        if len(self._seen) > MAX_SEEN_AGENTS:
            self._seen.popitem(last=False)

    def last_seen(self, seat: Seat) -> Instant | None:
        """When it was last heard of since this server started."""
        return self._seen.get(seat)

    def status(self, seat: Seat) -> RuntimeStatus:
        """What its requests say about it."""
        at = self._seen.get(seat)
        if at is None or (silent := self._now() - at) >= IDLE_MS:
            return RuntimeStatus.OFFLINE
        return RuntimeStatus.ACTIVE if silent < ACTIVE_MS else RuntimeStatus.IDLE

    def seats_in(self, workspace: str) -> Iterator[Seat]:
        """Every agent of a workspace that was heard of."""
        return (seat for seat in self._seen if seat.workspace == workspace)


class SessionOwner(NamedTuple):
    """The creator of a session."""

    workspace: str
    seat: str


class SessionQuota:
    """Open sessions counted by creator, including those being created."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine = engine
        self.limits = limits
        self.share = 1.0  # of the limits; other servers allow the rest
        self.owners: dict[str, SessionOwner] = {}
        self.by_owner: Counter[SessionOwner] = Counter()
        self.by_workspace: Counter[str] = Counter()
        engine.on_state_change.append(self.on_state_change)

    def load(self, summaries: RoomSummaries) -> None:
        """Count the open sessions found at startup."""
        for stream, summary in summaries.items():
            if summary:
                self._add(stream, SessionOwner(*summary))

    def reserve(self, stream: str, actor: Actor, on_outcome: OnOutcome | None) -> OnOutcome | None:
        """Reserve a session.

        Raises Refused. The returned callback releases it when creation fails.
        """
        if stream in self.owners:
            return on_outcome
        owner = SessionOwner(actor.workspace, actor.principal)
        self._ensure_capacity(owner)
        self._add(stream, owner)

        def release_on_failure(outcome: Outcome) -> None:
            if outcome.refusal is not None or outcome.is_retry:  # it existed and had ended before
                self._remove(stream)
            if on_outcome is not None:
                on_outcome(outcome)

        return release_on_failure

    def _ensure_capacity(self, owner: SessionOwner) -> None:
        limits = self.limits
        if self.by_owner[owner] >= (
            maximum := max(1, int(limits.sessions_per_principal * self.share))
        ):
            detail = f"{owner.seat} has {maximum} open sessions; end one first"
            raise limit_exceeded("sessions_per_principal", maximum, detail)
        if self.by_workspace[owner.workspace] >= (maximum := int(limits.sessions * self.share)):
            detail = f"The workspace has {maximum} open sessions; end one first"
            raise limit_exceeded("sessions", maximum, detail)

    def on_state_change(self, stream: str, records: Sequence[EncodedRecord]) -> None:
        """Update counts when a session ends or another process creates one."""
        for encoded in records:
            event = encoded.record.event
            if isinstance(event, SessionEnded):
                self._remove(stream)
            elif isinstance(event, SessionCreated):
                self._add(stream, SessionOwner(event.workspace, event.creator))

    def _add(self, stream: str, owner: SessionOwner) -> None:
        if stream not in self.owners:
            self.owners[stream] = owner
            self.by_owner[owner] += 1
            self.by_workspace[owner.workspace] += 1

    def _remove(self, stream: str) -> None:
        owner = self.owners.pop(stream, None)
        if owner is not None:
            decrement(self.by_owner, owner)
            decrement(self.by_workspace, owner.workspace)


class AuthPolicy(NamedTuple):
    """How identities are established.

    By tokens of this keyring; `open` accepts claimed names too. `server_id` names the cookie, and
    from `id_secret` the ids of keyed messages are derived.
    """

    keyring: Keyring
    revoked: Callable[[], Container[str]]
    open: bool = False
    clock: Clock = WallClock()
    server_id: Callable[[], str] = lambda: ""
    id_secret: Callable[[], str] = lambda: ""


class Intake:
    """What every PVP transport does with a message before the engine sees it."""

    def __init__(self, engine: Engine, auth: AuthPolicy, rate: float | None = None) -> None:
        self.engine = engine
        self.auth = auth
        self._tokens = TokenVerifier(auth.keyring)
        self.limits: Limits = engine.policy.limits
        self.buckets = Buckets(rate, self.limits)
        self.session_quota = SessionQuota(engine, self.limits)
        self.closed = False
        self.refusal_log = RefusalLog()
        self.traffic = AgentTraffic(engine.clock.now)
        # Takes what is sent to a thread; set where threads are served.
        self.watch_thread: Submit = refuse_thread
        # Whether a member is connected to another server; set where there may be others.
        self.is_elsewhere: Callable[[str, str], bool] | None = None

    @property
    def is_open(self) -> bool:
        """Whether claimed names are accepted without a token."""
        return self.auth.open

    def identify(self, token: str) -> Identity:
        """The identity that a token proves; raises Refused."""
        return self._tokens.verify(token, self.auth.clock.now(), self.auth.revoked())

    def ensure_token_live(self, identity: Identity) -> None:
        """Refuse an identity whose token has expired or was revoked since it was verified."""
        ensure_token_live(identity.claims, self.auth.clock.now(), self.auth.revoked())

    def seconds_valid(self, identity: Identity) -> float:
        """Seconds until the token expires."""
        return max(0, identity.expires_at - self.auth.clock.now()) / 1000

    def seconds_answered(self, identity: Identity) -> float:
        """Seconds for which a request with this token is still answered.

        Its expiry plus clock skew.
        """
        return max(0, identity.expires_at + CLOCK_SKEW_MS - self.auth.clock.now()) / 1000

    def assume_actor(self, message: Message, runtime: str) -> Actor:
        """The actor that an unauthenticated message claims as its sender."""
        body = message.body
        is_agent = isinstance(body, SessionJoin) and body.participant.kind == "agent"
        return trusted_actor(message.sender, Kind.AGENT if is_agent else Kind.HUMAN, runtime)

    def take(self, submission: Submission) -> None:
        """Submit a message to the engine; raises Refused when it is not even admissible."""
        message = submission.message
        self.traffic.note(submission.actor)
        stream = f"room/{message.room}"
        if self.is_elsewhere is not None and type(message.body) is SecretShare:
            ensure_in_reach(stream, message.body, self.is_elsewhere)
        if self.closed or stream not in self.engine.streams or type(message.body) in ENTRY_BODIES:
            is_for_thread = is_thread_id(message.room) and type(message.body) is not SessionCreate
            if is_for_thread and not self.closed:
                self.watch_thread(submission)
                return
            stream = self._admit(submission)
        self.engine.submit(stream, submission)

    def take_chunk_batch(
        self, chunks: ChunkBatch, actor: Actor, answer: OnOutcome, peer: Peer
    ) -> bool:
        """Submit chunks of one response together; False when they must be submitted one by one."""
        return not self.closed and self.engine.submit_chunks(chunks, actor, answer, peer)

    def _admit(self, submission: Submission) -> str:
        """Check quotas and ids before a session is opened or entered; returns its stream."""
        if self.closed:
            detail = "The server is stopping; reconnect and send it again"
            raise Refused(Reason.UNAVAILABLE, detail, {"stopping": True})
        actor, peer, kind = submission.actor, submission.peer, type(submission.message.body)
        if kind is SessionCreate:
            submission.message = with_session_id(submission.message, actor.principal)
        room = submission.message.room
        stream = f"room/{room}"
        if stream not in self.engine.streams:
            if not is_id(room):
                raise Refused(Reason.MALFORMED, "session must be 1 to 128 printable characters")
            self.buckets.charge_stream_load(actor, submission.message.body.type)
        if kind is SessionJoin and actor.credential is None:
            self.ensure_seat_free(stream, actor, peer.runtime if peer else "")
        if kind is SessionCreate:
            submission.on_outcome = self.session_quota.reserve(stream, actor, submission.on_outcome)
        return stream

    def take_insecure(self, submission: Submission) -> None:
        """Like `take`, for a connection that third parties could read (PVP 20.3)."""
        if type(submission.message.body) is SecretShare:
            raise Refused(Reason.FORBIDDEN, UNENCRYPTED_REFUSAL)
        self.take(submission)

    def submit_for(self, *, secure: bool) -> Submit:
        """The function that submits messages of such a connection."""
        return self.take if secure else self.take_insecure

    def ensure_seat_free(self, stream: str, actor: Actor, runtime: str) -> None:
        """OPEN-29: without tokens, the name of a connected member cannot be taken over."""
        if self.engine.delivery.has_other_runtime(stream, actor.principal, runtime):
            detail = f"{actor.principal} is already connected; without tokens a name connects once"
            raise Refused(Reason.FORBIDDEN, detail)

    def error_frame(
        self,
        refusal: Refused,
        session: str,
        related_to: str | None,
        kind: type[Body] | None = None,
        seat: str = "",
    ) -> bytes:
        """The error for the sender; counted and logged, without the message's content."""
        self.record_refusal(refusal, session, kind, seat)
        return pvp.encode_refusal(
            self.engine.new_id(), self.engine.clock.now(), session, refusal, related_to
        )

    def record_refusal(
        self, refusal: Refused, session: str, kind: type[Body] | None = None, seat: str = ""
    ) -> None:
        """Count and log a refusal."""
        self.engine.counters.refused[kind, refusal.reason] += 1
        stream = self.engine.streams.get(f"room/{session}")
        exists = (
            stream is not None and stream.base.version > 0
        )  # otherwise the id is only what the sender wrote
        self.refusal_log.log_refusal(refusal, seat, session if exists else "", kind)


def ensure_in_reach(
    stream: str, share: SecretShare, is_elsewhere: Callable[[str, str], bool]
) -> None:
    """Refuse to share a secret with a member who is connected to another server."""
    if far := sorted(member for member in set(share.scope) if is_elsewhere(stream, member)):
        detail = (
            f"{', '.join(far)} is connected to another server, and there is no link on which "
            "secrets may travel between servers; share it when they are connected to this one"
        )
        raise Refused(Reason.FORBIDDEN, detail, {"elsewhere": far})


def refuse_thread(submission: Submission) -> None:
    """Where no threads are served."""
    raise Refused(Reason.NO_ROOM, f"There is no session {submission.message.room}")


def decrement(count: Counter[Key], key: Key) -> None:
    """Subtract one, and drop keys at zero."""
    count[key] -= 1
    if not count[key]:
        del count[key]
