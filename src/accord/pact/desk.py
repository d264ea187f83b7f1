"""The desk of a pact: read it, check it, write to it."""

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from accord.core.dialects import pact, pactfiles
from accord.core.kernel.refusal import Refused, Why
from accord.core.work.check import Finding, ahead, findings
from accord.core.work.event import Draft
from accord.core.work.extended import extended
from accord.core.work.fold import Fold, fold, seats_in
from accord.core.work.signed import linked, unproven
from accord.core.work.state import Work
from accord.core.work.verbs import understood
from accord.core.work.words import Kind
from accord.engine.ports import Conflict, Mark
from accord.pact import scaffold
from accord.pact.bell import ring
from accord.pact.carry import LARGEST, Carry
from accord.pact.place import Place
from accord.stores.folded import Folded, Folder, Shelf
from accord.stores.ledger import (
    USUAL_LOG,
    FileLedger,
    Most,
    Sleep,
    contents,
    plain,
    replace_file,
)

CACHE = "pact.cache"
SHOWN = "pact.shown"
# Tools that take no lock may write between our look and our line; then we look again.
TRIES = 100
# Clocks differ; a line that is further ahead than this is told.
A_DAY_S = 86_400.0
FALSE_CACHE = (
    "The cache in the git directory says something else than the log; "
    "`accord pact log --replay` removes it"
)
Decide = Callable[[Work], list[Draft]]


class World(msgspec.Struct, frozen=True):
    """Time and chance, so that tests can choose them, and what else is set from outside."""

    now: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: secrets.token_hex(16)
    sleep: Sleep = time.sleep
    env: Mapping[str, str] = {}  # where a server may be found
    most: Most = lambda: USUAL_LOG  # how large a log may be


class Desk:
    """Everything that is done to one pact."""

    def __init__(
        self, place: Place, seat: str, world: World | None = None, home: Path | None = None
    ) -> None:
        self.place = place
        self.seat = seat
        self.world = world or World()
        self._home = home
        self.ledger = FileLedger(place.log, place.lock, self.world.sleep, self.world.most)
        self._folder = Folder(self.ledger, place.private(CACHE))
        self._shelf = Shelf(place.private(SHOWN))
        self.carry = Carry(place, self.ledger)
        self.work = Work()  # as last decided on
        self.unsigned = False  # though the roster has a key
        self.unrendered = ""  # why STATE.yml could not be written

    def ring(self) -> Mapping[str, Any]:
        """Tell a server that there is news; what it found, if one answers."""
        return ring(self.place, self.world.env) if self.world.env else {}

    # Reading

    def load(self) -> Folded:
        """The state now, of whatever version."""
        return self._folder.load()

    def view(self) -> Folded:
        """The state now; refused for a version that we do not understand, and where none is."""
        self.exists()
        found = self.load()
        understood(found.work)
        return found

    def exists(self) -> None:
        """Refuse where there is no pact."""
        plain(self.place.log)
        if not self.ledger.mark().size and not self.carry.pending():
            raise Refused(Why.UNKNOWN, "There is no pact here yet; `accord pact init` starts one")

    def extended(self) -> Work:
        """The view that knows what other tools added."""
        return extended(pact.read(self.ledger.read()[0]).entries)

    def state(self) -> tuple[bytes, list[str]]:
        """STATE.yml as it should be, and what is wrong with the files; nothing is written."""
        mark, there = self.ledger.mark(), self._state_file()
        if there is not None and self._shelf.knows(mark, there):
            return there, []
        found = self.view()
        right = pactfiles.state_yml(found.work).encode()
        if there == right and not found.faults:
            self._shelf.keep(found.mark, right)
        return right, damage(found) or drift(there, right)

    def _state_file(self) -> bytes | None:
        try:
            return contents(self.place.state, LARGEST)
        except (OSError, Refused):
            return None

    def replay(self) -> Work:
        """Make STATE.yml anew from the log."""
        with self.ledger.locked():
            self.carry.recover()
            self.exists()
            plain(self.place.state)
            found = self.begin(fresh=True)
            understood(found.work)
            self.render(found.work, found.mark)
        return found.work

    def validate(self, *, strict: bool = False) -> list[Finding]:
        """Everything that is not as it should be; with `strict`, also what no key proves."""
        self.exists()
        data, _ = self.ledger.read()
        reading = pact.read(data)
        found = [Finding("line", fault.line, fault.sentence) for fault in reading.faults]
        found += findings(reading.entries, list(pact.objects(data)), pact.instant)
        found += ahead(reading.entries, f"{self._date(A_DAY_S):%Y-%m-%dT%H:%M:%S}")
        work = fold(reading.entries)
        if self.load().work != work:
            found.append(Finding("cache", 0, FALSE_CACHE))
        told = drift(self._state_file(), pactfiles.state_yml(work).encode())
        found += [Finding("a", 0, said) for said in told]
        files = scaffold.contradictions(self.place, work)
        found += [Finding("task", 0, said, warning=True) for said in files]
        if strict:
            found += self.unproven(work, data)
        if self.carry.pending():
            said = "A switch of branches was interrupted; the next verb brings its events back"
            found.append(Finding("carry", 0, said))
        return found

    def unproven(self, work: Work, data: bytes) -> list[Finding]:
        """What the signatures in these lines do not prove."""
        from accord.pact.seal import Seal, verify

        found = list(unproven(work, list(pact.objects(data)), pact.lines_of(data), verify))
        me = work.seat(self.seat)
        mine = Seal(self._home, self.seat).public() if self._home else ""
        if me and mine and me.key and me.key != mine:
            said = f"The roster has another key for {me.id} than the one on this machine"
            found.append(Finding("key", 0, said))
        return found

    # Writing

    def write(self, decide: Decide) -> list[str]:
        """Record what `decide` says of the state, all of it or nothing; the new events' ids."""
        with self.ledger.locked():
            self.carry.recover()
            return self.record(decide)

    def record(self, decide: Decide) -> list[str]:
        """The same for whoever holds the lock."""
        for _ in range(TRIES):
            found = self.begin()
            drafts = decided(found, decide)
            if not drafts:
                return []
            ids, lines = self.lines(drafts, found.at)
            try:
                mark = self.ledger.append(found.mark, lines)
            except Conflict:
                continue
            new = pact.read(lines, at=found.at).entries
            self.work = Fold(found.work, at=found.at).take(new).work()
            self._rendered(mark)
            return ids
        raise Refused(Why.UNAVAILABLE, "Others write all the time; try again later")

    def begin(self, *, fresh: bool = False) -> Folded:
        """The state to decide on; refused where a bad line may be the one that starts the pact."""
        found = self._folder.load(fresh=fresh)
        self.work = found.work
        if not found.work.started:
            sound(found)
        return found

    def lines(self, drafts: Sequence[Draft], last: str) -> tuple[list[str], bytes]:
        """The drafts as lines of the log."""
        now = self._date()
        ids = [self.world.new_id() for _ in drafts]
        ts = pact.stamp(f"{now:%Y-%m-%dT%H:%M:%S}", last)
        if not (sign := self._sign(drafts)):
            return ids, pact.write(drafts, ids, ts, self.seat)
        before = pact.last_line(self.ledger.read()[0])
        return ids, pact.write(drafts, ids, ts, self.seat, sign, before)

    def _date(self, later: float = 0) -> datetime:
        return datetime.fromtimestamp(self.world.now() + later, UTC)

    def key(self) -> str:
        """The public key of this seat; a new pair where there was none."""
        from accord.pact.seal import Seal

        if not self._home:
            raise Refused(Why.UNAVAILABLE, "There is no place for keys here")
        return Seal(self._home, self.seat).make()

    def _sign(self, drafts: Sequence[Draft]) -> pact.Sign | None:
        """How this seat signs: when the roster has its key, and the private half is here."""
        rosters = [each.payload.get("seats", ()) for each in drafts if each.kind is Kind.INIT]
        seats = [*self.work.seats, *seats_in([seat for roster in rosters for seat in roster])]
        key = next((seat.key for seat in seats if seat.id == self.seat), "")
        if not key or not self._home:
            return None
        from accord.pact.seal import Seal

        seal = Seal(self._home, self.seat)
        self.unsigned = seal.public() != key
        if self.unsigned:
            return None
        return lambda event, before: seal.sign(linked(event, before, self.work))

    def _rendered(self, mark: Mark) -> None:
        # The event is on disk. That its view is not is no refusal, and is told.
        try:
            self.render(self.work, mark)
        except OSError as no:
            self.unrendered = f"{self.place.name(self.place.state)}: {no.strerror}"

    def render(self, work: Work, mark: Mark) -> None:
        """Put STATE.yml on disk, as the ledger with this mark has it."""
        text = pactfiles.state_yml(work).encode()
        replace_file(self.place.state, text)
        self._shelf.keep(mark, text)


def drift(there: bytes | None, right: bytes) -> list[str]:
    """What is wrong with a STATE.yml, if anything."""
    if there == right:
        return []
    said = "is missing, or no plain file" if there is None else "is not what the log says (drift)"
    return [f"STATE.yml {said}; `accord pact log --replay` mends it"]


def damage(found: Folded) -> list[str]:
    """What is wrong with the log: its first line that cannot be read."""
    return [
        f"log.jsonl, line {fault.line}: {fault.sentence}. Nothing is written until somebody "
        "has looked at it; `accord pact validate` tells all"
        for fault in found.faults[:1]
    ]


def sound(found: Folded) -> None:
    """OPEN-106: nothing is written behind a line that cannot be read."""
    for detail in damage(found):
        raise Refused(Why.DAMAGED, detail)


def decided(found: Folded, decide: Decide) -> list[Draft]:
    """What a verb records of a log in which every line can be read."""
    try:
        drafts = decide(found.work)
    except Refused as no:
        if no.why is Why.UNKNOWN:
            sound(found)  # what is missing may be in the line that cannot be read
        raise
    sound(found)
    return drafts


def desk(
    here: Path, wanted: str, seat: str, home: Path | None = None, most: Most = lambda: USUAL_LOG
) -> Desk:
    """The desk for whoever works in `here`; keys of seats are under `home`."""
    from accord.pact.place import place

    return Desk(place(here, wanted), seat, World(env=os.environ, most=most), home)
