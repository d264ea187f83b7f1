"""The context `work/<repo>`: what a repository's `.pact/log.jsonl` says, event by event.

It is copied one way: the file rules, and nothing here is ever written back to it (OPEN-137). Each
event has a record of its own, whose id follows from its `event_id`, so that it is there once
however often the file is read. Where the order of the file is not that of the records, because git
put lines between others or took some away, another record says so.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.log import (
    Ask,
    Body,
    Context,
    Deciders,
    Elapsed,
    Event,
    Evolvers,
    Fact,
    Record,
    idle,
    server_only,
)
from accord.core.kernel.refusal import Refused, Why

LONGEST_LINE = 64 << 10
MOST_MOVED = 4096

Key = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Keys = Annotated[tuple[Key, ...], Meta(max_length=MOST_MOVED)]
Count = Annotated[int, Meta(ge=0)]


class Mirror(msgspec.Struct, frozen=True):
    """How much is recorded of a repository's pact."""

    id: str
    records: int = 0


class PactMirror(Body, frozen=True, omit_defaults=True, gc=False):
    """An event stands in the file."""

    type = "pact.mirror"
    needs = May.SERVE

    key: Key
    line: Annotated[str, Meta(max_length=LONGEST_LINE)]
    digest: str


class PactArrange(Body, frozen=True, omit_defaults=True, gc=False):
    """The file has its events in another order, or fewer of them.

    From place `at` on, `drop` events give way to those in `put`; `seen` is how many records that
    was worked out from.
    """

    type = "pact.arrange"
    needs = May.SERVE

    seen: Count
    at: Count
    drop: Count
    put: Keys = ()


class Mirrored(Event, frozen=True, kw_only=True, gc=False):
    """An event of the file, as it stands there; it comes after those that were there before."""

    name = "pact.mirrored"

    key: str
    line: str
    digest: str


class Arranged(Event, frozen=True, kw_only=True, gc=False):
    """The order of the file, where that is not the order of the records."""

    name = "pact.arranged"

    at: int
    drop: int
    put: tuple[str, ...] = ()


def key_of(event_id: str) -> str:
    """By which an event is known here: its own id, in a form that is safe as a part of others."""
    return sha256(event_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def mirror_id(key: str) -> str:
    """An event is recorded once; who says it again is told what was said first (UNI-11)."""
    return f"pact-{key}"


def mirrored(mirror: Mirror, ask: Ask, body: PactMirror) -> Iterator[Fact]:
    """As it stands."""
    yield Mirrored(key=body.key, line=body.line, digest=body.digest)


def arranged(mirror: Mirror, ask: Ask, body: PactArrange) -> Iterator[Fact]:
    """Only by whoever knows all that is recorded."""
    if body.seen != mirror.records:
        detail = "More of the pact was recorded meanwhile; look again"
        raise Refused(Why.WRONG_STATE, detail, {"records": mirror.records})
    yield Arranged(at=body.at, drop=body.drop, put=body.put)


def counted(mirror: Mirror, event: Mirrored | Arranged, record: Record) -> Mirror:
    """One more."""
    return replace(mirror, records=mirror.records + 1)


DECIDE: Deciders = {PactMirror: mirrored, PactArrange: arranged, Elapsed: idle}
EVOLVE: Evolvers = {Mirrored: counted, Arranged: counted}
CONTEXT: Context[Mirror] = Context(
    name="work",
    start=lambda stream: Mirror(id=stream.removeprefix("work/")),
    decide=DECIDE,
    evolve=EVOLVE,
    # The server reads the file.
    admit=server_only("Tasks are changed by `accord pact`, in the repository"),
    state=Mirror,
)
