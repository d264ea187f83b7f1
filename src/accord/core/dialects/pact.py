"""Pact's log: one JSON object of eight fields a line, written by any tool, read whatever it is."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from accord.core.work.event import Draft, Entry, Event, Payload, line

LONGEST = 16 << 20
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
_decode_lines = msgspec.json.Decoder(Event).decode_lines
_anything = msgspec.json.Decoder().decode
_WRONG = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_encode = msgspec.json.Encoder().encode
_TEXTS = ("event_id", "ts", "agent_id", "event_type", "task_id", "feature")
_PAYLOAD = {field.name: field.type for field in msgspec.structs.fields(Payload)}


# An event, and the line that it comes behind.
Sign = Callable[[dict[str, Any], bytes], dict[str, Any]]


class Fault(NamedTuple):
    """A line that is no event."""

    line: int
    sentence: str


class Reading(NamedTuple):
    """A log as it is folded: in order, with what could not be read."""

    entries: list[Entry]
    faults: list[Fault]

    @property
    def last(self) -> str:
        """The latest instant in it, comparable as text."""
        return self.entries[-1].at if self.entries else ""


def read(data: bytes, first: int = 1, at: str = "") -> Reading:
    """Every event in these bytes, by instant, then by line; never fails.

    `first` is the number of the first line, and `at` the instant of the event before it.
    """
    if (found := _plainly(data, first, at)) is not None:
        return Reading(found, [])
    return _line_by_line(data, first, at)


def _plainly(data: bytes, first: int, at: str) -> list[Entry] | None:
    """The events of a log as every tool writes it, all at once; None for any other."""
    # A value of JSON has no `}` before a new line and `{` behind it, so these are its borders.
    lines = data.count(b"}\n{") + 1
    whole = data.startswith(b"{") and data.endswith(b"}\n") and data.count(b"\n") == lines
    if not whole or not _is_text(data) or _is_long(data):
        return None
    try:
        events = _decode_lines(data)
    except _WRONG:
        return None
    stamps = [event.ts for event in events]
    if len(events) != lines or not _are_plain(stamps):
        return None
    instants = [each[:-1] for each in stamps]
    if instants[0] < at or instants != sorted(instants):
        return None
    return list(map(Entry, instants, range(first, first + lines), events))


def _are_plain(stamps: list[str]) -> bool:
    """Whether all have the usual form; at once, since one by one takes as long as decoding."""
    text = "\n".join([*stamps, ""])
    return len(text) == _PLAIN_LENGTH * len(stamps) and _ALL_PLAIN(text) is not None


def _line_by_line(data: bytes, first: int, at: str) -> Reading:
    entries, faults = list[Entry](), list[Fault]()
    strict = not _is_text(data)
    lines = data.split(b"\n")
    torn = lines.pop()
    in_order, before, stamp = True, at, ""
    for number, raw in enumerate(lines, first):
        try:
            event = _decode(_text(raw) if strict or len(raw) > LONGEST else raw)
        except _WRONG:
            found = _leniently(raw)
            if isinstance(found, str):
                faults += [Fault(number, found)] if found else []
                continue
            event = found
        if event.ts != stamp:
            stamp = event.ts
            at = stamp[:-1] if _PLAIN(stamp) else instant(stamp) or at
            in_order = in_order and at >= before
            before = at
        entries.append(Entry(at, number, event))
    if torn.strip():
        faults.append(Fault(first + len(lines), "The last line is torn: it has no end"))
    if not in_order:
        entries.sort(key=lambda entry: (entry.at, entry.line))
    return Reading(entries, faults)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_long(data: bytes) -> bool:
    """Whether a line is longer than anybody reads."""
    at = 0
    while len(data) - at > LONGEST:
        end = data.rfind(b"\n", at, at + LONGEST + 1)
        if end < 0:
            return True
        at = end + 1
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
