"""Every pact that the server looks after: followed by looking, and at once when somebody nudges."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from accord.core.dialects.pactbook import Book
from accord.core.kernel.log import Door, Event
from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import (
    LedgerPlaced,
    LedgerRemoved,
    Repo,
    SessionBound,
    SessionUnbound,
)
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, Sealed, StoreError

from .copy import Copy
from .place import UNREADABLE
from .telling import Summary, Teller, summary

log = logging.getLogger("accord.mirror")

PAUSE_S = 1.0
LONG_S = 1.0  # for a look; others do not wait longer for it
SOON_S = 0.4  # for a look that somebody waits for; who binds a session waits for two
MOST_REPOS = 256
MOST_SEATS = 64
MOST_UNREAD = 20
READING = "the server is still reading the pact; try again in a moment"
CHANGES = SessionBound | SessionUnbound | LedgerPlaced | LedgerRemoved
Tell = Callable[[str, Book, Summary], Awaitable[None]]


class Pact:
    """A repository with its ledgers, its copy on the log, and the sessions that work in it."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self.copy = Copy(engine, repo)
        self.teller = Teller(engine, repo)
        self.sessions: tuple[str, ...] = ()
        self.left: tuple[str, ...] = ()  # sessions that worked here; its rules still bind them
        self.news = True  # somebody is there who may not know yet
        self._turn = asyncio.Lock()

    async def follow(self) -> None:
        """From the files to the log, from the log to the rooms."""
        async with self._turn:
            state: Repo = await self.engine.state(f"repo/{self.repo}")
            self.copy.lie(state.ledgers)
            self.news = self.news or (state.bound, state.left) != (self.sessions, self.left)
            self.sessions, self.left = state.bound, state.left
            self.news = await self.copy.look() or self.news
            # Half of a log may say that something waits which was judged long ago.
            if self.news and self.copy.known:
                await self._tell_all()
                self.news = False

    async def heed(self, session: str, *, read: bool) -> None:
        """Have the merges of a session go by it; what is not read yet may say anything."""
        copy = self.copy
        known = summary(copy.book, self.repo, copy.blind) if read and copy.known else None
        self.news = True  # a look that goes on meanwhile may know more than this
        await self.teller.heed(session, copy.book, known or Summary({}, trouble=READING))

    async def _tell_all(self) -> None:
        if not (self.sessions or self.left):
            return
        now = summary(self.copy.book, self.repo, self.copy.blind)
        for session in self.sessions:
            await self._tell(session, self.teller.tell, now)
        for session in self.left:
            await self._tell(session, self.teller.guard, now)

    async def _tell(self, session: str, tell: Tell, now: Summary) -> None:
        try:
            await tell(session, self.copy.book, now)
        except Refused as no:
            about = {"session": session, "stream": self.copy.stream, "detail": no.detail}
            log.warning("pact.untold", extra=about)


class Mirrors:
    """All of them."""

    def __init__(self, engine: Engine, pause: float = PAUSE_S) -> None:
        self.engine = engine
        self.pause = pause
        self.pacts: dict[str, Pact] = {}
        self._bell = asyncio.Event()
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._steps: set[asyncio.Task[None]] = set()
        engine.turned.append(self.heard)

    async def run(self) -> None:
        """Look after all of them, for ever."""
        try:
            await self._run()
        finally:
            for each in self._looks.values():
                each.cancel()

    async def _run(self) -> None:
        found = False
        while True:
            found = found or await self._find()
            await self.look()
            if any(pact.copy.more for pact in self.pacts.values()):
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pause):
                    await self._bell.wait()
            self._bell.clear()

    async def look(self) -> None:
        """One look at each, side by side; what fails is looked at again the next time.

        One that takes long, for a log that is long, is left to go on while others are looked at.
        """
        for pact in list(self.pacts.values()):
            if pact.repo not in self._looks:
                self._looks[pact.repo] = asyncio.create_task(self._follow(pact))
        if self._looks:
            done, _ = await asyncio.wait(self._looks.values(), timeout=LONG_S)
            self._looks = {repo: each for repo, each in self._looks.items() if each not in done}

    async def _follow(self, pact: Pact) -> None:
        try:
            await pact.follow()
        except Exception as error:  # noqa: BLE001 - one repository is no other's loss
            pact.copy.more = False  # not at once, and again and again
            about = {"stream": pact.copy.stream, "error": type(error).__name__}
            log.warning("pact.failed", extra=about)

    async def _find(self) -> bool:
        """Those that were followed before; False when the log cannot be read now."""
        try:
            for stream in sorted(await self.engine.events.streams("repo/")):
                await self._resume(stream)
        except StoreError as error:
            log.warning("pact.failed", extra={"error": type(error).__name__})
            return False
        return True

    async def _resume(self, stream: str) -> None:
        with suppress(DamagedError, Refused):  # reported by whoever found it; the others go on
            repo: Repo = await self.engine.state(stream)
            if repo.ledgers:
                self._take_on(repo.id)

    def heard(self, stream: str, fresh: Sequence[Sealed]) -> None:
        """A session that comes to a repository or goes, or somebody who comes to a session."""
        kind, _, name = stream.partition("/")
        if kind == "repo" and any(isinstance(each.record.event, CHANGES) for each in fresh):
            self._gone(each.record.event for each in fresh)
            self._bell.set()
        elif kind == "room" and any(each.record.event.door is Door.IN for each in fresh):
            for pact in self.pacts.values():
                if name in pact.sessions:
                    pact.news = True
                    self._bell.set()

    def _gone(self, events: Iterable[Event]) -> None:
        """Where a session left one repository, the pact of another can be shown."""
        left = {event.session for event in events if isinstance(event, SessionUnbound)}
        for pact in self.pacts.values():
            pact.news = pact.news or not left.isdisjoint(pact.sessions)

    def _take_on(self, repo: str) -> Pact:
        if (known := self.pacts.get(repo)) is not None:
            return known
        if len(self.pacts) >= MOST_REPOS:
            log.warning("pact.too_many", extra={"stream": f"work/{repo}", "count": MOST_REPOS})
            raise Refused(Why.FULL, f"{MOST_REPOS} pacts are followed here already")
        self.pacts[repo] = Pact(self.engine, repo)
        return self.pacts[repo]

    # What the bridge asks

    def check(self, repo: str, directory: str) -> None:
        """Refuse a place that can be none."""
        path = PurePath(directory)
        if not path.is_absolute() or ".." in path.parts or "\0" in directory:
            raise Refused(Why.MALFORMED, "Say where the pact lies by its whole path")
        self._take_on(repo)

    async def now(self, repo: str, directory: str) -> Mapping[str, Any]:
        """Look at once, and say what was found; who asks may give up, the look goes on."""
        pact = self._take_on(repo)
        await asyncio.shield(self._step(pact))
        copy = pact.copy
        found = {"events": copy.events, "unread": [], "trouble": copy.full}
        if (place := copy.places.get(directory)) is not None:
            found["unread"] = list(place.look.faults[:MOST_UNREAD])
            found["trouble"] = copy.full or place.trouble
        names = await self._names(pact)
        return {"repo": repo, "sessions": list(pact.sessions), "names": names, **found}

    def _step(self, pact: Pact) -> asyncio.Task[None]:
        step = asyncio.create_task(pact.follow())
        self._steps.add(step)
        step.add_done_callback(self._steps.discard)
        return step

    async def heed(self, repo: Repo, session: str) -> None:
        """Before a session works there: no merge of its own comes before it goes by the pact."""
        if repo.ledgers:
            read = await self.show(repo)
            await self.pacts[repo.id].heed(session, read=read)

    async def show(self, repo: Repo) -> bool:
        """Look and tell, as far as that takes a moment; whether it did. The look goes on."""
        if not repo.ledgers:
            return False
        step = self._step(self._take_on(repo.id))
        await asyncio.wait([step], timeout=SOON_S)
        return step.done() and not step.cancelled() and step.exception() is None

    async def seen(self, repo: Repo) -> list[Mapping[str, Any]]:
        """What is known of each place; `alone` is how many events no other one has."""
        found = list[Mapping[str, Any]]()
        if not repo.ledgers:
            return found
        copy = await self._followed(repo)
        for directory in copy.places:
            place = copy.places[directory]
            told = {"directory": directory, "events": len(place.held.known)}
            told["alone"] = await asyncio.to_thread(copy.alone, directory)
            told["unread"] = list(place.look.faults[:MOST_UNREAD])
            found.append({**told, "trouble": place.trouble})
        return found

    async def needless(self, repo: Repo) -> list[str]:
        """Places that are gone, and had nothing that the others do not have."""
        copy = await self._followed(repo)
        gone = [name for name, place in copy.places.items() if place.trouble == UNREADABLE]
        for directory in gone:
            if not await asyncio.to_thread(copy.alone, directory):
                return [directory]  # what two of them have, one of them must keep
        return []

    async def check_away(self, repo: Repo, directory: str) -> None:
        """Refuse to take away what no other place has, or the last one."""
        copy = await self._followed(repo)
        alone = await asyncio.to_thread(copy.alone, directory)
        if alone or len(copy.places) == 1:
            few = "1 event of the pact lies" if alone == 1 else f"{alone} events of the pact lie"
            what = f"{few} nowhere else" if alone else "It is the last one"
            detail = f"{what}, and a session works here: end that first, or use `--force`"
            raise Refused(Why.WRONG_STATE, detail, {"alone": alone})

    async def _followed(self, repo: Repo) -> Copy:
        """The copy, as the next look will have it."""
        pact = self._take_on(repo.id)
        await pact.follow()
        return pact.copy

    async def _names(self, pact: Pact) -> dict[str, str]:
        """The seats of a pact, as trailers name them."""
        ids = [seat.id for seat in pact.copy.book.head.seats[:MOST_SEATS]]
        return {id: await pact.teller.called(id, pact.sessions) for id in ids}

    async def release(self, repo: str, session: str) -> None:
        """The session works there no longer; it is told before that is on record."""
        if (pact := self.pacts.get(repo)) is not None:
            await pact.teller.release(session)
