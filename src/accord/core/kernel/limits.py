"""Every limit that an operator may configure, its range, and how exceeding it is refused."""

from typing import Annotated, NamedTuple, get_type_hints

from msgspec import Struct

from accord.core.kernel.refusal import Reason, Refused

KIB, MIB = 1 << 10, 1 << 20


class LimitSpec(NamedTuple):
    """The range of a limit, the reason given when it is exceeded, and its description."""

    minimum: int
    maximum: int
    reason: Reason
    description: str
    in_bytes: bool = False


class Limits(Struct, frozen=True):
    """All limits with their defaults; adding a field adds the setting."""

    message: Annotated[
        int,
        LimitSpec(
            1 * KIB, 4 * MIB, Reason.TOO_LARGE, "Maximum size of one message.", in_bytes=True
        ),
    ] = 1 * MIB
    frame: Annotated[
        int,
        LimitSpec(
            64 * KIB,
            16 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of a WebSocket frame, and of a request to `/mcp`; a larger frame closes "
            "the connection with 1009.",
            in_bytes=True,
        ),
    ] = 4 * MIB
    stream_bytes: Annotated[
        int,
        LimitSpec(
            1 * KIB,
            1024 * MIB,
            Reason.TOO_MANY,
            "Bytes per second that a participant may send on average.",
            in_bytes=True,
        ),
    ] = 4 * MIB
    stream_burst: Annotated[
        int,
        LimitSpec(
            64 * KIB,
            4096 * MIB,
            Reason.TOO_MANY,
            "Bytes that a participant may send in one burst.",
            in_bytes=True,
        ),
    ] = 16 * MIB
    backlog: Annotated[
        int,
        LimitSpec(
            64 * KIB,
            256 * MIB,
            Reason.TOO_MANY,
            "Bytes queued for one slow reader; beyond that the reader is disconnected.",
            in_bytes=True,
        ),
    ] = 8 * MIB
    unread: Annotated[
        int,
        LimitSpec(
            1 * MIB,
            4096 * MIB,
            Reason.TOO_MANY,
            "Bytes queued for all readers together; beyond that the slowest is disconnected.",
            in_bytes=True,
        ),
    ] = 256 * MIB
    stall_seconds: Annotated[
        int,
        LimitSpec(
            1,
            3600,
            Reason.TIMED_OUT,
            "Seconds without progress in reading an HTTP response; after that the reader is "
            "disconnected.",
        ),
    ] = 30
    body_seconds: Annotated[
        int, LimitSpec(1, 3600, Reason.TIMED_OUT, "Seconds in which a request body must arrive.")
    ] = 30
    queue: Annotated[
        int,
        LimitSpec(
            1,
            1_000_000,
            Reason.TOO_MANY,
            "Messages queued while a session is being loaded from the store.",
        ),
    ] = 10_000
    unstored_session: Annotated[
        int,
        LimitSpec(
            64 * KIB,
            1024 * MIB,
            Reason.TOO_MANY,
            "Bytes of one session that are waiting to be stored.",
            in_bytes=True,
        ),
    ] = 64 * MIB
    unstored: Annotated[
        int,
        LimitSpec(
            64 * KIB,
            4096 * MIB,
            Reason.TOO_MANY,
            "Bytes of all sessions that are waiting to be stored.",
            in_bytes=True,
        ),
    ] = 256 * MIB
    connections: Annotated[int, LimitSpec(1, 100_000, Reason.TOO_MANY, "Connections in total.")] = (
        4096
    )
    strangers: Annotated[
        int,
        LimitSpec(
            1,
            100_000,
            Reason.TOO_MANY,
            "Connections that have not authenticated; beyond that the oldest are closed.",
        ),
    ] = 256
    connections_per_principal: Annotated[
        int, LimitSpec(1, 10_000, Reason.TOO_MANY, "WebSocket connections per principal.")
    ] = 64
    polls: Annotated[
        int,
        LimitSpec(
            1,
            100_000,
            Reason.TOO_MANY,
            "Long polls in progress; the same number of event streams is allowed in addition.",
        ),
    ] = 1024
    polls_per_principal: Annotated[
        int,
        LimitSpec(
            1,
            10_000,
            Reason.TOO_MANY,
            "Long polls per principal; the same number of event streams is allowed in addition.",
        ),
    ] = 16
    sessions: Annotated[
        int, LimitSpec(1, 1_000_000, Reason.TOO_MANY, "Open sessions per workspace.")
    ] = 10_000
    sessions_per_principal: Annotated[
        int, LimitSpec(1, 1_000_000, Reason.TOO_MANY, "Open sessions per principal.")
    ] = 1000
    head: Annotated[
        int,
        LimitSpec(
            1 * KIB,
            1 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of the request line and headers of an HTTP request.",
            in_bytes=True,
        ),
    ] = 32 * KIB
    body: Annotated[
        int,
        LimitSpec(
            1 * KIB,
            1 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of the body of a request to /admin.",
            in_bytes=True,
        ),
    ] = 64 * KIB
    participants: Annotated[
        int,
        LimitSpec(
            1,
            10_000,
            Reason.FULL,
            "Members of one session at a time, regardless of the session's own settings.",
        ),
    ] = 1000
    seats: Annotated[
        int,
        LimitSpec(1, 1_000_000, Reason.FULL, "People and agents that may ever join one session."),
    ] = 10_000
    metadata: Annotated[
        int,
        LimitSpec(
            1,
            1 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of the metadata that a participant may announce.",
            in_bytes=True,
        ),
    ] = 16 * KIB
    tools: Annotated[
        int,
        LimitSpec(1, 100_000, Reason.WRONG_STATE, "Unfinished tool proposals per session."),
    ] = 1000
    gates: Annotated[int, LimitSpec(1, 100_000, Reason.WRONG_STATE, "Open gates per session.")] = (
        1000
    )
    streams: Annotated[
        int,
        LimitSpec(
            1, 100_000, Reason.WRONG_STATE, "Unfinished responses and thinking streams per session."
        ),
    ] = 1000
    secrets: Annotated[
        int,
        LimitSpec(1, 10_000, Reason.WRONG_STATE, "Secrets shared at a time per session."),
    ] = 256
    forks: Annotated[
        int, LimitSpec(1, 10_000, Reason.WRONG_STATE, "Forks per session over its whole life.")
    ] = 256
    context_item: Annotated[
        int,
        LimitSpec(
            1,
            1 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of the inline content of one context item.",
            in_bytes=True,
        ),
    ] = 1 * MIB
    context: Annotated[
        int,
        LimitSpec(
            1,
            1024 * MIB,
            Reason.TOO_LARGE,
            "Bytes of context in one session over all open forks, including keys and tags.",
            in_bytes=True,
        ),
    ] = 16 * MIB
    context_kept: Annotated[
        int,
        LimitSpec(
            1,
            4096 * MIB,
            Reason.TOO_LARGE,
            "Bytes of context in one session including merged forks, which are read-only.",
            in_bytes=True,
        ),
    ] = 64 * MIB
    pact_log: Annotated[
        int,
        LimitSpec(
            64 * MIB,
            4096 * MIB,
            Reason.TOO_LARGE,
            "Maximum size of the ledger of a pact; a larger one is not read.",
            in_bytes=True,
        ),
    ] = 64 * MIB
    thread_posts: Annotated[
        int,
        LimitSpec(
            1,
            1_000_000,
            Reason.TOO_MANY,
            "Messages per minute that an agent may post in threads; retries do not count.",
        ),
    ] = 60
    idempotency_seconds: Annotated[
        int,
        LimitSpec(
            60,
            31_536_000,
            Reason.KEY_REUSED,
            "Seconds for which the idempotency key of a thread method is remembered.",
        ),
    ] = 86_400


class Limit(NamedTuple):
    """One limit with its name and default."""

    name: str
    default: int
    spec: LimitSpec


def _limit_table() -> dict[str, Limit]:
    hints, defaults = get_type_hints(Limits, include_extras=True), Limits()
    return {
        name: Limit(name, getattr(defaults, name), hints[name].__metadata__[0])
        for name in Limits.__struct_fields__
    }


LIMITS = _limit_table()


def limit_exceeded(name: str, maximum: int, sentence: str, **more: object) -> Refused:
    """A refusal whose details carry the name and value of the limit."""
    return Refused(LIMITS[name].spec.reason, sentence, {"limit": name, "most": maximum, **more})
