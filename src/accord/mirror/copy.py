"""One repository's pact on the log: what its ledgers say and the log does not, is recorded."""

import asyncio
import logging
from collections.abc import Generator, Iterable, Sequence
from itertools import chain
from time import sleep
from typing import NamedTuple, TypeVar

from accord.core.dialects.pactbook import Book, bound
from accord.core.dialects.pactmark import Bookmarks
from accord.core.kernel.log import Body
from accord.core.work.image import Image, Sorting, Source
from accord.core.work.mirror import Arranged, Mirror, Mirrored, PactArrange, PactMirror, mirror_id
from accord.engine.engine import Engine
from accord.engine.ports import Mark

from .place import SILENT, Place
from .record import Recorder

log = logging.getLogger("accord.mirror")

T = TypeVar("T")

PATIENCE_S = 2.0  # for a disk
BATCH = 200  # events that are said at once, so that nobody else waits for long
BREATH_S = 0.0005  # between two steps of a long work, so that others have their turn
TOLD_EVERY = 10_000  # events
# Of a log as large as it may be, the server's own takes so many times as much.
OFTEN = 4
SHORTEST = 128  # bytes that an event has, as a rule
FULL = (
    "The server's log has {events} events or {mib} MiB of this pact, and takes no more of it. Was "
    "it written anew with other ids? A repository with a new id begins anew: "
    "`git config --unset accord.repo`, then `accord git install`"
)


class Bounds(NamedTuple):
    """How much of one pact the server's log takes."""

    events: int
    bytes: int

    @property
    def sentence(self) -> str:
        """What is said when it has as much."""
        return FULL.format(events=self.events, mib=self.bytes >> 20)


def bounds(largest: int) -> Bounds:
    """For logs of so many bytes."""
    return Bounds(largest // SHORTEST, OFTEN * largest)


class Copy:
    """The records of one ledger. Whatever is interrupted is found and finished by the next look."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.repo = repo
        self.record = Recorder(engine, repo)
        self.places: dict[str, Place] = {}
        self.book = Book()
        self.ready = False  # the book says what the files said at the last look
        self.more = False  # there is more to bring than one look may
        self.full = ""  # why nothing more is recorded
        self._image = Image()
        self._marks = Bookmarks()
        self._pending: list[Source] = []  # read, and perhaps not recorded
        self._lines: list[str] = []  # recorded, and not in the book
        self._stale = False  # the book is of another order
        self._unordered = True  # the order of the files may be another one
        self._doubtful: tuple[Mark, ...] | None = None
        self._told: tuple[int, str] | None = None

    def lie(self, directories: Iterable[str]) -> None:
        """Where the ledgers are from now on."""
        largest = self.record.engine.house.limits.pact_log
        now = {each: self.places.get(each) or Place(each, largest) for each in directories}
        self._unordered = self._unordered or now.keys() != self.places.keys()
        self.places = now

    @property
    def stream(self) -> str:
        """Where it is recorded."""
        return self.record.stream

    @property
    def events(self) -> int:
        """How many events of the files are recorded."""
        return len(self._image.order)

    @property
    def blind(self) -> str:
        """Why there may be tasks that the server does not see."""
        return self.full or next(filter(None, (each.blind for each in self.places.values())), "")

    @property
    def known(self) -> bool:
        """Whether the book says all that the files said at the last look."""
        return self.ready and not self.more

    def alone(self, directory: str) -> int:
        """How many events no other place has; one that cannot be read may have had any."""
        here = self.places[directory]
        others = [place.held.known for place in self.places.values() if place is not here]
        own = (key for key in self._image.order if here.trouble or key in here.held.known)
        return sum(not any(key in known for known in others) for key in own)

    async def look(self) -> bool:
        """Record what is new; whether there is something to tell."""
        try:
            await self._learn()
            await self._read()
            await self._bring()
        except BaseException:
            self.more = False  # not before the next look, which goes on from there
            raise
        if self.more:
            return False
        await self._arrange()
        await self._fold()
        self.ready = True
        before, self._told = self._told, (self._image.records, self.blind)
        return self._told != before

    # From the files

    async def _read(self) -> None:
        """A block of each ledger that has one; what could not be recorded comes first."""
        if self.full:
            return
        if not self._pending:
            seen = await asyncio.gather(*map(self._see, self.places.values()))
            self._pending += chain.from_iterable(seen)
        self.more = any(place.more and not place.silent for place in self.places.values())

    async def _see(self, place: Place) -> Sequence[Source]:
        """What it brings; what does not answer is asked again later."""
        before = place.trouble
        seen = await place.aside.ask(place.refresh, PATIENCE_S)
        if seen is None and not place.silent:
            log.warning("pact.unseen", extra={"stream": self.stream, "detail": SILENT})
        place.silent = seen is None
        if seen is None:
            return ()
        mended = bool(before) and not place.trouble
        self._unordered = self._unordered or place.anew or mended
        place.anew = False
        if seen.read and not place.more:
            self._report(place)
        return seen.events

    def _report(self, place: Place) -> None:
        about = {"stream": self.stream, "count": len(place.look.faults)}
        if place.look.faults:
            lines = ",".join(map(str, place.look.faults[:20]))
            log.warning("pact.unread", extra={**about, "detail": f"lines {lines}"})
        if place.look.trouble:
            log.warning("pact.unseen", extra={**about, "detail": place.look.trouble})

    # Onto the log

    async def _learn(self) -> None:
        """What the log has that is not known here; all of it at first."""
        mirror: Mirror = await self.record.state()
        if mirror.records != self._image.records:
            async for events in self.record.since():
                self._take(events)

    def _take(self, events: Iterable[Mirrored | Arranged]) -> None:
        for event in events:
            fresh = self._image.take(event)
            self._stale = self._stale or not fresh
            if isinstance(event, Arranged):
                self._marks.moved(event.at)
            elif fresh:
                self._lines.append(event.line)
                self._marks.note(event.key, event.line)
        self._stale = self._stale or not self.book.add(self._lines)
        self._lines.clear()
        if not self._stale:
            self._marks.put(self.book)

    async def _bring(self) -> None:
        fresh = self._image.fresh(self._pending)
        known = len({each.key for each in self._pending}) - len(fresh)
        # What stood in a file before and stands there again may stand in another place.
        self._unordered = self._unordered or known > 0
        for start in range(0, len(fresh), BATCH):
            if self._is_full(fresh=True):
                return
            batch = fresh[start : start + BATCH]
            says = [
                (mirror_id(each.key), PactMirror(each.key, each.line, each.digest))
                for each in batch
            ]
            await self._say(says)
        self._pending.clear()

    def _is_full(self, *, fresh: bool) -> bool:
        """Whether the log has as much of this as it takes; ids that change would fill it."""
        image = self._image
        most = bounds(self.record.engine.house.limits.pact_log)
        many = fresh and len(image.known) >= most.events
        if not self.full and (many or image.weight >= most.bytes):
            self.full, self.more = most.sentence, False
            about = {"stream": self.stream, "count": len(image.known), "detail": self.full}
            log.error("pact.full", extra=about)
        return bool(self.full)

    async def _say(self, says: Sequence[tuple[str, Body]]) -> None:
        before = len(self._image.known) // TOLD_EVERY
        if (made := await self.record.say(says)) is None:
            await self._learn()  # somebody else records the same, between ours
        else:
            self._take(made)
        if len(self._image.known) // TOLD_EVERY > before:
            about = {"stream": self.stream, "count": len(self._image.known)}
            log.info("pact.copied", extra=about)

    async def _arrange(self) -> None:
        """Have the order of the files on the log, too."""
        if not (self._unordered or self._doubtful):
            return
        silent = any(place.silent for place in self.places.values())
        if silent or self.full:
            return  # what lies on a disk that does not answer has not vanished
        self._unordered = False
        wanted = await asyncio.to_thread(self._wanted)
        while wanted and (step := await asyncio.to_thread(self._image.splice, wanted)):
            if self._is_full(fresh=False):
                return
            self._unordered = True  # until it is done
            body = PactArrange(self._image.records, *step)
            await self._say([(self.record.engine.ids(), body)])
            self._unordered = False

    def _wanted(self) -> list[str]:
        """The order of the files: what git would make of those of all working trees.

        Nothing, if it is not to be believed. What is gone is believed at the second look, since
        git writes a file in several steps; and not while one of the files cannot be read.
        """
        places = self.places.values()
        wanted = dict.fromkeys(chain.from_iterable(place.held.known for place in places))
        if not self._image.lost(wanted):
            self._doubtful = None
            return list(wanted)
        if any(place.trouble for place in places):
            return []
        marks = tuple(place.look.mark for place in places)
        sure = marks == self._doubtful
        self._doubtful = None if sure else marks
        return list(wanted) if sure else []

    # Into the book

    async def _fold(self) -> None:
        """Where the lines are not in the order of their time, they are read once more.

        What is older than all that moved need not be.
        """
        if self._stale:
            book = await asyncio.to_thread(self._marks.again, self._image.order)
            self.book = book or await self._rebind()
            self._stale = False

    async def _rebind(self) -> Book:
        sorting = await asyncio.to_thread(Sorting, self._image)
        async for events in self.record.since(0):
            for event in events:
                if isinstance(event, Mirrored):
                    sorting.take(event)
        lines = await asyncio.to_thread(sorting.lines)
        return await asyncio.to_thread(gently, bound(lines))


def gently(steps: Generator[None, None, T]) -> T:
    """What they come to; between two of them, others have their turn."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found
        sleep(BREATH_S)
