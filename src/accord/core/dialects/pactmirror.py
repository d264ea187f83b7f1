"""A ledger's bytes as events to mirror: each once, and short enough to be kept."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from accord.core.dialects import pact
from accord.core.dialects.pact import Fault
from accord.core.work.event import Event
from accord.core.work.image import Source
from accord.core.work.mirror import LONGEST_LINE, key_of

# What is left of a text in a line that is too long to be kept whole.
LONGEST_TEXT = 8 << 10
CUT = "…"
# A file with more lines that are no events is no log, and is not read on.
MOST_FAULTS = 10_000
# Of a digest, so much is kept to tell one line from another.
MARK = 16
NOTHING: Mapping[str, bytes] = {}


class Sources(NamedTuple):
    """The events of a file, each once, in its order; and the lines that are none."""

    found: list[Source]
    faults: list[Fault]


def sources(data: bytes, first: int = 1, known: Mapping[str, bytes] = NOTHING) -> Sources:
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
        if source.key in known:
            same = known[source.key] == mark_of(source)
        else:
            same = found.setdefault(source.key, source).digest == source.digest
        if not same:
            faults.append(Fault(number, "The line has the id of another event"))
    return Sources(list(found.values()), faults)


def mark_of(source: Source) -> bytes:
    """What is kept of an event to know it again."""
    return bytes.fromhex(source.digest)[:MARK]


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
