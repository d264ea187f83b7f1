"""Somebody who listens: to keep everything, or for whatever else."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self

from accord.client import Envelope, Session

PATIENCE = 60.0


class Listening(ABC):
    """Whatever comes in a session is heard, from the moment one is in it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._listen())

    @abstractmethod
    def hear(self, envelope: Envelope) -> None:
        """One message more; what is raised ends it."""

    async def _listen(self) -> None:
        async for envelope in self.session.messages():
            async with self._news:
                self.hear(envelope)
                self._news.notify_all()

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

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to be so, which is looked at whenever something came."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(holds)


class Ear(Listening):
    """Keeps all that one hears."""

    def __init__(self, session: Session) -> None:
        self.heard: list[Envelope] = []
        super().__init__(session)

    def hear(self, envelope: Envelope) -> None:
        self.heard.append(envelope)

    async def until(self, wanted: Callable[[Envelope], bool]) -> Envelope:
        """The first message that is wanted, heard already or still to come."""

        def found() -> Envelope | None:
            return next((each for each in self.heard if wanted(each)), None)

        await self._until(lambda: found() is not None)
        envelope = found()
        assert envelope is not None
        return envelope

    async def until_seq(self, seq: int) -> Envelope:
        """The message in this place, or the first behind it."""
        return await self.until(lambda envelope: envelope.seq >= seq)

    async def end(self) -> list[Envelope]:
        """Everything, once the session is over for this listener; raises what ended it."""
        async with asyncio.timeout(PATIENCE):
            await self._task
        return self.heard

    @property
    def kept(self) -> list[Envelope]:
        """What has a place in the order; signals and errors have none."""
        return [envelope for envelope in self.heard if envelope.seq]

    def check_once_in_order(self) -> None:
        """Every message came once, and in the order of the room."""
        places = [envelope.seq for envelope in self.kept]
        assert places == sorted(set(places))
        ids = [envelope.id for envelope in self.heard]
        assert len(ids) == len(set(ids))
