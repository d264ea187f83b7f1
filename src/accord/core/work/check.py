"""What `validate` finds: every finding, each with its line. Letters are the checks of PACT 7.1."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from accord.core.work.event import Entry
from accord.core.work.fold import Fold
from accord.core.work.state import Work
from accord.core.work.words import PROTOCOL, ROLE_OF, Kind, Role, is_inside, is_slug


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be; a warning is no failure. Line 0 is no line."""

    check: str
    line: int
    sentence: str
    warning: bool = False


Objects = Sequence[tuple[int, dict[str, Any]]]

# What each event must carry, and of which type (PACT 2.4).
NEEDS: dict[str, dict[str, type]] = {
    Kind.INIT: {"project": str, "protocol_version": int, "seats": list, "base_branch": str},
    Kind.ASSIGN: {"owner": str, "reviewer": str, "branch": str, "spec": str},
    Kind.JOIN: {"roles": list},
    Kind.CHECKPOINT: {"evidence": str},
    Kind.ACCEPT: {},
    Kind.CHANGES: {"reason": str},
    Kind.MERGE: {},
}
ENVELOPE: dict[str, type] = {
    "ts": str,
    "agent_id": str,
    "role": str,
    "task_id": str,
    "feature": str,
    "payload": dict,
}
NAMES = ("task_id", "feature")
PAYLOAD_NAMES = ("project", "base_branch", "owner", "reviewer", "branch", "spec")
# The same `init` again is what two branches may bring together; the first counts, nobody is harmed.
HARMLESS = frozenset({"init"})
# PACT 2.1: what an event that is not about a task or a feature leaves empty.
EMPTY: dict[str, tuple[str, ...]] = {
    Kind.INIT: ("task_id", "feature"),
    Kind.JOIN: ("task_id", "feature"),
    Kind.MERGE: ("task_id",),
}


def findings(
    entries: Sequence[Entry], objects: Objects, instant: Callable[[str], str]
) -> Iterator[Finding]:
    """All there is to say about a log; `instant` reads a time."""
    made = Fold().take(entries)
    work = made.work()
    yield from later_version(work)
    yield from roster(work)
    known = [(line, found) for line, found in objects if is_known(found.get("event_type"))]
    yield from undeclared(work, known)
    yield from same_seat(known)
    for line, found in known:
        yield from (Finding("schema", line, said) for said in wrong_shape(found, instant))
        yield from false_role(line, found)
    yield from (Finding(c, line, s, c in HARMLESS) for line, c, s in made.skipped)
    yield from unnamed(objects)
    yield from repeated(objects)
    yield from backwards(entries)


def is_known(kind: object) -> bool:
    """Whether this is one of the seven events."""
    return isinstance(kind, str) and kind in NEEDS


def later_version(work: Work) -> Iterator[Finding]:
    """(f)."""
    if work.too_new:
        said = f"protocol_version {work.protocol} exceeds the supported {PROTOCOL}; upgrade accord"
        yield Finding("f", 0, said)


def roster(work: Work) -> Iterator[Finding]:
    """(c), and what OPEN-95 says of seats."""
    ids = [seat.id for seat in work.seats]
    for seat in work.seats:
        if not is_slug(seat.id):
            yield Finding("c", 0, f"Seat {seat.id!r} is not of a-z, 0-9 and -")
        if not seat.roles or not set(seat.roles) <= set(Role):
            yield Finding("seat", 0, f"Seat {seat.id} has roles [{', '.join(seat.roles)}]")
        if not is_inside(seat.entry):
            yield Finding("seat", 0, f"The entry {seat.entry!r} of {seat.id} is no path in here")
    for twice in sorted({id for id in ids if ids.count(id) > 1}):
        yield Finding("seat", 0, f"Seat {twice} is declared twice")


def undeclared(work: Work, objects: Objects) -> Iterator[Finding]:
    """(b)."""
    ids = {seat.id for seat in work.seats}
    for line, found in objects:
        agent = found.get("agent_id")
        if not isinstance(agent, str) or agent not in ids:
            yield Finding("b", line, f"{agent} is not a declared seat")


def same_seat(objects: Objects) -> Iterator[Finding]:
    """(d)."""
    for line, found in objects:
        match found:
            case {"event_type": Kind.ASSIGN, "payload": {"owner": owner, "reviewer": reviewer}}:
                if owner == reviewer:
                    said = f"rule1: {found.get('task_id')} is owned and reviewed by {owner}"
                    yield Finding("d", line, said)
            case _:
                pass


def wrong_shape(found: Mapping[str, Any], instant: Callable[[str], str]) -> Iterator[str]:
    """Where an event is not as the schema has it; its id is the business of (g)."""
    yield from typed(found, ENVELOPE, "")
    kind = found["event_type"]
    if isinstance(payload := found.get("payload"), dict):
        yield from typed(payload, NEEDS[kind], "payload.")
    for name, value in texts(found):
        if not value.isprintable():
            yield f"{name} {value!r} has characters that break lines or that nobody sees"
    if isinstance(ts := found.get("ts"), str) and not instant(ts):
        yield f"ts {ts!r} is no time"
    if isinstance(agent := found.get("agent_id"), str) and not is_slug(agent):
        yield f"agent_id {agent!r} is not of a-z, 0-9 and -"
    for name in EMPTY.get(kind, ()):
        if found.get(name):
            yield f"{name} must be empty in {kind}"


def texts(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names in an event: every one of them is a line of STATE.yml, or a part of one."""
    payload = found.get("payload")
    for where, prefix, names in ((found, "", NAMES), (payload, "payload.", PAYLOAD_NAMES)):
        if isinstance(where, Mapping):
            given = ((f"{prefix}{name}", where.get(name)) for name in names)
            yield from ((name, value) for name, value in given if isinstance(value, str))


def typed(found: Mapping[str, Any], needs: Mapping[str, type], prefix: str) -> Iterator[str]:
    """What is missing or of another type."""
    for name, wanted in needs.items():
        if name not in found:
            yield f"{prefix}{name} is missing"
        elif not isinstance(found[name], wanted):
            yield f"{prefix}{name} is not of type {wanted.__name__}"


def false_role(line: int, found: Mapping[str, Any]) -> Iterator[Finding]:
    """The role that a line claims is never believed."""
    role, right = found.get("role"), ROLE_OF[found["event_type"]]
    if isinstance(role, str) and role != right:
        yield Finding(
            "role", line, f"role {role} is not what the event says: {right}", warning=True
        )


def unnamed(objects: Objects) -> Iterator[Finding]:
    """(g), for events of every kind."""
    for line, found in objects:
        if not (isinstance(found.get("event_id"), str) and found["event_id"]):
            yield Finding("g", line, "The event has no event_id")


def repeated(objects: Objects) -> Iterator[Finding]:
    """An id that comes again; the same event twice is what a merge may leave."""
    first: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, found in objects:
        id = found.get("event_id")
        if not isinstance(id, str) or not id:
            continue
        at, before = first.setdefault(id, (line, found))
        if at != line:
            same = before == found
            said = "repeats" if same else "has the id of, but says something else than,"
            yield Finding("id", line, f"The event {said} line {at}", warning=same)


def contested(objects: Objects) -> str:
    """An id under which two lines say different things, so that one of them hides the other."""
    first: dict[str, dict[str, Any]] = {}
    for _, found in objects:
        id = found.get("event_id")
        if isinstance(id, str) and id and first.setdefault(id, found) != found:
            return id
    return ""


def ahead(entries: Iterable[Entry], latest: str) -> Iterator[Finding]:
    """Lines from the future: whatever is written after them is dated like them."""
    for entry in entries:
        if entry.at > latest:
            said = f"Its time, {entry.at}, has not come yet; a clock is wrong, or somebody lied"
            yield Finding("time", entry.line, said, warning=True)


def backwards(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Lines whose time is before that of a line above them; folding has put them in order."""
    latest, above = "", 0
    for entry in sorted(entries, key=lambda entry: entry.line):
        if entry.at < latest:
            said = f"Its time is before that of line {above}; it is folded by time"
            yield Finding("order", entry.line, said, warning=True)
        else:
            latest, above = entry.at, entry.line
