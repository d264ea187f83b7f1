"""A client that listens for a long time and records the ids it receives."""

from accord.client import Envelope, Session
from tests.helpers.clients.listener import SessionListener


class Listener(SessionListener):
    """Every message of a session comes once, and in the order of the room."""

    def __init__(self, session: Session) -> None:
        self.ids: dict[str, None] = {}
        self.seq = 0
        self._unkept: set[str] = set()
        super().__init__(session)

    def on_message(self, envelope: Envelope) -> None:
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
        await self._wait_until(lambda: self.seq >= seq or self._task.done())
        self.check()
