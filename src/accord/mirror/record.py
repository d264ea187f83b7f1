"""The stream of one repository's pact: what is said to it, and what it has."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Message
from accord.core.kernel.times import iso
from accord.core.work.mirror import Arranged, Mirror, Mirrored
from accord.engine import proven
from accord.engine.cell import Asked, Outcome
from accord.engine.engine import Engine, Result

PACT = Actor(seat=f"{SYSTEM}:pact", kind=Kind.SYSTEM)
PAGE = 250  # rows

Events = Sequence[Mirrored | Arranged]


class Recorder:
    """Says things to the stream and reads it; `version` is how far its reader knows it."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self.stream = f"work/{repo}"
        self.version = 0

    async def state(self) -> Mirror:
        """How much is recorded."""
        mirror: Mirror = await self.engine.state(self.stream)
        return mirror

    async def since(self, after: int | None = None) -> AsyncIterator[Events]:
        """What is recorded behind a version, a page at a time; as a rule, what is not known yet.

        Of what is known already, no more than that.
        """
        again = after is not None
        at = self.version if after is None else after
        while rows := await proven.read(self.engine.events, self.stream, at, PAGE):
            at = rows[-1].version
            if again:
                rows = [row for row in rows if row.version <= self.version]
            else:
                self.version = at
            events = (self.engine.unsealed(row).record.event for row in rows)
            yield [each for each in events if isinstance(each, Mirrored | Arranged)]

    async def say(self, says: Sequence[tuple[str, Body]]) -> Events | None:
        """What came of these messages; None when others wrote between, so that it must be read.

        Raises Refused when one of them was.
        """
        made = list[Mirrored | Arranged]()
        for refused, sealed in await self._answers(says):
            if refused:
                raise refused
            for each in sealed:
                event, version = each.record.event, each.record.version
                follows = version == self.version + len(made) + 1
                if not follows or not isinstance(event, Mirrored | Arranged):
                    return None
                made.append(event)
        self.version += len(made)
        return made

    async def _answers(self, says: Sequence[tuple[str, Body]]) -> list[Result]:
        """In the order in which they were asked for; they share a commit."""
        now = iso(self.engine.clock.now())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heard = list[Result]()

        def answer(outcome: Outcome) -> None:
            heard.append((outcome.refused, outcome.sealed))
            if len(heard) == len(says) and not done.done():
                done.set_result(None)

        for id, body in says:
            message = Message(id, now, self.repo, SYSTEM, body)
            self.engine.submit(self.stream, Asked(message, PACT, answer))
        await done
        return heard
