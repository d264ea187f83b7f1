"""The lines of a mirror as the state of the work, folded as they come."""

from collections.abc import Generator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, cast

from msgspec.structs import replace

from accord.core.dialects import pact
from accord.core.views import tasks
from accord.core.views.tasks import Times
from accord.core.work.event import Entry, Event
from accord.core.work.fold import Fold
from accord.core.work.mirror import key_of
from accord.core.work.standing import Standing
from accord.core.work.state import Feature, Task, Work
from accord.core.work.words import Kind

# Lines that are taken at once; between two such steps others have their turn.
STEP = 500


class Book:
    """What a mirror says: where the work stands, and when each task moved.

    It takes each event once, and only behind those it has; lines of another order need `bound`.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.standing = Standing()
        self.times: dict[str, Times] = {}
        self.checkpoints: dict[str, str] = {}  # the last of each task that waits for review
        self._at = ""
        self._fold = Fold()

    def add(self, lines: Sequence[str]) -> bool:
        """Take these; False, and nothing is taken, when one of them is before what is known."""
        reading = pact.read(joined(lines), self.lines + 1, self._at)
        if reading.entries and reading.entries[0].at < self._at:
            return False
        self.put(reading.entries)
        self.lines += len(lines)
        return True

    def copy(self) -> "Book":
        """The same, which goes on by itself."""
        other = Book()
        other.lines, other._at = self.lines, self._at
        other.standing = self.standing.copy()
        other.times, other.checkpoints = dict(self.times), dict(self.checkpoints)
        other._fold = Fold(self._fold.work(), at=self._fold.at)
        return other

    def put(self, entries: Sequence[Entry]) -> None:
        """Take these, which are in order and behind all others."""
        fold = self._fold.take(entries)
        without = frozenset(skipped.line for skipped in fold.skipped)
        for entry in entries:
            if entry.event.task_id and entry.line not in without:
                self._note(entry)
            if entry.line not in without:
                self.standing.note(fold, entry.event)
        self._at = fold.at
        # A mirror has each event once, and tells nobody of those that changed nothing.
        fold.skipped.clear()
        fold.seen.clear()

    def _note(self, entry: Entry) -> None:
        task, kind = entry.event.task_id, entry.event.event_type
        self.times[task] = _moved(self.times.get(task), entry)
        if kind == Kind.CHECKPOINT:
            self.checkpoints[task] = key_of(entry.event.event_id or entry.at)
        elif kind == Kind.ACCEPT:
            self.checkpoints.pop(task, None)

    # What they come to

    @property
    def head(self) -> Work:
        """The project and its seats, without tasks."""
        return self._fold.head

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Each task as it stands now."""
        return self._fold.tasks

    @property
    def features(self) -> Mapping[str, Feature]:
        """Each feature, without its tasks."""
        return self._fold.features

    def work(self) -> Work:
        """All of it."""
        return self._fold.work()

    def content(self, repo: str) -> dict[str, Any]:
        """As a session reads it."""
        work = replace(self.head, tasks=self._fold.tasks)
        return tasks.content(work, self.standing.open, self.times, repo)


def bound(lines: Sequence[str]) -> Generator[None, None, Book]:
    """A book of lines in whatever order; it pauses where others may have their turn."""
    runs, at = list[list[tuple[str, int]]](), ""
    for start in range(0, len(lines), STEP):
        reading = pact.read(joined(lines[start : start + STEP]), start + 1, at)
        runs.append([(each.at, each.line) for each in reading.entries])
        at = reading.at
        yield
    book, stamps = Book(), merge(*runs)
    while batch := list(islice(stamps, STEP)):
        book.put([Entry(at, line, _event(lines[line - 1])) for at, line in batch])
        yield
    book.lines = len(lines)
    return book


def told(lines: Sequence[str]) -> Book:
    """The book of these lines, at once."""
    steps = bound(lines)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            book: Book = done.value
            return book


def joined(lines: Sequence[str]) -> bytes:
    """As a file has them."""
    return "".join(f"{line}\n" for line in lines).encode()


def _event(line: str) -> Event:
    """What is in a line that has an event in it."""
    return cast("Event", pact.event_in(line.encode()))


def _moved(before: Times | None, entry: Entry) -> Times:
    at = f"{entry.at}Z" if entry.at else ""
    done = at if entry.event.event_type == Kind.ACCEPT else ""
    return Times(before.created if before else at, at, done)
