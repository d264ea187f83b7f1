"""Access to the stream that mirrors one repository's pact: submit messages, read records."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.work.mirror import Arranged, Mirrored, MirrorState
from accord.engine.engine import Engine, HandleResult
from accord.engine.streams.stream import Outcome, Submission
from accord.engine.streams.verified_reads import read_pages, verified

PACT_ACTOR = Actor(principal=f"{SYSTEM}:pact", kind=Kind.SYSTEM)
PAGE_ROWS = 250

MirrorEvents = Sequence[Mirrored | Arranged]


class StreamRecorder:
    """Writes to and reads from the stream; `version` is how far it was read."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self.stream = f"work/{repo}"
        self.version = 0

    async def state(self) -> MirrorState:
        mirror: MirrorState = await self.engine.state(self.stream)
        return mirror

    async def read_new(self) -> AsyncIterator[MirrorEvents]:
        """The records that were not read yet, page by page."""
        source = verified(self.engine.events)
        async for rows in read_pages(source, self.stream, self.version, PAGE_ROWS):
            self.version = rows[-1].version
            events = (self.engine.decode_row(row).record.event for row in rows)
            yield [each for each in events if isinstance(each, Mirrored | Arranged)]

    async def submit(self, messages: Sequence[tuple[str, Body]]) -> MirrorEvents | None:
        """The events of these messages; None if others wrote in between, so that it must be read.

        Raises Refused if one of the messages was refused.
        """
        events = list[Mirrored | Arranged]()
        for refused, sealed in await self._submit_all(messages):
            if refused:
                raise refused
            for record_ in sealed:
                event, version = record_.record.event, record_.record.version
                follows = version == self.version + len(events) + 1
                if not follows or not isinstance(event, Mirrored | Arranged):
                    return None
                events.append(event)
        self.version += len(events)
        return events

    async def _submit_all(self, messages: Sequence[tuple[str, Body]]) -> list[HandleResult]:
        """Submit all messages in order, sharing a commit, and wait for their outcomes."""
        now = to_iso(self.engine.clock.now())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        results = list[HandleResult]()

        def answer(outcome: Outcome) -> None:
            results.append((outcome.refusal, outcome.records))
            if len(results) == len(messages) and not done.done():
                done.set_result(None)

        for id, body in messages:
            message = Message(id, now, self.repo, SYSTEM, body)
            self.engine.submit(self.stream, Submission(message, PACT_ACTOR, answer))
        await done
        return results
