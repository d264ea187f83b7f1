"""Pact's log: one JSON object of eight fields a line, written by any tool, read whatever it is."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from accord.core.work.event import Draft, Entry, Event, Payload, line

LONGEST = 16 << 20
# What is read at once; the memory of a small part is near, and serves the next one again.
PART = 64 << 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Nearly every line has this form, which compares as text.
_TIME = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
_PLAIN = re.compile(_TIME, re.ASCII).fullmatch
_ALL_PLAIN = re.compile(rf"(?:{_TIME}\n)*+", re.ASCII).fullmatch
_LAST_SECOND = "9999-12-31T23:59:59"
_PLAIN_LENGTH = len("2026-06-09T10:00:00Z\n")
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_decode = msgspec.json.Decoder(Event).decode
_anything = msgspec.json.Decoder().decode
_WRONG = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_encode = msgspec.json.Encoder().encode
_at = attrgetter("at")
_TEXTS = ("event_id", "ts", "agent_id", "event_type", "task_id", "feature")
_PAYLOAD = {field.name: field.type for field in msgspec.structs.fields(Payload)}


# An event, and the line that it comes behind.
Sign = Callable[[dict[str, Any], bytes], dict[str, Any]]


class Fault(NamedTuple):
    """A line that is no event."""

    line: int
    sentence: str


class Reading(NamedTuple):
    """A log as it is folded: in order, with what could not be read.

    `at` is the instant of its last event by place, and `next` the number of the line behind it.
    """

    entries: list[Entry]
    faults: list[Fault]
    at: str
    next: int

    @property
    def last(self) -> str:
        """The latest instant in it, comparable as text."""
        return self.entries[-1].at if self.entries else ""


def read(data: bytes, first: int = 1, at: str = "") -> Reading:
    """Every event in these bytes, by instant, then by line; never fails.

    `first` is the number of the first line, and `at` the instant of the event before it.
    """
    entries, faults = list[Entry](), list[Fault]()
    for part in parts(data, first, at):
        entries += part.entries
        faults += part.faults
        at, first = part.at, part.next
    entries.sort(key=_at)
    return Reading(entries, faults, at, first)


def parts(data: bytes, first: int = 1, at: str = "") -> Iterator[Reading]:
    """The same, some lines after the other; a part may have events from before the last one."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PART) + 1 or len(data)
        raw = data[start:end]
        part = _plainly(raw, first) or _line_by_line(raw, first, at)
        yield part
        start, at, first = end, part.at, part.next


def _plainly(data: bytes, first: int) -> Reading | None:
    """The events of a log as every tool writes it, all at once; None for any other."""
    if not data.endswith(b"\n") or len(data) > LONGEST or not _is_text(data):
        return None
    try:
        events = list(map(_decode, data[:-1].split(b"\n")))
    except _WRONG:
        return None
    instants = _plain_instants([event.ts for event in events])
    if not instants:
        return None
    following = first + len(events)
    entries = list(map(Entry, instants, range(first, following), events))
    if instants != sorted(instants):
        entries.sort(key=_at)
    return Reading(entries, [], instants[-1], following)


def _plain_instants(stamps: list[str]) -> list[str]:
    """The instants, if all have the usual form; at once, since one by one takes longer."""
    text = "\n".join([*stamps, ""])
    plain = len(text) == _PLAIN_LENGTH * len(stamps) and _ALL_PLAIN(text)
    return text.split("Z\n")[:-1] if plain else []


def _line_by_line(data: bytes, first: int, at: str) -> Reading:
    entries, faults = list[Entry](), list[Fault]()
    strict = not _is_text(data)
    lines = data.split(b"\n")
    torn = lines.pop()
    for number, raw in enumerate(lines, first):
        try:
            event = _decode(_text(raw) if strict or len(raw) > LONGEST else raw)
        except _WRONG:
            found = _leniently(raw)
            if isinstance(found, str):
                faults += [Fault(number, found)] if found else []
                continue
            event = found
        at = event.ts[:-1] if _PLAIN(event.ts) else instant(event.ts) or at
        entries.append(Entry(at, number, event))
    following = first + len(lines)
    if torn.strip():
        faults.append(Fault(following, "The last line is torn: it has no end"))
    entries.sort(key=_at)
    return Reading(entries, faults, at, following)


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _text(raw: bytes) -> bytes:
    """The line, if it is text and of a size that is read."""
    if len(raw) > LONGEST:
        raise msgspec.DecodeError
    raw.decode()
    return raw


def _leniently(raw: bytes) -> Event | str:
    """A line that is not as it should be: the event in it, or what is wrong with it."""
    if not raw.strip():
        return ""
    if len(raw) > LONGEST:
        return "The line is over 16 MiB"
    if raw.startswith(_BYTE_ORDER_MARK):
        return "The line begins with a byte order mark; save the file as plain UTF-8"
    try:
        found = _anything(_text(raw))
    except _WRONG:
        return "The line is no JSON"
    if not isinstance(found, dict):
        return "The line is no JSON object"
    return event_of(found)


def event_in(raw: bytes) -> Event | str:
    """The event in one line, or what is wrong with it."""
    try:
        return _decode(_text(raw))
    except _WRONG:
        return _leniently(raw)


def event_of(found: dict[str, Any]) -> Event:
    """The event in an object; a field of another type counts as left out."""
    texts = {name: found[name] for name in _TEXTS if isinstance(found.get(name), str)}
    given = found.get("payload")
    payload = {
        name: value
        for name, value in (given.items() if isinstance(given, dict) else ())
        if name in _PAYLOAD and (_PAYLOAD[name] is not str or isinstance(value, str))
    }
    return Event(**texts, payload=Payload(**payload))


def instant(ts: str) -> str:
    """A time of RFC 3339 in UTC, such that text order is time order; empty for what is none."""
    if not _RFC3339(ts):
        return ""
    try:
        moment = datetime.fromisoformat(ts.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".zfill(19) + fraction


def objects(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line that is an object, as it stands."""
    for number, raw in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found = _anything(_text(raw))
        except _WRONG:
            continue
        if isinstance(found, dict):
            yield number, found


def stamp(now: str, last: str) -> str:
    """The time to write: now, but never before what the log holds (OPEN-103)."""
    latest, _, fraction = max(now[:19], last).partition(".")
    if not fraction:
        return f"{latest}Z"
    if latest == _LAST_SECOND:
        # There is no next one to write, and whoever wrote this must not stop everybody else.
        return f"{latest}.{fraction}Z"
    # Whole seconds are written; one that is not before the fraction is the next.
    later = datetime.fromisoformat(f"{latest}+00:00").timestamp() + 1
    return f"{datetime.fromtimestamp(later, UTC):%Y-%m-%dT%H:%M:%S}Z"


def write(
    drafts: Sequence[Draft],
    ids: Sequence[str],
    ts: str,
    agent: str,
    sign: Sign | None = None,
    before: bytes = b"",
) -> bytes:
    """Lines to append behind the line `before`, signed where there is a key."""
    made = list[bytes]()
    for draft, id in zip(drafts, ids, strict=True):
        event = line(draft, id, ts, agent)
        before = _encode(sign(event, before) if sign else event)
        made.append(before)
    return b"".join(raw + b"\n" for raw in made)


def lines_of(data: bytes) -> list[bytes]:
    """The whole lines, as they are counted; space around them is none of theirs."""
    return [raw.strip() for raw in data.split(b"\n")[:-1]]


def last_line(data: bytes) -> bytes:
    """The last line that says anything."""
    return data.rstrip().rpartition(b"\n")[2].strip()


def missing(there: bytes, here: bytes) -> bytes:
    """Those whole lines of `here` that `there` lacks, by event id, else letter by letter."""
    known = set(_marks(there))
    lines = here.split(b"\n")[:-1]
    return b"".join(raw + b"\n" for raw in lines if raw.strip() and _mark(raw) not in known)


def _marks(data: bytes) -> Iterator[str | bytes]:
    return (_mark(raw) for raw in data.split(b"\n") if raw.strip())


def _mark(raw: bytes) -> str | bytes:
    try:
        return _decode(raw).event_id or raw.strip()
    except _WRONG:
        return raw.strip()
