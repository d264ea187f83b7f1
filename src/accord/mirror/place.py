"""One ledger on this machine: whether it changed, and which events stand in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from accord.core.dialects.pactmirror import MOST_FAULTS
from accord.core.kernel.refusal import Refused
from accord.core.work.image import Source
from accord.engine.ports import Mark
from accord.stores.ledger import USUAL_LOG, FileLedger

from .aside import Aside
from .reading import Reading

LOG = "log.jsonl"
BLOCK = 256 << 10  # that is read at once
# Looks after which a file that was changed is compared byte by byte with what was read of it.
SURE_AFTER = 16
TOO_LARGE = "The log has over {most} MiB, which is the limit pact_log"
NO_LOG = f"The log has over {MOST_FAULTS} lines that are no events"
UNREADABLE = "The log cannot be read, or is gone"
SILENT = "The log is still being read, or its disk does not answer"


class Look(NamedTuple):
    """How a place is. `trouble` says why it could not be read now; what it holds is as before.

    `faults` are the numbers of the lines that are no events.
    """

    mark: Mark = Mark()
    faults: tuple[int, ...] = ()
    trouble: str = ""


class Seen(NamedTuple):
    """What a look brought: whether the file was read, and events that it has now."""

    read: bool = False
    events: Sequence[Source] = ()


class Place:
    """A directory with a ledger in it. It is only ever read, a block at each look."""

    def __init__(self, directory: str, most: int = USUAL_LOG) -> None:
        path = Path(directory)
        self._most = most
        self.look = Look()
        self.aside = Aside[Seen]()
        self.silent = False  # the last question has no answer yet
        self.more = False  # the file has more than was read of it
        self.anew = False  # it was read from its beginning; whoever has seen that takes it back
        self.held = Reading()  # what the whole file came to when it was last read to its end
        self._ledger = FileLedger(path / LOG, path)
        self._reading = self.held
        self._unsure = 0  # looks since it changed; 0 when all of it was compared since

    @property
    def trouble(self) -> str:
        """Why what it holds may be out of date."""
        never = "" if self.held.size or self.more else UNREADABLE
        return SILENT if self.silent else self.look.trouble or never

    @property
    def blind(self) -> str:
        """Why there may be events that nobody read; a log that is gone is as it was."""
        if self.silent and not self.held.size:
            return SILENT
        return "" if self.look.trouble == UNREADABLE else self.look.trouble

    def refresh(self) -> Seen:
        """Read on if there is more, or if somebody wrote since."""
        doubted = not self.more and self._doubted()
        if self.changed() or self.more or doubted:
            return Seen(read=True, events=self.read())
        return Seen()

    def changed(self) -> bool:
        """Whether somebody wrote since it was last read; the file is not opened for that."""
        return self._mark() != self.look.mark

    def read(self) -> Sequence[Source]:
        """The events in the next block; of a file that only grew, the end.

        An empty file, or none, is not a pact without tasks: git puts a branch's files there one by
        one, and whoever removes the log has accepted nothing.
        """
        self.more = False
        mark = self._mark()
        if mark.size > self._most:
            return self._fail(mark, TOO_LARGE.format(most=self._most >> 20))
        try:
            data, mark = self._next()
        except (OSError, ValueError, Refused):
            return self._fail(mark, UNREADABLE)
        if not mark.size:
            return self._fail(mark, UNREADABLE)
        return self._take(data, mark)

    def _next(self) -> tuple[bytes, Mark]:
        """What comes behind that which was read; all of a file that is another one by now."""
        with self._ledger.opened() as file:
            mark = file.mark
            goes_on = self._reading.goes_on(mark.node, mark.size, file.read)
            # Written to and no longer than before: appending is not what was done.
            rewritten = mark.size == self.look.mark.size and not self._reading.holds(file.read)
            if rewritten or not goes_on:
                self._reading = Reading(mark.node)
            start, most = self._reading.size, BLOCK
            data = file.read(start, most)
            while b"\n" not in data and start + len(data) < mark.size:
                most *= 2  # a line that is longer than that
                data = file.read(start, most)
            return data, mark

    def _take(self, data: bytes, mark: Mark) -> Sequence[Source]:
        whole = data[: data.rfind(b"\n") + 1]
        reading = self._reading
        found = reading.take(whole)
        if found is None:
            return self._fail(mark, NO_LOG)
        rest = data[len(whole) :]
        self.more = reading.size + len(rest) < mark.size
        if not self.more:
            self.anew = self.anew or reading is not self.held
            self.held = reading
            torn = (reading.next_line,) if rest.strip() else ()
            self.look = Look(mark, (*reading.faults, *torn))
            self._unsure = self._unsure or 1
        return found.found

    def _fail(self, mark: Mark, trouble: str) -> Sequence[Source]:
        self.look = self.look._replace(mark=mark, trouble=trouble)
        self._reading = self.held
        return ()

    def _doubted(self) -> bool:
        """Whether a file that seemed to have only grown is another one after all."""
        if not self._unsure:
            return False
        self._unsure += 1
        if self._unsure <= SURE_AFTER:
            return False
        self._unsure = 0
        try:
            with self._ledger.opened() as file:
                same = self.held.holds(file.read)
        except (OSError, ValueError, Refused):
            return False  # which the next look finds out
        if not same:
            self._reading = Reading()
        return not same

    def _mark(self) -> Mark:
        try:
            return self._ledger.mark()
        except (OSError, ValueError):  # the latter for a path that can be none
            return Mark()
