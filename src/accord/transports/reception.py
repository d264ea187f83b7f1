"""Where PVP messages come in, whichever transport brings them: who speaks, and for which room."""

import re
from collections.abc import Callable, Container
from typing import NamedTuple

from msgspec.structs import replace

from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import is_id, sequel
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Body, Message, Pieces
from accord.core.kernel.refusal import Refused, Why
from accord.core.people.state import SKEW
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin
from accord.core.room.secrets import SecretShare
from accord.engine import run
from accord.engine.cell import Answerer, Asked, Peer
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
# Where messages of a connection go.
Taker = Callable[[Asked], None]


def named(message: Message, seat: str) -> Message:
    """A session to be: its creator's id for it, or one of ours (OPEN-5).

    Ours follows from who asks and from the id of the message, so that whoever did not hear the
    answer and asks again gets the same session and not one more (OPEN-36).
    """
    if message.room in UNNAMED:
        return replace(message, room=f"ses_{sequel(message.id, seat)}")
    if not SESSION_ID.fullmatch(message.room):
        detail = "A session id is 1 to 128 of A-Z a-z 0-9 _ -; leave it empty to get one"
        raise Refused(Why.MALFORMED, detail)
    return message


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

    def answered(self, identity: Identity) -> float:
        """For how many seconds from now what is asked with it is answered; clocks differ."""
        return max(0, identity.expires_at + SKEW - self.trust.clock.now()) / 1000

    def presume(self, message: Message, runtime: str) -> Actor:
        """On trust: whoever the message says it is from."""
        body = message.body
        agent = isinstance(body, SessionJoin) and body.participant.kind == "agent"
        return open_actor(message.sender, Kind.AGENT if agent else Kind.HUMAN, runtime)

    def take(self, asked: Asked) -> None:
        """Hand a message to the engine; raises Refused when it cannot even be asked."""
        message = asked.message
        stream = f"room/{message.room}"
        if self.closed or stream not in self.engine.cells or type(message.body) in AT_THE_DOOR:
            stream = self._admit(asked)
        self.engine.submit(stream, asked)

    def take_together(self, pieces: Pieces, actor: Actor, answer: Answerer, peer: Peer) -> bool:
        """Whether all of them were taken in one go; else they are to be taken one by one."""
        return not self.closed and run.take(self.engine, pieces, actor, answer, peer)

    def _admit(self, asked: Asked) -> str:
        """What has to be so before a session is opened or entered; which one it is."""
        if self.closed:
            detail = "The server stops; come back and send it once more"
            raise Refused(Why.UNAVAILABLE, detail, {"stopping": True})
        actor, peer, kind = asked.actor, asked.peer, type(asked.message.body)
        if kind is SessionCreate:
            asked.message = named(asked.message, actor.seat)
        room = asked.message.room
        stream = f"room/{room}"
        if stream not in self.engine.cells:
            if not is_id(room):
                raise Refused(Why.MALFORMED, "session must be 1 to 128 printable characters")
            self.buckets.open(actor, asked.message.body.type)
        if kind is SessionJoin and actor.grant is None:
            self.guard_seat(stream, actor, peer.runtime if peer else "")
        if kind is SessionCreate:
            asked.answer = self.sessions.create(stream, actor, asked.answer)
        return stream

    def overhear(self, asked: Asked) -> None:
        """The same, from a connection that others may read along (PVP 20.3)."""
        if type(asked.message.body) is SecretShare:
            raise Refused(Why.FORBIDDEN, READABLE)
        self.take(asked)

    def taker(self, *, private: bool) -> Taker:
        """Where messages of a connection go."""
        return self.take if private else self.overhear

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
