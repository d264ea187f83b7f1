"""Pact's log format: one JSON object with eight fields per line, parsed leniently."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from accord.core.work.event import EventDraft, LogEntry, PactEvent, PactPayload, event_object

MAX_LINE_BYTES = 16 << 20
INCOMPLETE_LINE = "The last line is incomplete: it does not end with a line break"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The usual form of a time, in which text order equals time order.
_MATCH_PLAIN = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII
).fullmatch
_LAST_SECOND = "9999-12-31T23:59:59"
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_decode = msgspec.json.Decoder(PactEvent).decode
_decode_any = msgspec.json.Decoder().decode
_PARSE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_encode = msgspec.json.Encoder().encode
_at = attrgetter("at")
_TEXT_FIELDS = ("event_id", "ts", "agent_id", "event_type", "task_id", "feature")
_PAYLOAD_TYPES = {field.name: field.type for field in msgspec.structs.fields(PactPayload)}


# Arguments: the event, and the previous line.
SignEvent = Callable[[dict[str, Any], bytes], dict[str, Any]]


class LineFault(NamedTuple):
    """A line that is not a valid event."""

    line: int
    sentence: str


class ParsedLog(NamedTuple):
    """The entries of a log in order of time, and the lines that are not events."""

    entries: list[LogEntry]
    faults: list[LineFault]

    @property
    def latest(self) -> str:
        """The latest instant, comparable as text; empty if there are no entries."""
        return self.entries[-1].at if self.entries else ""


def parse_log(data: bytes) -> ParsedLog:
    """All events in these bytes, sorted by instant, then by line; never fails.

    A last line without a line break counts if it is complete.
    """
    entries, faults, at = list[LogEntry](), list[LineFault](), ""
    is_text = _is_text(data)
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            is_checked = is_text and len(raw) <= MAX_LINE_BYTES
            event = _decode(raw if is_checked else _checked_text(raw))
        except _PARSE_ERRORS:
            parsed = _parse_lenient(raw)
            if isinstance(parsed, str):
                faults += [LineFault(number, parsed)] if parsed else []
                continue
            event = parsed
        # An event without a valid time takes that of the line before.
        at = event.ts[:-1] if _MATCH_PLAIN(event.ts) else parse_instant(event.ts) or at
        entries.append(LogEntry(at, number, event))
    if faults and faults[-1].line > data.count(b"\n"):
        faults[-1] = LineFault(faults[-1].line, INCOMPLETE_LINE)
    entries.sort(key=_at)
    return ParsedLog(entries, faults)


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _checked_text(raw: bytes) -> bytes:
    """The line; raises if it is too long or not UTF-8."""
    if len(raw) > MAX_LINE_BYTES:
        raise msgspec.DecodeError
    raw.decode()
    return raw


def _parse_lenient(raw: bytes) -> PactEvent | str:
    """The event in a line of unusual form, or what is wrong with it; empty for a blank line."""
    if not raw.strip():
        return ""
    if len(raw) > MAX_LINE_BYTES:
        return "The line is longer than 16 MiB"
    if raw.startswith(_BYTE_ORDER_MARK):
        return "The line begins with a byte order mark; save the file as plain UTF-8"
    try:
        value = _decode_any(_checked_text(raw))
    except _PARSE_ERRORS:
        return "The line is not valid JSON"
    if not isinstance(value, dict):
        return "The line is not a JSON object"
    return event_from_object(value)


def parse_event(raw: bytes) -> PactEvent | str:
    """The event in one line, or what is wrong with it."""
    try:
        return _decode(_checked_text(raw))
    except _PARSE_ERRORS:
        return _parse_lenient(raw)


def event_from_object(fields: dict[str, Any]) -> PactEvent:
    """The event in an object; fields of the wrong type count as missing."""
    texts = {name: fields[name] for name in _TEXT_FIELDS if isinstance(fields.get(name), str)}
    raw_payload = fields.get("payload")
    payload = {
        name: value
        for name, value in (raw_payload.items() if isinstance(raw_payload, dict) else ())
        if name in _PAYLOAD_TYPES and (_PAYLOAD_TYPES[name] is not str or isinstance(value, str))
    }
    return PactEvent(**texts, payload=PactPayload(**payload))


def parse_instant(ts: str) -> str:
    """An RFC 3339 time converted to UTC such that text order is time order; empty if invalid."""
    if not _RFC3339(ts):
        return ""
    try:
        moment = datetime.fromisoformat(ts.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".zfill(19) + fraction


def parse_objects(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """All lines that are JSON objects, unvalidated, with their numbers."""
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            value = _decode_any(_checked_text(raw))
        except _PARSE_ERRORS:
            continue
        if isinstance(value, dict):
            yield number, value


def stamp(now: str, last: str) -> str:
    """The time to write: now, but never earlier than the log's latest (OPEN-103)."""
    latest, _, fraction = max(now[:19], last).partition(".")
    if not fraction:
        return f"{latest}Z"
    if latest == _LAST_SECOND:
        # There is no later second, and such a line must not stop all other writers.
        return f"{latest}.{fraction}Z"
    # Only whole seconds are written, so a fraction is rounded up.
    later = datetime.fromisoformat(f"{latest}+00:00").timestamp() + 1
    return f"{datetime.fromtimestamp(later, UTC):%Y-%m-%dT%H:%M:%S}Z"


def encode_events(
    drafts: Sequence[EventDraft],
    ids: Sequence[str],
    ts: str,
    agent: str,
    sign: SignEvent | None = None,
    before: bytes = b"",
) -> bytes:
    """Encode lines to append after the line `before`, signed if `sign` is given."""
    lines = list[bytes]()
    for draft, id in zip(drafts, ids, strict=True):
        event = event_object(draft, id, ts, agent)
        before = _encode(sign(event, before) if sign else event)
        lines.append(before)
    return b"".join(raw + b"\n" for raw in lines)


def split_lines(data: bytes) -> list[bytes]:
    """The lines that are not blank, stripped."""
    return [line for raw in data.split(b"\n") if (line := raw.strip())]


def last_line(data: bytes) -> bytes:
    """The last line that is not blank."""
    return data.rstrip().rpartition(b"\n")[2].strip()


def is_torn(data: bytes) -> bool:
    """Whether the last line is incomplete."""
    last = data.rpartition(b"\n")[2]
    return bool(last.strip()) and isinstance(parse_event(last), str)


def append_lines(data: bytes, lines: bytes) -> bytes:
    """The content of a log with these lines at its end; a missing line break is added."""
    return data + lines if not data or data.endswith(b"\n") else data + b"\n" + lines


def missing_lines(there: bytes, here: bytes) -> bytes:
    """Complete lines of `here` that `there` lacks, compared by event id, else by content."""
    known = {_line_identity(raw) for raw in split_lines(there)}
    lines = split_lines(here)
    if is_torn(here):
        lines.pop()
    return b"".join(raw + b"\n" for raw in lines if _line_identity(raw) not in known)


def _line_identity(raw: bytes) -> str | bytes:
    try:
        return _decode(raw).event_id or raw
    except _PARSE_ERRORS:
        return raw
