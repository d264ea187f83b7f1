"""One ledger on this machine: whether it changed, and which events stand in it."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from accord.core.dialects.pactmirror import MOST_FAULTS, sources
from accord.core.kernel.refusal import Refused
from accord.core.work.image import Source
from accord.engine.ports import Mark
from accord.stores.ledger import USUAL_LOG, FileLedger

from .aside import Aside

LOG = "log.jsonl"
TOO_LARGE = "The log has over {most} MiB, which is the limit pact_log"
NO_LOG = f"The log has over {MOST_FAULTS} lines that are no events"
UNREADABLE = "The log cannot be read, or is gone"
SILENT = "The log is still being read, or its disk does not answer"


class Look(NamedTuple):
    """What a place holds. `trouble` says why it could not be read now; the rest is as before.

    `faults` are the numbers of the lines that are no events.
    """

    mark: Mark = Mark()
    events: Sequence[Source] = ()
    faults: tuple[int, ...] = ()
    trouble: str = ""


class Place:
    """A directory with a ledger in it. It is only ever read."""

    def __init__(self, directory: str, most: int = USUAL_LOG) -> None:
        path = Path(directory)
        self._most = most
        self.look = Look()
        self.aside = Aside()
        self.silent = False  # the last question has no answer yet
        self._ledger = FileLedger(path / LOG, path, most=lambda: most)
        self._known: dict[str, Source] = {}
        self._faults: tuple[int, ...] = ()
        self._size, self._lines, self._digest = 0, 0, _digest(b"")

    def refresh(self) -> bool:
        """Read it if somebody wrote since; whether that was so."""
        changed = self.changed()
        if changed:
            self.read()
        return changed

    def changed(self) -> bool:
        """Whether somebody wrote since it was last read; the file is not opened for that."""
        return self._mark() != self.look.mark

    def read(self) -> None:
        """Look at what it holds now; of a file that only grew, what is new is read.

        An empty file, or none, is not a pact without tasks: git puts a branch's files there one by
        one, and whoever removes the log has accepted nothing.
        """
        mark = self._mark()
        try:
            data, mark = self._ledger.read()
        except (OSError, ValueError, Refused):
            data = b""
        if data:
            self._take(data, mark)
        else:
            large = TOO_LARGE.format(most=self._most >> 20)
            trouble = large if mark.size > self._most else UNREADABLE
            self.look = self.look._replace(mark=mark, trouble=trouble)

    def _take(self, data: bytes, mark: Mark) -> None:
        whole = data[: data.rfind(b"\n") + 1]
        grown = len(whole) >= self._size and _digest(whole[: self._size]) == self._digest
        if not grown:
            self._known, self._faults, self._size, self._lines = {}, (), 0, 0
        fresh = whole[self._size :]
        found = sources(fresh, self._lines + 1, self._known)
        faults = self._faults + tuple(fault.line for fault in found.faults)
        if len(faults) > MOST_FAULTS:
            self.look = self.look._replace(mark=mark, trouble=NO_LOG)
            return
        self._known.update((each.key, each) for each in found.found)
        self._faults = faults
        self._size, self._digest = len(whole), _digest(whole)
        self._lines += fresh.count(b"\n")
        torn = (self._lines + 1,) if data[len(whole) :].strip() else ()
        self.look = Look(mark, list(self._known.values()), (*self._faults, *torn))

    def _mark(self) -> Mark:
        try:
            return self._ledger.mark()
        except (OSError, ValueError):  # the latter for a path that can be none
            return Mark()


def together(places: Iterable[Place]) -> list[Source]:
    """The events of all working trees of a repository: what git would make of their ledgers."""
    found: dict[str, Source] = {}
    for place in places:
        for each in place.look.events:
            found.setdefault(each.key, each)
    return list(found.values())


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()
