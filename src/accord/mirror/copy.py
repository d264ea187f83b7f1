"""One repository's pact on the log: what its ledgers say and the log does not, is recorded."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import islice

from accord.core.dialects.pactmirror import Told, told
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Message
from accord.core.kernel.times import iso
from accord.core.work.image import Image, Source
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

from .place import Place, together

log = logging.getLogger("accord.mirror")

PACT = Actor(seat=f"{SYSTEM}:pact", kind=Kind.SYSTEM)
PAGE = 500
# Events that one repository may bring before others have their turn.
MOST_AT_ONCE = 2000


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
        self._doubtful: list[str] | None = None
        self._moved = False  # since the last look, a place came or went

    def lie(self, directories: Iterable[str]) -> None:
        """Where the ledgers are from now on."""
        now = {each: self.places.get(each) or Place(each) for each in directories}
        self._moved = self._moved or now.keys() != self.places.keys()
        self.places = now

    @property
    def events(self) -> int:
        """How many events of the file are recorded."""
        return len(self._image.order) if self._image else 0

    def faults(self) -> list[int]:
        """The numbers of lines that are no events."""
        return sorted({line for place in self.places.values() for line in place.look.faults})

    def trouble(self) -> str:
        """Why a ledger could not be read."""
        return next((each.look.trouble for each in self.places.values() if each.look.trouble), "")

    async def look(self) -> bool:
        """Record what is new; whether the work stands differently now."""
        image = await self._recorded()
        read = await asyncio.to_thread(self._read)
        if not (read or self.more or self._moved or self._doubtful or self.told is None):
            return False
        sources = together(self.places.values())
        before, self._moved = image.records, False
        try:
            await self._bring(image, sources)
        except BaseException:
            self._image = None  # some of it may be recorded: ask the log
            raise
        if image.records == before and self.told is not None:
            return False
        self.told = await asyncio.to_thread(told, list(image.lines()))
        return True

    def _read(self) -> bool:
        changed = [place for place in self.places.values() if place.changed()]
        for place in changed:
            place.read()
            self._report(place)
        return bool(changed)

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
            self._image, self.told = image, None
        return self._image

    async def _bring(self, image: Image, sources: Sequence[Source]) -> None:
        fresh = image.fresh(sources)
        self.more = len(fresh) > MOST_AT_ONCE
        for start in range(0, min(len(fresh), MOST_AT_ONCE), PAGE):
            await self._add(image, list(islice(fresh, start, start + PAGE)))
        if sources and not self.more and self._believed(image, sources):
            await self._arrange(image, sources)

    def _believed(self, image: Image, sources: Sequence[Source]) -> bool:
        """What is gone is believed at the second look: git writes a file in several steps."""
        wanted = [each.key for each in sources] if image.lost(sources) else None
        sure, self._doubtful = wanted == self._doubtful, None if wanted is None else wanted
        if wanted is None or sure:
            self._doubtful = None
            return True
        return False

    async def _add(self, image: Image, sources: Sequence[Source]) -> None:
        says = (
            self._say(mirror_id(each.key), PactMirror(each.key, each.line, each.digest))
            for each in sources
        )
        await asyncio.gather(*says)
        for each in sources:
            image.take(Mirrored(key=each.key, line=each.line, digest=each.digest))

    async def _arrange(self, image: Image, sources: Sequence[Source]) -> None:
        while step := image.splice(sources):
            await self._say(self.engine.ids(), PactArrange(image.records, *step))
            image.take(Arranged(at=step.at, drop=step.drop, put=step.put))

    async def _say(self, id: str, body: Body) -> None:
        message = Message(id, iso(self.engine.clock.now()), self.repo, SYSTEM, body)
        await self.engine.handle(message, PACT, stream=self.stream)
