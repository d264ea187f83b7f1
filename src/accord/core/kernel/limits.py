"""How much is too much: every bound that an operator may move, and what happens past it."""

from typing import Annotated, NamedTuple, get_type_hints

from msgspec import Struct

from accord.core.kernel.refusal import Refused, Why

KIB, MIB = 1 << 10, 1 << 20


class Bound(NamedTuple):
    """What a limit may be set to, how going past it is refused, and what it is about."""

    least: int
    most: int
    why: Why
    says: str
    bytes: bool = False


class Limits(Struct, frozen=True):
    """The table. A new limit is a new row here."""

    message: Annotated[
        int, Bound(1 * KIB, 4 * MIB, Why.TOO_LARGE, "Bytes that one message may have.", bytes=True)
    ] = 1 * MIB
    frame: Annotated[
        int,
        Bound(
            64 * KIB,
            16 * MIB,
            Why.TOO_LARGE,
            "Bytes of a WebSocket frame; past it the connection ends with 1009.",
            bytes=True,
        ),
    ] = 4 * MIB
    stream_bytes: Annotated[
        int,
        Bound(
            1 * KIB,
            1024 * MIB,
            Why.TOO_MANY,
            "Bytes a second that a participant may send.",
            bytes=True,
        ),
    ] = 4 * MIB
    stream_burst: Annotated[
        int,
        Bound(
            64 * KIB,
            4096 * MIB,
            Why.TOO_MANY,
            "Bytes that a participant may send at once.",
            bytes=True,
        ),
    ] = 16 * MIB
    backlog: Annotated[
        int,
        Bound(
            64 * KIB,
            256 * MIB,
            Why.TOO_MANY,
            "Bytes that wait for one reader; past it the reader is cut off.",
            bytes=True,
        ),
    ] = 8 * MIB
    unread: Annotated[
        int,
        Bound(
            1 * MIB,
            4096 * MIB,
            Why.TOO_MANY,
            "Bytes that wait for the readers of all connections; who reads least is cut off.",
            bytes=True,
        ),
    ] = 256 * MIB
    stall_seconds: Annotated[
        int,
        Bound(
            1,
            3600,
            Why.LATE,
            "Seconds in which something of an answer over HTTP is read; past it the reader is cut "
            "off.",
        ),
    ] = 30
    body_seconds: Annotated[
        int, Bound(1, 3600, Why.LATE, "Seconds in which the body of a request is here.")
    ] = 30
    queue: Annotated[
        int,
        Bound(
            1,
            1_000_000,
            Why.TOO_MANY,
            "Messages that wait while a session is being read from the store.",
        ),
    ] = 10_000
    unstored_session: Annotated[
        int,
        Bound(
            64 * KIB,
            1024 * MIB,
            Why.TOO_MANY,
            "Bytes of one session that wait for the store.",
            bytes=True,
        ),
    ] = 64 * MIB
    unstored: Annotated[
        int,
        Bound(
            64 * KIB,
            4096 * MIB,
            Why.TOO_MANY,
            "Bytes of all sessions that wait for the store.",
            bytes=True,
        ),
    ] = 256 * MIB
    connections: Annotated[int, Bound(1, 100_000, Why.TOO_MANY, "Connections in all.")] = 4096
    strangers: Annotated[
        int,
        Bound(
            1,
            100_000,
            Why.TOO_MANY,
            "Connections that show no identity; the longest waiting give way.",
        ),
    ] = 256
    connections_per_principal: Annotated[
        int, Bound(1, 10_000, Why.TOO_MANY, "WebSocket connections of one principal.")
    ] = 64
    polls: Annotated[
        int,
        Bound(
            1,
            100_000,
            Why.TOO_MANY,
            "Requests that wait for messages, and as many streams of events.",
        ),
    ] = 1024
    polls_per_principal: Annotated[
        int, Bound(1, 10_000, Why.TOO_MANY, "The same for one principal.")
    ] = 16
    sessions: Annotated[
        int, Bound(1, 1_000_000, Why.TOO_MANY, "Sessions that one workspace may have open.")
    ] = 10_000
    sessions_per_principal: Annotated[
        int, Bound(1, 1_000_000, Why.TOO_MANY, "Sessions that one principal may have open.")
    ] = 1000
    head: Annotated[
        int,
        Bound(1 * KIB, 1 * MIB, Why.TOO_LARGE, "Bytes of the head of an HTTP request.", bytes=True),
    ] = 32 * KIB
    body: Annotated[
        int,
        Bound(
            1 * KIB, 1 * MIB, Why.TOO_LARGE, "Bytes of the body of a request to /admin.", bytes=True
        ),
    ] = 64 * KIB
    participants: Annotated[
        int,
        Bound(
            1,
            10_000,
            Why.FULL,
            "Members that one session may have at once, whatever its own rules say.",
        ),
    ] = 1000
    seats: Annotated[
        int,
        Bound(1, 1_000_000, Why.FULL, "People and agents that may ever have been in one session."),
    ] = 10_000
    metadata: Annotated[
        int,
        Bound(
            1,
            1 * MIB,
            Why.TOO_LARGE,
            "Bytes of metadata that a participant may tell of itself.",
            bytes=True,
        ),
    ] = 16 * KIB
    tools: Annotated[
        int, Bound(1, 100_000, Why.WRONG_STATE, "Proposals that may be unfinished in one session.")
    ] = 1000
    gates: Annotated[
        int, Bound(1, 100_000, Why.WRONG_STATE, "Gates that may be open in one session.")
    ] = 1000
    streams: Annotated[
        int, Bound(1, 100_000, Why.WRONG_STATE, "Answers and thoughts under way in one session.")
    ] = 1000
    secrets: Annotated[
        int, Bound(1, 10_000, Why.WRONG_STATE, "Secrets that may be shared at once in one session.")
    ] = 256
    forks: Annotated[
        int, Bound(1, 10_000, Why.WRONG_STATE, "Forks that one session may ever have.")
    ] = 256
    context_item: Annotated[
        int,
        Bound(
            1,
            1 * MIB,
            Why.TOO_LARGE,
            "Bytes of inline content that one item of context may have.",
            bytes=True,
        ),
    ] = 1 * MIB
    context: Annotated[
        int,
        Bound(
            1,
            1024 * MIB,
            Why.TOO_LARGE,
            "Bytes of context in one session over all its open forks, keys and tags included.",
            bytes=True,
        ),
    ] = 16 * MIB
    context_kept: Annotated[
        int,
        Bound(
            1,
            4096 * MIB,
            Why.TOO_LARGE,
            "The same with what lies in merged forks, which can only be read.",
            bytes=True,
        ),
    ] = 64 * MIB
    pact_log: Annotated[
        int,
        Bound(
            64 * MIB,
            4096 * MIB,
            Why.TOO_LARGE,
            "Bytes that the log of a pact may have; past it no verb and no server reads it.",
            bytes=True,
        ),
    ] = 64 * MIB


class Limit(NamedTuple):
    """A row of the table, with its name and what is usual."""

    name: str
    usual: int
    bound: Bound


def _rows() -> dict[str, Limit]:
    hints, usual = get_type_hints(Limits, include_extras=True), Limits()
    return {
        name: Limit(name, getattr(usual, name), hints[name].__metadata__[0])
        for name in Limits.__struct_fields__
    }


LIMITS = _rows()


def reached(name: str, most: int, sentence: str, **more: object) -> Refused:
    """The refusal of whatever would go past a limit, which it names."""
    return Refused(LIMITS[name].bound.why, sentence, {"limit": name, "most": most, **more})
