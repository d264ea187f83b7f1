"""The voice one has in a session: whatever one says goes through here."""

from collections.abc import AsyncIterator, Iterable
from typing import Self

from accord.core.kernel.log import Body

from .attendance import Attendance
from .envelope import Envelope, Links
from .identity import Identity
from .outbox import Accepted, Answer


class Voice:
    """Saying and hearing, in the trunk of a session or in one of its forks."""

    def __init__(self, attendance: Attendance, who: Identity, fork: str | None = None) -> None:
        self._attendance = attendance
        self._who = who
        self.fork_id = fork

    @property
    def id(self) -> str:
        """The session's id."""
        return self._attendance.id

    @property
    def me(self) -> str:
        """Who one is here."""
        return self._who.id

    def within(self, fork: str | None) -> Self:
        """The same session, where what one says is said in that fork; None is the trunk.

        What is about the whole session, such as an interrupt, is said to all of it still.
        """
        return type(self)(self._attendance, self._who, fork)

    def messages(self) -> AsyncIterator[Envelope]:
        """Every message once and in order, over lost connections too; for one reader.

        Those of all forks that one is in, whichever view asks. It ends when the session does, or
        when one leaves; an error that ends the client is raised.
        """
        return self._attendance.inbox

    def say(
        self,
        body: Body,
        ref: str | None = None,
        causal_refs: Iterable[str] = (),
        fork: str | None = None,
    ) -> Answer:
        """Send without waiting; await the result to know what became of it."""
        place = fork or (self.fork_id if body.scoped else None)
        return self._attendance.say(body, Links(ref, tuple(causal_refs), place))

    async def send(
        self,
        body: Body,
        ref: str | None = None,
        causal_refs: Iterable[str] = (),
        fork: str | None = None,
    ) -> Accepted:
        """Accepted by the server, with one effect however often the connection was lost on the way.

        Raises ServerRefused.
        """
        return await self.say(body, ref, causal_refs, fork)
