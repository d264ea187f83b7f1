"""Listeners that receive the messages of a session in the background."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

from accord.client import Envelope, Session

LISTEN_TIMEOUT_S = 60.0


class SessionListener(ABC):
    """Receives every message of a session in a background task."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    @abstractmethod
    def on_message(self, envelope: Envelope) -> None:
        """Handle one message; an exception ends the listener."""

    async def _listen(self) -> None:
        async for envelope in self.session.messages():
            async with self._changed:
                self.on_message(envelope)
                self._changed.notify_all()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, which is checked after every message."""
        async with asyncio.timeout(LISTEN_TIMEOUT_S), self._changed:
            await self._changed.wait_for(holds)


class RecordingListener(SessionListener):
    """Records every message of a session."""

    def __init__(self, session: Session) -> None:
        self.received: list[Envelope] = []
        super().__init__(session)

    def on_message(self, envelope: Envelope) -> None:
        self.received.append(envelope)

    async def wait_for(self, wanted: Callable[[Envelope], bool]) -> Envelope:
        """The first matching message, whether already received or still to come."""

        def first_match() -> Envelope | None:
            return next((envelope for envelope in self.received if wanted(envelope)), None)

        await self._wait_until(lambda: first_match() is not None)
        envelope = first_match()
        assert envelope is not None
        return envelope

    async def wait_for_seq(self, seq: int) -> Envelope:
        """The message with this seq, or the first one after it."""
        return await self.wait_for(lambda envelope: envelope.seq >= seq)

    async def wait_for_end(self) -> list[Envelope]:
        """All messages, once the session has ended for this listener; raises its error."""
        async with asyncio.timeout(LISTEN_TIMEOUT_S):
            await self._task
        return self.received

    @property
    def sequenced(self) -> list[Envelope]:
        """Messages with a seq; signals and errors have none."""
        return [envelope for envelope in self.received if envelope.seq]

    def check_once_in_order(self) -> None:
        """Assert that every message was received once and in order."""
        seqs = [envelope.seq for envelope in self.sequenced]
        assert seqs == sorted(set(seqs))
        ids = [envelope.id for envelope in self.received]
        assert len(ids) == len(set(ids))
