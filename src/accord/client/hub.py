"""Between the one connection and the sessions on it: who gets what, and when to stop reading."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from accord.core.dialects.codes import CODES
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Lifetime
from accord.core.kernel.refusal import Why
from accord.core.kernel.times import iso
from accord.core.kernel.ulid import ulid
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import SessionJoin
from accord.core.room.notices import ErrorReport

from .attendance import Attendance
from .envelope import UNLINKED, Envelope, Head, Letter, Links, head, letter, typed
from .errors import ClientError, ServerRefused
from .identity import Identity
from .outbox import Accepted, Answer, Outbox
from .web import Web

log = logging.getLogger("accord.client")

LONGEST_NEWS = 500


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """An id for a message or a session."""
    return ulid(now(), os.urandom(10))


class Stamp(NamedTuple):
    """What tells a message from all others, and when it was written."""

    id: str
    ts: str


def fresh_stamp() -> Stamp:
    """A new id, at this moment."""
    return Stamp(fresh_id(), iso(now()))


class Hub:
    """All sessions of a client, and the messages that belong to none of them."""

    def __init__(
        self, who: Identity, web: Web, say: Callable[[str], None], stamp: Callable[[], Stamp]
    ) -> None:
        self.id = who.id
        self._web = web
        self._say = say
        self._stamp = stamp
        self._up = False
        self._attendances: dict[str, Attendance] = {}
        self._loose = Outbox()
        self._behind: set[str] = set()
        self._stirred = asyncio.Event()
        self._failure: ClientError | None = None
        self._start_over = False

    # Sessions

    def find(self, session: str) -> Attendance | None:
        """The session, if one is in it or on the way in."""
        return self._attendances.get(session)

    async def attend(
        self, session: str, join: SessionJoin, create: SessionCreate | None, bound: int
    ) -> Attendance:
        """In the session; raises ServerRefused where one is not let in."""
        self.check()
        attendance = Attendance(self, session, join, create, bound)
        self._attendances[session] = attendance
        if self._up:
            attendance.enter()
        self.stir()
        try:
            await asyncio.shield(attendance.inside)
        except asyncio.CancelledError:
            attendance.finish()
            raise
        return attendance

    def post(self, session: str, body: Body, links: Links = UNLINKED) -> Answer:
        """One message to a session that one is a member of but not in."""
        self.check()
        pending = self._loose.add(self.letter(session, body, links))
        if self._up:
            self.say(pending.letter)
        self.stir()
        if body.lifetime is Lifetime.SIGNAL:
            # Nobody answers a signal to who is outside.
            self._loose.accept(Accepted(pending.letter.id, 0, None))
        return pending.answer

    def check(self) -> None:
        """Raise what has ended the connection, if anything has."""
        if self._failure is not None:
            raise self._failure

    # What attendances need

    def letter(self, session: str, body: Body, links: Links = UNLINKED) -> Letter:
        """A message with an id and a time of its own."""
        return letter(*self._stamp(), session, self.id, body, links)

    def say(self, letter: Letter) -> None:
        """Send it on the present connection, or on none."""
        if self._up:
            self._say(letter.text)

    def stir(self) -> None:
        """Something changed that may let reading go on."""
        self._stirred.set()

    def forget(self, session: str) -> None:
        """This session is over."""
        self._attendances.pop(session, None)
        self._behind.discard(session)

    def catch_up(self, session: str) -> None:
        """It ended while nobody listened: read the rest of it from the archive."""
        self._behind.add(session)

    def try_again(self) -> None:
        """Let go of the present connection and try a new one."""
        self._start_over = True

    # What the link brings

    def opened(self) -> None:
        """Everybody gets in again, and what belongs nowhere is said again."""
        self._up = True
        self._start_over = False
        for attendance in list(self._attendances.values()):
            attendance.enter()
        for each in self._loose.unanswered():
            self.say(each)

    def lost(self, why: str) -> None:
        """Tell every session, and wait for another connection."""
        self._up = False
        for attendance in self._attendances.values():
            attendance.lost(self._transport_error(attendance.id, why))

    def _transport_error(self, session: str, why: str) -> Envelope:
        """PVP 19.5: what the transport could not do is heard like any other error."""
        code = CODES[Why.TRANSPORT]
        body = ErrorReport(
            code="TRANSPORT_ERROR",
            message=f"The connection was lost: {why}"[:LONGEST_NEWS],
            recoverable=code.recoverable,
        )
        id, ts = fresh_stamp()
        return Envelope(id, ts, session, SYSTEM, body)

    def failed(self, error: ClientError) -> None:
        """It is over for everybody."""
        if self._failure is None:
            self._up = False
            self._failure = error
            self._loose.fail(error)
            for attendance in list(self._attendances.values()):
                attendance.finish(error)

    async def heard(self, data: bytes) -> None:
        """Hand a frame to whom it is for, and wait while somebody has too much to read."""
        found = head(data)
        if found is None:
            log.warning("what the server sent is no envelope: %.200r", data)
            return
        is_error = found.type == ErrorReport.type
        envelope = typed(found)
        if not (is_error and envelope is not None and self._refused(envelope)):
            self._hand_on(found, envelope)
        for session in list(self._behind):
            await self._read_on(session)
        if self._start_over:
            raise ConnectionError("the server could not let us in again just now")
        await self._pause()

    def _hand_on(self, found: Head, envelope: Envelope | None) -> None:
        if found.id in self._loose:
            self._loose.accept(Accepted(found.id, found.seq, envelope))
        if attendance := self._attendances.get(found.session):
            attendance.hear(found.id, found.seq, envelope)

    def _refused(self, envelope: Envelope) -> bool:
        """Whether an error answers one of our messages; it is told to whoever waits."""
        body = envelope.body
        if not isinstance(body, ErrorReport) or body.related_to is None:
            return False
        error = ServerRefused(
            body.code, body.message, recoverable=body.recoverable, details=body.details
        )
        places = list(self._attendances.values())
        if error.details.get("stopping") and self._keeps(body.related_to):
            return True
        return self._loose.refuse(body.related_to, error) or any(
            place.refused(body.related_to, error) for place in places
        )

    def _keeps(self, id: str) -> bool:
        """Whether we wait for the answer to this; it is said again once the server is back."""
        return id in self._loose or any(each.waits_for(id) for each in self._attendances.values())

    async def _read_on(self, session: str) -> None:
        self._behind.discard(session)
        attendance = self._attendances.get(session)
        if attendance is None:
            return
        try:
            async for envelope in self._web.history(session, attendance.seq):
                attendance.hear(envelope.id, envelope.seq, envelope)
        except ClientError as error:
            attendance.finish(error)
        else:
            attendance.finish()

    async def _pause(self) -> None:
        """Not while anybody waits for an answer, which may be the next thing to read."""
        while self._too_much() and not self._waiting():
            self._stirred.clear()
            await self._stirred.wait()

    def _too_much(self) -> bool:
        return any(each.inbox.full for each in self._attendances.values())

    def _waiting(self) -> bool:
        return bool(self._loose) or any(each.waiting for each in self._attendances.values())
