"""The server log: one line per event, with ids and numbers and never message content.

A line contains only fields from an allow list. Everything else is left out: texts of exceptions,
arguments of log calls, and the messages of most libraries.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, TextIO

ALLOWED_FIELDS = (
    *("stream", "session", "principal", "type", "code", "reason", "worker", "failed", "count"),
    *("method", "route", "status", "ms", "action", "uid", "url", "version", "data"),
    *("error", "detail"),
)
OUR_LOGGER = "accord"
EVENT_NAME = re.compile(r"[a-z]+(\.[a-z_]+)+")
UNQUOTED_VALUE = re.compile(r"[A-Za-z0-9_./:@,+-]+")
# These libraries log constant sentences; of all others only the code location is logged.
CONSTANT_TEXT_LOGGERS = ("uvicorn",)
MAX_TEXT_CHARS = 120
MAX_VALUE_CHARS = 300
MAX_STACK_FRAMES = 30
# Limit per kind of warning, so that a client cannot fill the disk.
LINES_PER_S, BURST_LINES = 20.0, 100.0
MAX_KINDS = 256
SOURCE_ROOT = Path(__file__).parent.parent.parent


def set_up_logging(form: str, level: str, to: TextIO | None = None) -> None:
    """Send all logging of this process to `to`, in this format, from this level on."""
    stream = to or sys.stderr
    text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(text=text))
    handler.addFilter(RateLimitFilter())
    libraries = logging.DEBUG if level == "debug" else logging.WARNING
    logging.basicConfig(handlers=[handler], level=libraries, force=True)
    logging.getLogger(OUR_LOGGER).setLevel(level.upper())


class RateLimitFilter(logging.Filter):
    """Suppresses repeated warnings and reports how many were suppressed."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.clock = clock
        self.kinds: dict[tuple[str, str], tuple[float, float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log this record; debug records and errors always are."""
        if not logging.INFO <= record.levelno <= logging.WARNING:
            return True
        kind, now = (record.name, str(record.msg)[:MAX_TEXT_CHARS]), self.clock()
        left, seen, silent = self.kinds.pop(kind, (BURST_LINES, now, 0))
        left = min(BURST_LINES, left + (now - seen) * LINES_PER_S)
        allowed = left >= 1
        self.kinds[kind] = (left - 1, now, 0) if allowed else (left, now, silent + 1)
        if len(self.kinds) > MAX_KINDS:
            del self.kinds[next(iter(self.kinds))]
        if allowed and silent:
            record.unreported = silent
        return allowed


class LineFormatter(logging.Formatter):
    """Formats a record as exactly one line."""

    def __init__(self, *, text: bool) -> None:
        super().__init__()
        self.text = text

    def format(self, record: logging.LogRecord) -> str:
        """As JSON, or as text for a terminal."""
        fields = dict(log_fields(record))
        return render_text(fields) if self.text else json.dumps(fields)


def log_fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """The allowed fields of a record."""
    at = datetime.fromtimestamp(record.created, UTC)
    yield "ts", at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    yield "level", record.levelname.lower()
    ours = record.name.partition(".")[0] == OUR_LOGGER and is_event(record)
    yield "event", record.msg if ours else "library.said"
    if ours:
        for name in ALLOWED_FIELDS:
            value = getattr(record, name, None)
            if value is not None and value != "":
                yield name, value if isinstance(value, int) else str(value)[:MAX_VALUE_CHARS]
    else:
        yield from library_fields(record)
    if unreported := getattr(record, "unreported", 0):
        yield "unreported", int(unreported)
    if record.exc_info and record.exc_info[1] is not None:
        yield "error", type(record.exc_info[1]).__qualname__
        yield "stack", list(stack_frames(record.exc_info[2]))


def is_event(record: logging.LogRecord) -> bool:
    """Whether it is an event name of our code and not a sentence."""
    return (
        isinstance(record.msg, str) and not record.args and bool(EVENT_NAME.fullmatch(record.msg))
    )


def library_fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """Logger and code location; the text only if it is known to be constant."""
    yield "logger", record.name
    yield "where", f"{record.module}:{record.lineno}"
    if record.name.partition(".")[0] in CONSTANT_TEXT_LOGGERS and isinstance(record.msg, str):
        yield "text", record.msg.partition("\n")[0][:MAX_TEXT_CHARS]


def stack_frames(trace: TracebackType | None) -> Iterator[str]:
    """Code locations of a traceback, outermost first, without values or source text."""
    places: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        file = Path(code.co_filename)
        known = (
            file.relative_to(SOURCE_ROOT) if file.is_relative_to(SOURCE_ROOT) else Path(file.name)
        )
        places.append(f"{known.as_posix()}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    yield from places[-MAX_STACK_FRAMES:]


def render_text(fields: Mapping[str, Any]) -> str:
    """The line for a terminal."""
    more = dict(fields)
    stack = more.pop("stack", ())
    opening = f"{more.pop('ts')} {more.pop('level'):7} {more.pop('event')}"
    pairs = "".join(f" {name}={quote_value(value)}" for name, value in more.items())
    return opening + pairs + "".join(f"\n    at {quote_frame(place)}" for place in stack)


def quote_value(value: Any) -> str:
    """Quote a value so that it cannot break the line or imitate another field."""
    text = str(value)
    return text if UNQUOTED_VALUE.fullmatch(text) else json.dumps(text)


def quote_frame(place: str) -> str:
    """A code location in one line."""
    return json.dumps(place)[1:-1]
