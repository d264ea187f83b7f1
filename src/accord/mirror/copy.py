"""One repository's pact on the log: what its ledgers say and the log does not, is recorded."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from accord.core.dialects.pactmirror import Book, Told
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Message
from accord.core.kernel.times import iso
from accord.core.work.image import Image, Source, keys
from accord.core.work.mirror import (
    Arranged,
    Mirror,
    Mirrored,
    PactArrange,
    PactMirror,
    mirror_id,
)
from accord.engine import proven
from accord.engine.engine import Engine

from .place import SILENT, Place, together

log = logging.getLogger("accord.mirror")

PACT = Actor(seat=f"{SYSTEM}:pact", kind=Kind.SYSTEM)
PAGE = 500  # rows
PATIENCE_S = 2.0  # for a disk
BATCH = 100  # events that are said at once, so that nobody else waits for long
# Events that one repository may bring before others have their turn.
MOST_AT_ONCE = 2000


class Plan(NamedTuple):
    """What the ledgers say, what of it is new, and whether the order has to be said, too."""

    sources: Sequence[Source]
    fresh: Sequence[Source]
    arrange: bool


class Copy:
    """The records of one ledger. Whatever is interrupted is found and finished by the next look."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self.stream = f"work/{repo}"
        self.places: dict[str, Place] = {}
        self.told: Told | None = None
        self.more = False  # there is more to bring than one look may
        self._image: Image | None = None
        self._book = Book()
        self._doubtful: list[str] | None = None
        self._moved = False  # since the last look, a place came or went

    def lie(self, directories: Iterable[str]) -> None:
        """Where the ledgers are from now on."""
        now = {each: self.places.get(each) or self._at(each) for each in directories}
        self._moved = self._moved or now.keys() != self.places.keys()
        self.places = now

    def _at(self, directory: str) -> Place:
        return Place(directory, self.engine.house.limits.pact_log)

    @property
    def events(self) -> int:
        """How many events of the file are recorded."""
        return len(self._image.order) if self._image else 0

    def faults(self) -> list[int]:
        """The numbers of lines that are no events."""
        return sorted({line for place in self.places.values() for line in place.look.faults})

    def trouble(self) -> str:
        """Why a ledger could not be read."""
        told = (SILENT if each.silent else each.look.trouble for each in self.places.values())
        return next(filter(None, told), "")

    async def look(self) -> bool:
        """Record what is new; whether the work stands differently now."""
        image = await self._recorded()
        read = any(await asyncio.gather(*map(self._see, self.places.values())))
        if not (read or self.more or self._moved or self._doubtful or self.told is None):
            return False
        plan = await asyncio.to_thread(self._plan, image)
        before, self._moved = image.records, False
        try:
            await self._bring(image, plan)
        except BaseException:
            self._image = None  # some of it may be recorded: ask the log
            self.more = False  # and not before the next look, which goes on from there
            raise
        if self.more or (image.records == before and self.told is not None):
            return False
        self.told = await asyncio.to_thread(self._fold, image, plan)
        return True

    def _plan(self, image: Image) -> Plan:
        """What is to be done, worked out beside everything else."""
        sources = together(self.places.values())
        fresh = image.fresh(sources)
        self.more = len(fresh) > MOST_AT_ONCE
        # What lies on a disk that does not answer has not vanished.
        unseen = any(place.silent for place in self.places.values())
        if not sources or self.more or unseen:
            return Plan(sources, fresh[:MOST_AT_ONCE], arrange=False)
        wanted = keys(sources)
        if not image.lost(sources):
            self._doubtful = None
            return Plan(sources, fresh, arrange=wanted != [*image.order, *keys(fresh)])
        # What is gone is believed at the second look: git writes a file in several steps.
        sure = wanted == self._doubtful
        self._doubtful = None if sure else wanted
        return Plan(sources, fresh, arrange=sure)

    def _fold(self, image: Image, plan: Plan) -> Told:
        """The state of the work; of what was only appended, no more than that is read."""
        added = [each.line for each in plan.fresh]
        follows = self._book.lines + len(added) == len(image.order) and not plan.arrange
        if not (follows and self._book.add(added)):
            self._book = Book()
            self._book.add(image.lines())
        return self._book.told()

    async def _see(self, place: Place) -> bool:
        """Whether it holds something else now; what does not answer is asked again later."""
        read = await place.aside.ask(place.refresh, PATIENCE_S)
        if read is None and not place.silent:
            log.warning("pact.unseen", extra={"stream": self.stream, "detail": SILENT})
        self._moved = self._moved or (place.silent and read is not None)
        place.silent = read is None
        if read:
            self._report(place)
        return bool(read)

    def _report(self, place: Place) -> None:
        about = {"stream": self.stream, "count": len(place.look.faults)}
        if place.look.faults:
            lines = ",".join(map(str, place.look.faults[:20]))
            log.warning("pact.unread", extra={**about, "detail": f"lines {lines}"})
        if place.look.trouble:
            log.warning("pact.unseen", extra={**about, "detail": place.look.trouble})

    async def _recorded(self) -> Image:
        """What the log has; read once, then kept in step by what is recorded here."""
        mirror: Mirror = await self.engine.state(self.stream)
        if self._image is None or self._image.records != mirror.records:
            image, after = Image(), 0
            while rows := await proven.read(self.engine.events, self.stream, after, PAGE):
                for row in rows:
                    event = self.engine.codec.unseal(row.stream, row.version, row.body).record.event
                    if isinstance(event, Mirrored | Arranged):
                        image.take(event)
                after = rows[-1].version
            self._image, self.told, self._book = image, None, Book()
        return self._image

    async def _bring(self, image: Image, plan: Plan) -> None:
        for start in range(0, len(plan.fresh), BATCH):
            await self._add(image, plan.fresh[start : start + BATCH])
        if plan.arrange:
            await self._arrange(image, plan.sources)

    async def _add(self, image: Image, sources: Sequence[Source]) -> None:
        says = (
            self._say(mirror_id(each.key), PactMirror(each.key, each.line, each.digest))
            for each in sources
        )
        await asyncio.gather(*says)
        for each in sources:
            image.take(Mirrored(key=each.key, line=each.line, digest=each.digest))

    async def _arrange(self, image: Image, sources: Sequence[Source]) -> None:
        while step := await asyncio.to_thread(image.splice, sources):
            await self._say(self.engine.ids(), PactArrange(image.records, *step))
            image.take(Arranged(at=step.at, drop=step.drop, put=step.put))

    async def _say(self, id: str, body: Body) -> None:
        message = Message(id, iso(self.engine.clock.now()), self.repo, SYSTEM, body)
        await self.engine.handle(message, PACT, stream=self.stream)
