"""Parse a ledger's bytes into events to mirror: without duplicates, with a bounded length."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from accord.core.work.event import PactEvent
from accord.core.work.format import log_lines
from accord.core.work.format.log_lines import LineFault
from accord.core.work.mirror import MAX_LINE_LENGTH, event_key
from accord.core.work.mirror_order import SourceEvent

# Texts in a line that is too long are shortened to this.
MAX_TEXT_LENGTH = 8 << 10
ELLIPSIS = "…"
# A file with more invalid lines than this is not a log.
MAX_FAULTS = 10_000
# How much of a digest is kept in memory.
DIGEST_PREFIX_BYTES = 16
NO_KNOWN_EVENTS: Mapping[str, bytes] = {}


class ParsedSources(NamedTuple):
    """The distinct events of a file in its order, and the invalid lines."""

    events: list[SourceEvent]
    faults: list[LineFault]


def parse_sources(
    data: bytes, first: int = 1, known: Mapping[str, bytes] = NO_KNOWN_EVENTS
) -> ParsedSources:
    """The distinct events in these bytes that are not `known`.

    A last line without a line break counts if it is complete. A repeated id with different content
    is a fault.
    """
    events: dict[str, SourceEvent] = {}
    faults = list[LineFault]()
    for number, raw in enumerate(_split_lines(data), first):
        if len(faults) > MAX_FAULTS:
            break
        line = raw.strip()
        if not line:
            continue
        event = log_lines.parse_event(line)
        if isinstance(event, str):
            faults.append(LineFault(number, event))
            continue
        source = _source_event(line, event)
        if source.key in known:
            is_same = known[source.key] == digest_prefix(source)
        else:
            is_same = events.setdefault(source.key, source).digest == source.digest
        if not is_same:
            faults.append(LineFault(number, "The line has the same id as another event"))
    return ParsedSources(list(events.values()), faults)


def digest_prefix(source: SourceEvent) -> bytes:
    """The part of an event's digest that is kept to recognise it."""
    return bytes.fromhex(source.digest)[:DIGEST_PREFIX_BYTES]


def _split_lines(data: bytes) -> Iterator[bytes]:
    """The lines, lazily: a list of very many short lines would need far more memory."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1
    yield data[start:]


def _source_event(line: bytes, event: PactEvent) -> SourceEvent:
    """The event to mirror; one without an id (by an old tool) is identified by its text."""
    text = line.decode()
    key = event_key(event.event_id or f"\0{text}")
    line_ = text if len(text) <= MAX_LINE_LENGTH else shorten_event(event)
    return SourceEvent(key, line_, sha256(line).hexdigest())


def shorten_event(event: PactEvent) -> str:
    """The event with long texts shortened, so that one line cannot fill the log."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    payload = {
        name: value if len(msgspec.json.encode(value)) <= MAX_TEXT_LENGTH else _truncate(value)
        for name, value in fields["payload"].items()
        if value
    }
    texts = {name: _truncate(value) for name, value in fields.items() if name != "payload"}
    return msgspec.json.encode({**texts, "payload": payload}).decode()


def _truncate(value: Any) -> Any:
    """Shorten a long text; any other value is dropped."""
    if not isinstance(value, str):
        return None
    return value if len(value) <= MAX_TEXT_LENGTH else value[:MAX_TEXT_LENGTH] + ELLIPSIS
