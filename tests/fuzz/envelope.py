"""Bytes of a client: they are a message that stays the same, or are refused with a code."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from tests.core.dialects.envelopes import PAYLOADS, wire
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

REFUSALS = {Reason.MALFORMED, Reason.UNSUPPORTED_VERSION, Reason.TOO_LARGE}
MAX_RESPONSE_BYTES = 4096
CHUNK = wire("response.chunk")


def seeds() -> Iterator[bytes]:
    """An envelope of each type, with everything it can hold."""
    for name in sorted(PAYLOADS):
        yield wire(name)
        yield wire(name, ref="r1", causal_refs=["c1", "c2"], fork="f1")


def make_runner(place: Path) -> FuzzInput:
    """Read it, and what is refused or relayed because of it."""
    return read


def read(data: bytes) -> None:
    pvp.session_and_id_of(data)
    token = pvp.token_of(data)
    assert token is None or isinstance(token, str)
    message = message_of(data)
    if message is not None:
        assert message_of(pvp.encode_relayed(message)) == message
        assert message.body.type in pvp.PRIMITIVES
    for frames in ([data, CHUNK], [CHUNK, data], [data, data]):
        pieces = pvp.decode_chunks(frames)
        assert pieces is None or list(pieces.messages()) == [message_of(each) for each in frames]


def message_of(data: bytes) -> Message | None:
    """The message, or None where it was refused as it should be."""
    refused: Refused | None = None
    try:
        message = pvp.decode(data)
        mark_reached(message.body.type)
        return message
    except Refused as no:
        refused = no
    mark_reached(refused.reason, refused.detail[:120])
    assert refused.reason in REFUSALS, refused
    assert refused.detail
    answer = pvp.encode_refusal("e", 0, "", refused)
    assert ERROR_CODES[refused.reason].pvp.encode() in answer
    assert len(answer) < MAX_RESPONSE_BYTES, "a refusal repeats what it refuses"
    assert pvp.decode(answer).body.type == "error"
    return None


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """Depth is not thought of."""
    patch.setattr(pvp, "DECODE_ERRORS", tuple(set(pvp.DECODE_ERRORS) - {RecursionError}))
