"""A ledger's bytes as events to mirror, and the mirror's lines as the state of the work."""

from collections.abc import Iterable, Mapping
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
    for number, raw in enumerate(data.split(b"\n")[:-1], first):
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


def told(lines: Iterable[str]) -> Told:
    """What these lines come to, with the checkpoint that each task last had."""
    data = "".join(f"{line}\n" for line in lines).encode()
    entries = pact.read(data).entries
    fold = Fold().take(entries)
    without = frozenset(skipped.line for skipped in fold.skipped)
    times: dict[str, Times] = {}
    checkpoints: dict[str, str] = {}
    for entry in entries:
        if entry.event.task_id and entry.line not in without:
            times[entry.event.task_id] = _moved(times.get(entry.event.task_id), entry)
            if entry.event.event_type == Kind.CHECKPOINT:
                checkpoints[entry.event.task_id] = key_of(entry.event.event_id or entry.at)
    return Told(fold.work(), times, checkpoints)


def _moved(before: Times | None, entry: Entry) -> Times:
    at = f"{entry.at}Z" if entry.at else ""
    done = at if entry.event.event_type == Kind.ACCEPT else ""
    return Times(before.created if before else at, at, done)
