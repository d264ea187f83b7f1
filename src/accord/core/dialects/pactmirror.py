"""A ledger's bytes as events to mirror, and the mirror's lines as the state of the work."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from accord.core.dialects import pact
from accord.core.dialects.pact import Fault
from accord.core.views.tasks import Times
from accord.core.work.event import Entry, Event
from accord.core.work.fold import Fold
from accord.core.work.image import Source
from accord.core.work.mirror import LONGEST_LINE, key_of
from accord.core.work.state import Work
from accord.core.work.words import Kind

# What is left of a text in a line that is too long to be kept whole.
LONGEST_TEXT = 8 << 10
CUT = "…"
# A file with more lines that are no events is no log, and is not read on.
MOST_FAULTS = 10_000
NOTHING: Mapping[str, Source] = {}


class Sources(NamedTuple):
    """The events of a file, each once, in its order; and the lines that are none."""

    found: list[Source]
    faults: list[Fault]


class Told(NamedTuple):
    """What a mirror says: the state of the work, and when each task moved."""

    work: Work
    times: dict[str, Times]
    checkpoints: dict[str, str]


def sources(data: bytes, first: int = 1, known: Mapping[str, Source] = NOTHING) -> Sources:
    """Every event in these bytes that is not `known`, of whatever tool, each once.

    A last line without an end is not there yet. An id that comes again with other words is a fault.
    """
    found: dict[str, Source] = {}
    faults = list[Fault]()
    for number, raw in enumerate(_lines(data), first):
        if len(faults) > MOST_FAULTS:
            break
        line = raw.strip()
        if not line:
            continue
        event = pact.event_in(line)
        if isinstance(event, str):
            faults.append(Fault(number, event))
            continue
        source = _source(line, event)
        before = known.get(source.key) or found.setdefault(source.key, source)
        if before.digest != source.digest:
            faults.append(Fault(number, "The line has the id of another event"))
    return Sources(list(found.values()), faults)


def _lines(data: bytes) -> Iterator[bytes]:
    """One by one, since very many short ones would take much more room than the file."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def _source(line: bytes, event: Event) -> Source:
    """An event that an old tool gave no id is known by its own words."""
    text = line.decode()
    key = key_of(event.event_id or f"\0{text}")
    kept = text if len(text) <= LONGEST_LINE else shortened(event)
    return Source(key, kept, sha256(line).hexdigest())


def shortened(event: Event) -> str:
    """The event with its long texts cut, so that one line cannot fill the log."""
    told: dict[str, Any] = msgspec.to_builtins(event)
    payload = {
        name: value if len(msgspec.json.encode(value)) <= LONGEST_TEXT else _cut(value)
        for name, value in told["payload"].items()
        if value
    }
    texts = {name: _cut(value) for name, value in told.items() if name != "payload"}
    return msgspec.json.encode({**texts, "payload": payload}).decode()


def _cut(value: Any) -> Any:
    """A text that is too long ends early; anything else that is too large is left out."""
    if not isinstance(value, str):
        return None
    return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + CUT


class Book:
    """The lines of a mirror, folded as they come; those that are not in order need another book."""

    def __init__(self) -> None:
        self.lines = 0
        self._at = ""
        self._fold = Fold()
        self._times: dict[str, Times] = {}
        self._checkpoints: dict[str, str] = {}

    def add(self, lines: Iterable[str]) -> bool:
        """Take these; False, and nothing is taken, when one of them is before what is known."""
        data = "".join(f"{line}\n" for line in lines).encode()
        reading = pact.read(data, self.lines + 1, self._at)
        if reading.entries and reading.entries[0].at < self._at:
            return False
        known = len(self._fold.skipped)
        self._fold.take(reading.entries)
        without = frozenset(skipped.line for skipped in self._fold.skipped[known:])
        for entry in reading.entries:
            if entry.event.task_id and entry.line not in without:
                self._note(entry)
        self.lines += data.count(b"\n")
        self._at = reading.last or self._at
        return True

    def _note(self, entry: Entry) -> None:
        task = entry.event.task_id
        self._times[task] = _moved(self._times.get(task), entry)
        if entry.event.event_type == Kind.CHECKPOINT:
            self._checkpoints[task] = key_of(entry.event.event_id or entry.at)

    def told(self) -> Told:
        """What they come to, with the checkpoint that each task last had."""
        return Told(self._fold.work(), dict(self._times), dict(self._checkpoints))


def told(lines: Iterable[str]) -> Told:
    """What these lines come to."""
    book = Book()
    book.add(lines)
    return book.told()


def _moved(before: Times | None, entry: Entry) -> Times:
    at = f"{entry.at}Z" if entry.at else ""
    done = at if entry.event.event_type == Kind.ACCEPT else ""
    return Times(before.created if before else at, at, done)
