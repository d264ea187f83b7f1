"""Somebody who listens for long and notes what came, not what it said."""

from accord.client import Envelope, Session
from tests.helpers.ear import Listening


class Listener(Listening):
    """Every message of a session comes once, and in the order of the room."""

    def __init__(self, session: Session) -> None:
        self.ids: dict[str, None] = {}
        self.seq = 0
        self._unkept: set[str] = set()
        super().__init__(session)

    def hear(self, envelope: Envelope) -> None:
        assert envelope.id not in self.ids, "twice"
        assert envelope.id not in self._unkept, "twice"
        if envelope.seq:
            assert envelope.seq > self.seq, "out of order"
            self.ids[envelope.id] = None
            self.seq = envelope.seq
        else:  # signals and errors have no place
            self._unkept.add(envelope.id)

    def check(self) -> None:
        """Raises what was wrong with what came."""
        if self._task.done():
            self._task.result()

    async def until(self, seq: int) -> None:
        """Up to this place."""
        await self._until(lambda: self.seq >= seq or self._task.done())
        self.check()
