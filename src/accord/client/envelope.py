"""Envelopes as a client reads and writes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from accord.core.dialects import pvp
from accord.core.kernel.log import Body
from accord.core.room.notices import ErrorReport

from .errors import ServerRefused

# The server answers a message that is too large, but closes the connection on such a frame.
LARGEST_FRAME = 4 << 20


class Head(Struct, frozen=True, gc=False):
    """An envelope whose payload is still bytes; unknown fields pass by."""

    id: str
    session: str
    sender: str
    type: str
    ts: str = ""
    payload: Raw = Raw(b"{}")
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


class Envelope(Struct, frozen=True):
    """A message as it was said: who, where, when in the order of things, and what."""

    id: str
    ts: str
    session: str
    sender: str
    body: Body
    ref: str | None = None
    seq: int = 0
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None

    @property
    def type(self) -> str:
        """The name of what was said, as on the wire."""
        return self.body.type


class Links(NamedTuple):
    """What a message refers to: one it answers, those that led to it, and the fork it is in."""

    ref: str | None = None
    causal_refs: tuple[str, ...] = ()
    fork: str | None = None


UNLINKED = Links()


class Letter(Struct, frozen=True):
    """A message ready to be sent, any number of times, with one effect (OPEN-36)."""

    id: str
    session: str
    body: Body
    text: str


_head = Decoder(Head).decode
_problem = Decoder(pvp.Problem).decode


def head(data: bytes) -> Head | None:
    """What came in, or None where it is no envelope."""
    try:
        return _head(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def typed(head: Head) -> Envelope | None:
    """The envelope with its payload, or None for what this client does not know (OPEN-2)."""
    decoder = _BODIES.get(head.type)
    if decoder is None:
        return None
    try:
        body = decoder(head.payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return Envelope(
        head.id,
        head.ts,
        head.session,
        head.sender,
        body,
        head.ref,
        head.seq,
        head.causal_refs,
        head.fork,
    )


def error(payload: Raw) -> ErrorReport:
    """An error with any code: a newer server may have more of them than we know."""
    problem = _problem(payload)
    return ErrorReport(
        code=problem.code,  # type: ignore[arg-type]  # perhaps not one of ours
        message=problem.message,
        recoverable=problem.recoverable,
        details=dict(problem.details) if problem.details else None,
        related_to=problem.related_to,
    )


_BODIES: dict[str, Callable[[Raw], Any]] = {
    **{name: Decoder(body).decode for name, body in pvp.BODIES.items()},
    ErrorReport.type: error,
}


def letter(
    id: str,
    ts: str,
    session: str,
    sender: str,
    body: Body,
    links: Links = UNLINKED,
) -> Letter:
    """A message in its envelope."""
    sent = pvp.Sent(
        pvp.VERSION,
        id,
        ts,
        session,
        sender,
        body.type,
        body,
        links.ref,
        0,
        links.causal_refs,
        links.fork,
    )
    data = pvp.encode(sent)
    if len(data) > LARGEST_FRAME:
        limit = f"A message may have {pvp.LARGEST_MESSAGE} bytes; this one has {len(data)}"
        raise ServerRefused("CONTEXT_TOO_LARGE", limit, details={"limit": pvp.LARGEST_MESSAGE})
    return Letter(id, session, body, data.decode())
