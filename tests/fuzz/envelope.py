"""Bytes of a client: they are a message that stays the same, or are refused with a code."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.codes import CODES
from accord.core.kernel.log import Message
from accord.core.kernel.refusal import Refused, Why
from tests.core.dialects.wire import PAYLOADS, wire
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

REFUSALS = {Why.MALFORMED, Why.VERSION, Why.TOO_LARGE}
LONGEST_ANSWER = 4096
PIECE = wire("response.chunk")


def seeds() -> Iterator[bytes]:
    """An envelope of each type, with everything it can hold."""
    for name in sorted(PAYLOADS):
        yield wire(name)
        yield wire(name, ref="r1", causal_refs=["c1", "c2"], fork="f1")


def trial(place: Path) -> Trial:
    """Read it, and what is refused or relayed because of it."""
    return read


def read(data: bytes) -> None:
    pvp.gist(data)
    token = pvp.token_of(data)
    assert token is None or isinstance(token, str)
    message = message_of(data)
    if message is not None:
        assert message_of(pvp.relayed(message)) == message
        assert message.body.type in pvp.PRIMITIVES
    for frames in ([data, PIECE], [PIECE, data], [data, data]):
        pieces = pvp.pieces(frames)
        assert pieces is None or list(pieces.each()) == [message_of(each) for each in frames]


def message_of(data: bytes) -> Message | None:
    """The message, or None where it was refused as it should be."""
    refused: Refused | None = None
    try:
        message = pvp.decode(data)
        reached(message.body.type)
        return message
    except Refused as no:
        refused = no
    reached(refused.why, refused.detail[:120])
    assert refused.why in REFUSALS, refused
    assert refused.detail
    answer = pvp.refusal("e", 0, "", refused)
    assert CODES[refused.why].pvp.encode() in answer
    assert len(answer) < LONGEST_ANSWER, "a refusal repeats what it refuses"
    assert pvp.decode(answer).body.type == "error"
    return None


def plant(patch: pytest.MonkeyPatch) -> None:
    """Depth is not thought of."""
    patch.setattr(pvp, "Mistakes", tuple(set(pvp.Mistakes) - {RecursionError}))
