"""Being in one session: getting in, staying in over lost connections, and going."""

import asyncio
from typing import Protocol

from accord.core.kernel.log import Body, Lifetime
from accord.core.room.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.lifecycle import SessionCreate, SessionEnd
from accord.core.room.members import SessionJoin, SessionLeave
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.prompts import PromptDraft
from accord.core.room.shelf import ContextAdd

from .decisions import Decisions, Recent
from .envelope import UNLINKED, Envelope, Letter, Links
from .errors import ClientError, Closed, ServerRefused, SessionOver
from .inbox import Inbox
from .outbox import Accepted, Answer, Outbox

# Refusals of a return that pass by themselves.
PASSING = frozenset({"RATE_LIMITED", "INTERNAL_ERROR", "TIMEOUT", "TRANSPORT_ERROR"})
# Signals that come back, as an echo or as a pong; no other is answered.
ANSWERED = (PromptDraft, HeartbeatPing)
# Refusals of a leave that say that one is out.
OUT_ALREADY = frozenset({"PARTICIPANT_NOT_FOUND", "SESSION_NOT_FOUND", "INVALID_STATE"})


class Hub(Protocol):
    """What an attendance needs of its client."""

    id: str

    def letter(self, session: str, body: Body, links: Links = UNLINKED) -> Letter:
        """A message with an id and a time of its own."""
        ...

    def say(self, letter: Letter) -> None:
        """Send it on the present connection, or on none."""
        ...

    def stir(self) -> None:
        """Something changed that may let reading go on."""
        ...

    def forget(self, session: str) -> None:
        """This session is over."""
        ...

    def catch_up(self, session: str) -> None:
        """It ended while nobody listened: read the rest of it from the archive."""
        ...

    def try_again(self) -> None:
        """Let go of the present connection and try a new one."""
        ...


class Attendance:
    """One session of one client."""

    def __init__(
        self, hub: Hub, id: str, join: SessionJoin, create: SessionCreate | None, bound: int
    ) -> None:
        self.hub = hub
        self.id = id
        self.inbox = Inbox(bound, hub.stir)
        self.decisions = Decisions(hub.stir)
        self.inside: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._join = join
        self._create = hub.letter(id, create) if create is not None else None
        self._tried = False
        self._door = ""
        self._attached = False
        self._leaving = False
        self._over: ClientError | None = None
        self._outbox = Outbox()
        self._seq = 0
        self._last: str | None = None
        self._unnumbered: Recent[bool] = Recent()
        self._announced: dict[str, str] = {}
        self._latest: dict[str | None, str] = {}

    @property
    def attached(self) -> bool:
        """Whether the present connection hears the session."""
        return self._attached

    @property
    def waiting(self) -> bool:
        """Whether an answer is awaited, so that reading has to go on."""
        return not self._attached or bool(self._outbox) or bool(self.decisions)

    @property
    def seq(self) -> int:
        """The place of the last message heard."""
        return self._seq

    def waits_for(self, id: str) -> bool:
        """Whether the answer to this one is awaited."""
        return id in self._outbox

    # The connection

    def enter(self) -> None:
        """On a fresh connection: say what lets us in, and what we saw last (OPEN-37)."""
        if self._leaving:
            self._say_again()
        elif self._create is not None and not self._tried:
            self._tried = True
            self._door = self._create.id
            self.hub.say(self._create)
        else:
            if self._create is not None:
                self.hub.say(self._create)
            self._knock()

    def _knock(self) -> None:
        letter = self.hub.letter(self.id, self._join, Links(self._last))
        self._door = letter.id
        self.hub.say(letter)

    def lost(self, news: Envelope) -> None:
        """The connection is gone; what is unanswered will be said again."""
        if self._attached:
            self.inbox.put(news)
        self._attached = False
        self._door = ""

    def _say_again(self) -> None:
        for letter in self._outbox.unanswered():
            self.hub.say(letter)

    # Saying

    def say(self, body: Body, links: Links = UNLINKED) -> Answer:
        """Said in this order; the answer comes later, over as many connections as it takes."""
        if self._over is not None:
            raise self._over
        letter = self.hub.letter(self.id, body, links)
        if body.lifetime is Lifetime.SIGNAL and not isinstance(body, ANSWERED):
            return self._signal(letter)
        if isinstance(body, SessionJoin):
            self._join = body
        self._leaving = self._leaving or isinstance(body, SessionLeave)
        pending = self._outbox.add(letter)
        if self._attached:
            self.hub.say(letter)
        self.hub.stir()
        return pending.answer

    def _signal(self, letter: Letter) -> Answer:
        """Nobody acknowledges a signal, and one that is lost is not missed."""
        if self._attached:
            self.hub.say(letter)
        answer: Answer = asyncio.get_running_loop().create_future()
        answer.set_result(Accepted(letter.id, 0, None))
        return answer

    # Hearing

    def hear(self, id: str, seq: int, envelope: Envelope | None) -> None:
        """One message of this session; None is one of a type that we do not know."""
        if envelope is not None and self._is_heartbeat(envelope):
            return
        is_new = self._is_new(id, seq, envelope)
        self._outbox.accept(Accepted(id, seq, envelope))
        if envelope is not None and is_new:
            self._note(envelope)
            self.decisions.hear(envelope)
            self.inbox.put(envelope)
        if self._create is not None and id == self._create.id:
            self._create = None
        if id == self._door:
            self._let_in()
        if envelope is not None and self._ends(envelope):
            self.finish()

    def _is_heartbeat(self, envelope: Envelope) -> bool:
        """Pings are answered and pongs taken for answers; no reader is bothered with either."""
        match envelope.body:
            case HeartbeatPing():
                self.hub.say(self.hub.letter(self.id, HeartbeatPong(), Links(envelope.id)))
                return True
            case HeartbeatPong():
                self._outbox.accept(Accepted(envelope.ref or "", 0, envelope))
                return True
            case _:
                return False

    def _is_new(self, id: str, seq: int, envelope: Envelope | None) -> bool:
        """Each message once: by its place, or by its id where it has none."""
        if seq:
            if seq <= self._seq:
                return False
            self._seq, self._last = seq, id
            if envelope is not None and isinstance(envelope.body, ContextAdd):
                # Whoever comes back is told again what lies on the shelf.
                self._unnumbered[id] = True
        elif id in self._unnumbered:
            return False
        else:
            self._unnumbered[id] = True
        return envelope is None or self._is_news(envelope)

    def _note(self, envelope: Envelope) -> None:
        if envelope.seq:
            self._latest[envelope.fork] = envelope.id

    def latest(self, fork: str | None) -> str:
        """The last message heard in a fork, or else in the trunk it comes from."""
        return self._latest.get(fork) or self._latest.get(None, "")

    def _is_news(self, envelope: Envelope) -> bool:
        """The roll call repeats announcements that one may have heard long ago (OPEN-30)."""
        body = envelope.body
        if not isinstance(body, ParticipantAnnounce):
            return True
        if self._announced.get(body.id) == envelope.id:
            return False
        self._announced[body.id] = envelope.id
        return True

    def _let_in(self) -> None:
        self._door = ""
        self._attached = True
        if not self.inside.done():
            self.inside.set_result(None)
        self._say_again()

    def _ends(self, envelope: Envelope) -> bool:
        """Whether that was the last there is to hear; a leave before our return is old news."""
        body = envelope.body
        if isinstance(body, SessionEnd):
            return True
        mine = isinstance(body, SessionLeave) and self.hub.id in {body.participant, envelope.sender}
        return mine and (self._attached or self._leaving)

    # Refusals and the end

    def refused(self, id: str, error: ServerRefused) -> bool:
        """An error about one of our messages; whether it was."""
        if id == self._door or (self._create is not None and id == self._create.id):
            self._turned_away(error)
            return True
        known = self._outbox.refuse(id, error)
        if known and self._leaving and error.code in OUT_ALREADY:
            self.finish()
        return known

    def _turned_away(self, error: ServerRefused) -> None:
        returning = self.inside.done()
        if returning and error.recoverable and error.code in PASSING:
            self.hub.try_again()
        elif returning and error.code == "INVALID_STATE" and not error.recoverable:
            self.hub.catch_up(self.id)
        else:
            self.finish(error)

    def finish(self, error: ClientError | None = None) -> None:
        """Over, well or badly; whoever waits is told."""
        if self._over is not None:
            return
        self._over = error or SessionOver(f"The session {self.id} is over for us")
        self.hub.forget(self.id)
        self.inbox.close(None if isinstance(error, Closed) else error)
        self._outbox.fail(self._over)
        self.decisions.fail(self._over)
        if not self.inside.done():
            self.inside.set_exception(self._over)
            self.inside.exception()
