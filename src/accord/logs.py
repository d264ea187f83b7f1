"""What the server reports: one line for each event, with ids and numbers and never content.

A line is made from a list of fields that may be told. Whatever else a record carries is left out:
texts of exceptions, arguments of messages, and what libraries would like to say.
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

FIELDS = (
    *("stream", "session", "principal", "type", "code", "reason", "worker", "failed", "count"),
    *("method", "route", "status", "ms", "action", "uid", "url", "version", "data"),
    *("error", "detail"),
)
OURS = "accord"
EVENT = re.compile(r"[a-z]+(\.[a-z_]+)+")
PLAIN = re.compile(r"[A-Za-z0-9_./:@,+-]+")
# Of libraries, these write constant sentences; of all others only the place is told.
TRUSTED = ("uvicorn",)
LONGEST_TEXT = 120
LONGEST_VALUE = 300
MOST_FRAMES = 30
# Warnings of one kind: so many a second and no more, so that nobody outside can fill a disk.
A_SECOND, BURST = 20.0, 100.0
MOST_KINDS = 256
HERE = Path(__file__).parent.parent


def set_up(form: str, level: str, to: TextIO | None = None) -> None:
    """Everything that is logged in this process goes to `to`, in this form, from this level on."""
    stream = to or sys.stderr
    text = form == "text" or (form == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(text=text))
    handler.addFilter(Few())
    libraries = logging.DEBUG if level == "debug" else logging.WARNING
    logging.basicConfig(handlers=[handler], level=libraries, force=True)
    logging.getLogger(OURS).setLevel(level.upper())


class Few(logging.Filter):
    """What is said over and over is told now and then, with how often it was not."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self.clock = clock
        self.kinds: dict[tuple[str, str], tuple[float, float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to tell this one; what is asked for in detail, and what is wrong, always is."""
        if not logging.INFO <= record.levelno <= logging.WARNING:
            return True
        kind, now = (record.name, str(record.msg)[:LONGEST_TEXT]), self.clock()
        left, seen, silent = self.kinds.pop(kind, (BURST, now, 0))
        left = min(BURST, left + (now - seen) * A_SECOND)
        told = left >= 1
        self.kinds[kind] = (left - 1, now, 0) if told else (left, now, silent + 1)
        if len(self.kinds) > MOST_KINDS:
            del self.kinds[next(iter(self.kinds))]
        if told and silent:
            record.unreported = silent
        return told


class Lines(logging.Formatter):
    """One line for each record, whatever is in it."""

    def __init__(self, *, text: bool) -> None:
        super().__init__()
        self.text = text

    def format(self, record: logging.LogRecord) -> str:
        """JSON, or the same as words for a terminal."""
        told = dict(facts(record))
        return words(told) if self.text else json.dumps(told)


def facts(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """What may be told of a record."""
    at = datetime.fromtimestamp(record.created, UTC)
    yield "ts", at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    yield "level", record.levelname.lower()
    ours = record.name.partition(".")[0] == OURS and is_event(record)
    yield "event", record.msg if ours else "library.said"
    if ours:
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None and value != "":
                yield name, value if isinstance(value, int) else str(value)[:LONGEST_VALUE]
    else:
        yield from of_library(record)
    if unreported := getattr(record, "unreported", 0):
        yield "unreported", int(unreported)
    if record.exc_info and record.exc_info[1] is not None:
        yield "error", type(record.exc_info[1]).__qualname__
        yield "stack", list(frames(record.exc_info[2]))


def is_event(record: logging.LogRecord) -> bool:
    """Whether it is a name from our code, and no sentence."""
    return isinstance(record.msg, str) and not record.args and bool(EVENT.fullmatch(record.msg))


def of_library(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """Who spoke and where; the words only where they are known to be constant."""
    yield "logger", record.name
    yield "where", f"{record.module}:{record.lineno}"
    if record.name.partition(".")[0] in TRUSTED and isinstance(record.msg, str):
        yield "text", record.msg.partition("\n")[0][:LONGEST_TEXT]


def frames(trace: TracebackType | None) -> Iterator[str]:
    """Where it happened, outermost first: places, without values and without source."""
    places: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        file = Path(code.co_filename)
        known = file.relative_to(HERE) if file.is_relative_to(HERE) else Path(file.name)
        places.append(f"{known.as_posix()}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    yield from places[-MOST_FRAMES:]


def words(told: Mapping[str, Any]) -> str:
    """The line for a person's eyes."""
    more = dict(told)
    stack = more.pop("stack", ())
    opening = f"{more.pop('ts')} {more.pop('level'):7} {more.pop('event')}"
    pairs = "".join(f" {name}={shown(value)}" for name, value in more.items())
    return opening + pairs + "".join(f"\n    at {shown_place(place)}" for place in stack)


def shown(value: Any) -> str:
    """A value that cannot end its line or pass for another field."""
    text = str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text)


def shown_place(place: str) -> str:
    """A place in code, in one line."""
    return json.dumps(place)[1:-1]
