"""The checks of `validate`; letters such as (b) name the checks of PACT 7.1."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from accord.core.work.event import LogEntry
from accord.core.work.fold import Fold
from accord.core.work.state import Work
from accord.core.work.vocabulary import (
    PROTOCOL_VERSION,
    ROLE_OF,
    EventKind,
    SeatRole,
    is_inside_repository,
    is_slug,
)


class ValidationFinding(msgspec.Struct, frozen=True):
    """One problem; a warning does not fail validation. Line 0 means no particular line."""

    check: str
    line: int
    sentence: str
    warning: bool = False


LogObjects = Sequence[tuple[int, dict[str, Any]]]

# Required payload fields of each event kind, with their types (PACT 2.4).
PAYLOAD_FIELDS: dict[str, dict[str, type]] = {
    EventKind.INIT: {"project": str, "protocol_version": int, "seats": list, "base_branch": str},
    EventKind.ASSIGN: {"owner": str, "reviewer": str, "branch": str, "spec": str},
    EventKind.JOIN: {"roles": list},
    EventKind.CHECKPOINT: {"evidence": str},
    EventKind.ACCEPT: {},
    EventKind.CHANGES: {"reason": str},
    EventKind.MERGE: {},
}
ENVELOPE_FIELDS: dict[str, type] = {
    "ts": str,
    "agent_id": str,
    "role": str,
    "task_id": str,
    "feature": str,
    "payload": dict,
}
NAME_FIELDS = ("task_id", "feature")
PAYLOAD_NAME_FIELDS = ("project", "base_branch", "owner", "reviewer", "branch", "spec")
# Merging two branches may repeat the same `init`; the first counts, so that is harmless.
WARNING_CHECKS = frozenset({"init"})
# PACT 2.1: fields that must be empty for events not about a task or a feature.
EMPTY_FIELDS: dict[str, tuple[str, ...]] = {
    EventKind.INIT: ("task_id", "feature"),
    EventKind.JOIN: ("task_id", "feature"),
    EventKind.MERGE: ("task_id",),
}


def validate_log(
    entries: Sequence[LogEntry], objects: LogObjects, instant: Callable[[str], str]
) -> Iterator[ValidationFinding]:
    """All problems of a log; `instant` parses a time."""
    folded = Fold().add(entries)
    work = folded.work()
    yield from check_protocol_version(work)
    yield from check_roster(work)
    known = [(line, event) for line, event in objects if is_known_kind(event.get("event_type"))]
    yield from check_declared_seats(work, known)
    yield from check_rule_one(known)
    for line, event in known:
        yield from (
            ValidationFinding("schema", line, sentence)
            for sentence in schema_errors(event, instant)
        )
        yield from check_claimed_role(line, event)
    yield from (ValidationFinding(c, line, s, c in WARNING_CHECKS) for line, c, s in folded.skipped)
    yield from check_event_ids(objects)
    yield from check_repeated_ids(objects)
    yield from check_time_order(entries)


def is_known_kind(kind: object) -> bool:
    """Whether this is one of the seven event kinds."""
    return isinstance(kind, str) and kind in PAYLOAD_FIELDS


def check_protocol_version(work: Work) -> Iterator[ValidationFinding]:
    """(f): the protocol version is supported."""
    if work.too_new:
        sentence = (
            f"protocol_version {work.protocol} exceeds the supported {PROTOCOL_VERSION}; "
            "upgrade accord"
        )
        yield ValidationFinding("f", 0, sentence)


def check_roster(work: Work) -> Iterator[ValidationFinding]:
    """(c): seat names are valid; also roles, entries and duplicates (OPEN-95)."""
    ids = [seat.id for seat in work.seats]
    for seat in work.seats:
        if not is_slug(seat.id):
            yield ValidationFinding("c", 0, f"Seat {seat.id!r} must consist of a-z, 0-9 and -")
        if not seat.roles or not set(seat.roles) <= set(SeatRole):
            yield ValidationFinding(
                "seat", 0, f"Seat {seat.id} has invalid roles [{', '.join(seat.roles)}]"
            )
        if not is_inside_repository(seat.entry):
            yield ValidationFinding(
                "seat",
                0,
                f"The entry {seat.entry!r} of {seat.id} is not a path inside the repository",
            )
    for twice in sorted({id for id in ids if ids.count(id) > 1}):
        yield ValidationFinding("seat", 0, f"Seat {twice} is declared twice")


def check_declared_seats(work: Work, objects: LogObjects) -> Iterator[ValidationFinding]:
    """(b): every event is by a declared seat."""
    ids = {seat.id for seat in work.seats}
    for line, event in objects:
        agent = event.get("agent_id")
        if not isinstance(agent, str) or agent not in ids:
            yield ValidationFinding("b", line, f"{agent} is not a declared seat")


def check_rule_one(objects: LogObjects) -> Iterator[ValidationFinding]:
    """(d): no task is owned and reviewed by the same seat."""
    for line, event in objects:
        match event:
            case {
                "event_type": EventKind.ASSIGN,
                "payload": {"owner": owner, "reviewer": reviewer},
            }:
                if owner == reviewer:
                    sentence = f"rule1: {event.get('task_id')} is owned and reviewed by {owner}"
                    yield ValidationFinding("d", line, sentence)
            case _:
                pass


def schema_errors(event: Mapping[str, Any], instant: Callable[[str], str]) -> Iterator[str]:
    """Where an event violates the schema; its id is checked by (g)."""
    yield from type_errors(event, ENVELOPE_FIELDS, "")
    kind = event["event_type"]
    if isinstance(payload := event.get("payload"), dict):
        yield from type_errors(payload, PAYLOAD_FIELDS[kind], "payload.")
    for name, value in name_values(event):
        if not value.isprintable():
            yield f"{name} {value!r} has line breaks or invisible characters"
    if isinstance(ts := event.get("ts"), str) and not instant(ts):
        yield f"ts {ts!r} is not a valid time"
    if isinstance(agent := event.get("agent_id"), str) and not is_slug(agent):
        yield f"agent_id {agent!r} must consist of a-z, 0-9 and -"
    for name in EMPTY_FIELDS.get(kind, ()):
        if event.get(name):
            yield f"{name} must be empty in {kind}"


def name_values(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names in an event, which all end up in lines of STATE.yml."""
    payload = event.get("payload")
    for where, prefix, names in (
        (event, "", NAME_FIELDS),
        (payload, "payload.", PAYLOAD_NAME_FIELDS),
    ):
        if isinstance(where, Mapping):
            given = ((f"{prefix}{name}", where.get(name)) for name in names)
            yield from ((name, value) for name, value in given if isinstance(value, str))


def type_errors(event: Mapping[str, Any], needs: Mapping[str, type], prefix: str) -> Iterator[str]:
    """Fields that are missing or have the wrong type."""
    for name, wanted in needs.items():
        if name not in event:
            yield f"{prefix}{name} is missing"
        elif not isinstance(event[name], wanted):
            yield f"{prefix}{name} is not of type {wanted.__name__}"


def check_claimed_role(line: int, event: Mapping[str, Any]) -> Iterator[ValidationFinding]:
    """A warning if the claimed role differs from that of the event kind, which counts."""
    role, right = event.get("role"), ROLE_OF[event["event_type"]]
    if isinstance(role, str) and role != right:
        yield ValidationFinding(
            "role",
            line,
            f"role {role} does not match the event, whose role is {right}",
            warning=True,
        )


def check_event_ids(objects: LogObjects) -> Iterator[ValidationFinding]:
    """(g): every event has an id, whatever its kind."""
    for line, event in objects:
        if not (isinstance(event.get("event_id"), str) and event["event_id"]):
            yield ValidationFinding("g", line, "The event has no event_id")


def check_repeated_ids(objects: LogObjects) -> Iterator[ValidationFinding]:
    """Repeated ids; an identical event is only a warning, since a merge may leave it twice."""
    first: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, event in objects:
        id = event.get("event_id")
        if not isinstance(id, str) or not id:
            continue
        at, before = first.setdefault(id, (line, event))
        if at != line:
            same = before == event
            sentence = "repeats" if same else "has the same id as, but differs from,"
            yield ValidationFinding("id", line, f"The event {sentence} line {at}", warning=same)


def conflicting_event_id(objects: LogObjects) -> str:
    """An id shared by two different events, one of which is therefore ignored; empty if none."""
    first: dict[str, dict[str, Any]] = {}
    for _, event in objects:
        id = event.get("event_id")
        if isinstance(id, str) and id and first.setdefault(id, event) != event:
            return id
    return ""


def check_future_times(entries: Iterable[LogEntry], latest: str) -> Iterator[ValidationFinding]:
    """Lines dated in the future; they force all later events to be dated as late."""
    for entry in entries:
        if entry.at > latest:
            sentence = f"Its time, {entry.at}, is in the future; a clock is wrong, or it was forged"
            yield ValidationFinding("time", entry.line, sentence, warning=True)


def check_time_order(entries: Iterable[LogEntry]) -> Iterator[ValidationFinding]:
    """Lines that are older than a line above them; folding sorts by time."""
    latest, above = "", 0
    for entry in sorted(entries, key=lambda entry: entry.line):
        if entry.at < latest:
            sentence = f"It is older than line {above}; events are applied in order of time"
            yield ValidationFinding("order", entry.line, sentence, warning=True)
        else:
            latest, above = entry.at, entry.line
