"""The context `work/<repo>`: a repository's `.pact/log.jsonl` mirrored event by event.

The mirror is one-way: the file is authoritative, and nothing is written back to it (OPEN-137). Each
event has one record, whose id follows from its `event_id`, so that reading the file again records
nothing twice. Where the order of the file differs from that of the records, because git inserted or
removed lines, another record describes the change of order.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import (
    Command,
    Context,
    Deciders,
    EventOrEffect,
    Evolvers,
    no_events,
    server_only,
)
from accord.core.kernel.messages import Body, Elapsed
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission

MAX_LINE_LENGTH = 64 << 10
MAX_MOVED_EVENTS = 4096

EventKey = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
EventKeys = Annotated[tuple[EventKey, ...], Meta(max_length=MAX_MOVED_EVENTS)]
Count = Annotated[int, Meta(ge=0)]


class MirrorState(msgspec.Struct, frozen=True):
    """How many records the mirror of a repository's pact has."""

    id: str
    records: int = 0


class PactMirror(Body, frozen=True, omit_defaults=True, gc=False):
    """An event was read from the file."""

    type = "pact.mirror"
    needs = Permission.SERVER_ONLY

    key: EventKey
    line: Annotated[str, Meta(max_length=MAX_LINE_LENGTH)]
    digest: str


class PactArrange(Body, frozen=True, omit_defaults=True, gc=False):
    """The file has its events in another order, or fewer of them.

    From index `at` on, `drop` events are replaced by those in `put`; `seen` is the number of
    records that this was computed from.
    """

    type = "pact.arrange"
    needs = Permission.SERVER_ONLY

    seen: Count
    at: Count
    drop: Count
    put: EventKeys = ()


class Mirrored(Event, frozen=True, kw_only=True, gc=False):
    """An event of the file, verbatim, appended to the order."""

    name = "pact.mirrored"

    key: str
    line: str
    digest: str


class Arranged(Event, frozen=True, kw_only=True, gc=False):
    """A change of order: from index `at` on, `drop` events were replaced by those in `put`."""

    name = "pact.arranged"

    at: int
    drop: int
    put: tuple[str, ...] = ()


def event_key(event_id: str) -> str:
    """The mirror's key for an event id, of fixed length and safe as part of other ids."""
    return sha256(event_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def mirror_message_id(key: str) -> str:
    """The message id of an event; submitting it again returns the first outcome (UNI-11)."""
    return f"pact-{key}"


def decide_mirror(mirror: MirrorState, ask: Command, body: PactMirror) -> Iterator[EventOrEffect]:
    """Record the event verbatim."""
    yield Mirrored(key=body.key, line=body.line, digest=body.digest)


def decide_arrange(mirror: MirrorState, ask: Command, body: PactArrange) -> Iterator[EventOrEffect]:
    """Record a change of order; refused if it was computed from an outdated stream."""
    if body.seen != mirror.records:
        detail = "More of the pact was recorded meanwhile; read the stream and try again"
        raise Refused(Reason.WRONG_STATE, detail, {"records": mirror.records})
    yield Arranged(at=body.at, drop=body.drop, put=body.put)


def count_record(mirror: MirrorState, event: Mirrored | Arranged, record: Record) -> MirrorState:
    """Count the record."""
    return replace(mirror, records=mirror.records + 1)


DECIDE: Deciders = {PactMirror: decide_mirror, PactArrange: decide_arrange, Elapsed: no_events}
EVOLVE: Evolvers = {Mirrored: count_record, Arranged: count_record}
CONTEXT: Context[MirrorState] = Context(
    name="work",
    initial_state=lambda stream: MirrorState(id=stream.removeprefix("work/")),
    decide=DECIDE,
    evolve=EVOLVE,
    # Only the server, which reads the file, may write here.
    admit=server_only("Tasks are changed with `accord pact` in the repository"),
    state_type=MirrorState,
)
