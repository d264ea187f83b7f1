"""Threads: methods with their fields, errors, events, delivery, and what comes of a wake."""

from collections.abc import Iterator

from msgspec import Struct

from accord.api.threads import WakeDone
from accord.core.attention.delivery_marks import DeliveryState
from accord.core.attention.waking.outcomes import SENTENCES, WakeAction, WakeCause, WakeResult
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.room.threads.state import ThreadStatus
from accord.core.room.threads.thread_findings import EVENT_TYPES
from accord.core.room.threads.thread_status import OVERRIDES, TRANSITIONS
from accord.transports.msg.method_table import METHODS, TABLE
from tools.reference.markdown import capital, code, codes, plain, sentence, table
from tools.reference.shapes import describe_type, fields, presence
from tools.reference.words import sentences_of


def methods() -> Iterator[str]:
    """One row for each method."""
    rows = (
        (
            code(method.name),
            plain(sentence(method.request.__doc__)),
            codes(field.encode_name for field in fields(method.result)),
            "yes" if method.on_mcp else "–",
        )
        for method in TABLE
    )
    yield from table(("Method", "What it does", "Result", "MCP tool"), rows)


def method_fields() -> Iterator[str]:
    """The arguments of each method; an argument means the same in all of them."""
    shapes: dict[str, type[Struct]] = {
        f"`{name}`": method.request for name, method in METHODS.items()
    }
    shapes[WakeDone.__name__] = WakeDone
    names = {field.encode_name for each in shapes.values() for field in fields(each)}
    said = sentences_of("thread fields", sorted(names))
    for name, shape in shapes.items():
        yield f"### {name}"
        yield ""
        rows = (
            (
                code(field.encode_name),
                describe_type(field.type),
                presence(field),
                said[field.encode_name],
            )
            for field in fields(shape)
        )
        yield from table(("Field", "Type", "", "Meaning"), rows)
        yield ""


def errors() -> Iterator[str]:
    """The codes of MSG with their statuses, each with the reasons behind it."""
    said = sentences_of("errors", [why.value for why in ERROR_CODES])
    by_code: dict[str, dict[str, str]] = {}
    statuses: dict[str, set[int]] = {}
    for why, face in ERROR_CODES.items():
        by_code.setdefault(face.msg, {})[why.value] = said[why.value]
        statuses.setdefault(face.msg, set()).add(face.http)
    rows = (
        (code(name), ", ".join(map(str, sorted(statuses[name]))), " ".join(reasons.values()))
        for name, reasons in by_code.items()
    )
    yield from table(("Code", "HTTP", "When"), rows)


def event_types() -> Iterator[str]:
    """The registry of events."""
    said = sentences_of("event types", EVENT_TYPES)
    yield from table(("`metadata.event_type`", "Meaning"), ((code(k), v) for k, v in said.items()))


def statuses() -> Iterator[str]:
    """Which changes of status there are."""
    rows = []
    for before in ThreadStatus:
        free = [code(after) for after in ThreadStatus if (before, after) in TRANSITIONS]
        override = [code(after) for after in ThreadStatus if (before, after) in OVERRIDES]
        rows.append((code(before), ", ".join(free) or "–", ", ".join(override) or "–"))
    yield from table(("From", "To", "To, by operators and orchestrators with a reason"), rows)


def delivery_states() -> Iterator[str]:
    """How far a message reached a participant."""
    said = sentences_of("delivery states", [state.value for state in DeliveryState])
    yield from table(("State", "Meaning"), ((code(k), v) for k, v in said.items()))


def wake_outcomes() -> Iterator[str]:
    """Actions, results and causes of `trigger_participant`."""
    for head, section, values in (
        ("`action`", "wake actions", [each.value for each in WakeAction]),
        ("`result`", "wake results", [each.value for each in WakeResult]),
    ):
        said = sentences_of(section, values)
        yield from table((head, "Meaning"), ((code(k), v) for k, v in said.items()))
        yield ""
    rows = ((code(cause.value), f"{capital(SENTENCES[cause])}.") for cause in WakeCause)
    yield from table(("`why`", "Meaning"), rows)
