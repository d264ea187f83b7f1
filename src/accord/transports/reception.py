"""Where PVP messages come in, whichever transport brings them: who speaks, and for which room."""

import re
from collections.abc import Callable, Container
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import is_id
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin
from accord.core.room.secrets import SecretShare
from accord.engine.cell import Asked, Outcome, Peer
from accord.engine.clock import WallClock
from accord.engine.engine import Engine
from accord.engine.ports import Clock
from accord.transports.bucket import Buckets
from accord.transports.identity import Identity, Keyring, ensure_live, open_actor, verify
from accord.transports.reports import Reports
from accord.transports.sessions import OpenSessions

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
UNNAMED = frozenset({"", "new"})
AT_THE_DOOR = frozenset({SessionCreate, SessionJoin})
READABLE = (
    "A secret is shared over TLS, or on the server's own machine: this connection can be read "
    "on its way. Let the server speak TLS (tls_cert, tls_key), and write wss:// or https://"
)
Answerer = Callable[[Outcome], None]


class Taker(Protocol):
    """Where messages of a connection go."""

    def __call__(
        self,
        message: Message,
        actor: Actor,
        peer: Peer | None,
        answer: Answerer,
        *,
        quiet: bool = False,
    ) -> None:
        """With `quiet`, the answer to a message that the room hears may be left out."""
        ...


class Trust(NamedTuple):
    """How identities are known: by the ring's signatures; `open` takes those without on trust."""

    keyring: Keyring
    revoked: Callable[[], Container[str]]
    open: bool = False
    clock: Clock = WallClock()


class Reception:
    """What every PVP transport does with a message before the engine sees it."""

    def __init__(self, engine: Engine, trust: Trust, rate: float | None = None) -> None:
        self.engine = engine
        self.trust = trust
        self.limits: Limits = engine.house.limits
        self.buckets = Buckets(rate, self.limits)
        self.sessions = OpenSessions(engine, self.limits)
        self.closed = False
        self.reports = Reports()

    @property
    def is_open(self) -> bool:
        """Whether identities are taken on trust."""
        return self.trust.open

    def identify(self, token: str) -> Identity:
        """Whom a token speaks for; raises Refused."""
        return verify(token, self.trust.clock.now(), self.trust.keyring, self.trust.revoked())

    def ensure_live(self, identity: Identity) -> None:
        """What was good a while ago still is; raises Refused."""
        ensure_live(identity.claims, self.trust.clock.now(), self.trust.revoked())

    def left(self, identity: Identity) -> float:
        """For how many seconds from now it is good."""
        return max(0, identity.expires_at - self.trust.clock.now()) / 1000

    def presume(self, message: Message, runtime: str) -> Actor:
        """On trust: whoever the message says it is from."""
        body = message.body
        agent = isinstance(body, SessionJoin) and body.participant.kind == "agent"
        return open_actor(message.sender, Kind.AGENT if agent else Kind.HUMAN, runtime)

    def take(
        self,
        message: Message,
        actor: Actor,
        peer: Peer | None,
        answer: Answerer,
        *,
        quiet: bool = False,
    ) -> None:
        """Hand a message to the engine; raises Refused when it cannot even be asked."""
        engine, stream = self.engine, f"room/{message.room}"
        if self.closed or stream not in engine.cells or type(message.body) in AT_THE_DOOR:
            self._admit(message, actor, peer, answer)
        else:
            engine.submit(stream, Asked(message, actor, answer, peer, quiet=quiet))

    def _admit(self, message: Message, actor: Actor, peer: Peer | None, answer: Answerer) -> None:
        if self.closed:
            detail = "The server stops; come back and send it once more"
            raise Refused(Why.UNAVAILABLE, detail, {"stopping": True})
        kind = type(message.body)
        if kind is SessionCreate:
            message = self.named(message)
        stream = f"room/{message.room}"
        if stream not in self.engine.cells:
            if not is_id(message.room):
                raise Refused(Why.MALFORMED, "session must be 1 to 128 printable characters")
            self.buckets.open(actor, message.body.type)
        if kind is SessionJoin and actor.grant is None:
            self.guard_seat(stream, actor, peer.runtime if peer else "")
        if kind is SessionCreate:
            answer = self.sessions.create(stream, actor, answer)
        self.engine.submit(stream, Asked(message, actor, answer, peer))

    def overhear(
        self,
        message: Message,
        actor: Actor,
        peer: Peer | None,
        answer: Answerer,
        *,
        quiet: bool = False,
    ) -> None:
        """The same, from a connection that others may read along (PVP 20.3)."""
        if type(message.body) is SecretShare:
            raise Refused(Why.FORBIDDEN, READABLE)
        self.take(message, actor, peer, answer, quiet=quiet)

    def taker(self, *, private: bool) -> Taker:
        """Where messages of a connection go."""
        return self.take if private else self.overhear

    def named(self, message: Message) -> Message:
        """A session to be: its creator's id for it, or one of ours (OPEN-5)."""
        if message.room in UNNAMED:
            return replace(message, room=f"ses_{self.engine.ids()}")
        if not SESSION_ID.fullmatch(message.room):
            detail = "A session id is 1 to 128 of A-Z a-z 0-9 _ -; leave it empty to get one"
            raise Refused(Why.MALFORMED, detail)
        return message

    def guard_seat(self, stream: str, actor: Actor, runtime: str) -> None:
        """OPEN-29: on trust, nobody takes a seat whose holder is connected."""
        if self.engine.peers.others(stream, actor.seat, runtime):
            detail = f"{actor.seat} is connected already; on trust a seat is taken once"
            raise Refused(Why.FORBIDDEN, detail)

    def refusal(
        self,
        no: Refused,
        session: str,
        related_to: str | None,
        kind: type[Body] | None = None,
        seat: str = "",
    ) -> bytes:
        """The error its sender gets; it is counted, and reported without what was said."""
        self.engine.tally.refused[kind, no.why] += 1
        cell = self.engine.cells.get(f"room/{session}")
        exists = cell is not None and cell.base.version > 0  # else it is only what somebody wrote
        self.reports.tell(no, seat, session if exists else "", kind)
        return pvp.refusal(self.engine.ids(), self.engine.clock.now(), session, no, related_to)
