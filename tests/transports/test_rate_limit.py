"""How much a participant may send, by an injected clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Refused
from accord.settings.server.schema import ServerConfig
from accord.transports.rate_limit import CHUNK_TYPES, SHORT_MESSAGE_BYTES, STOP_TYPES, Bucket
from tests.spec import proves

MIB = 1 << 20


def sends(bucket: Bucket, kind: str, size: int, now: float) -> None:
    """One message, as every transport counts it."""
    bucket.charge_bytes(size, now)
    bucket.charge_message(kind, size)


def refused(bucket: Bucket, kind: str, size: int, now: float) -> Refused:
    with pytest.raises(Refused) as no:
        sends(bucket, kind, size, now)
    return no.value


@proves("OPEN-54", "PVP-20.5-1", "PVP-17-8")
def test_a_thousand_at_once_then_two_hundred_a_second() -> None:
    rate = ServerConfig().rate_limit
    assert rate == 200
    bucket = Bucket(rate, 0.0)
    for _ in range(1000):
        sends(bucket, "prompt.submit", 100, 0.0)

    no = refused(bucket, "prompt.submit", 100, 0.0)

    assert ERROR_CODES[no.reason].pvp == "RATE_LIMITED"
    assert no.details is not None
    assert no.details["retry_after_ms"] == 5
    for _ in range(200):
        sends(bucket, "prompt.submit", 100, 1.0)
    refused(bucket, "prompt.submit", 100, 1.0)


@proves("OPEN-54")
@pytest.mark.parametrize("kind", sorted(CHUNK_TYPES))
def test_chunks_are_counted_by_their_bytes_alone(kind: str) -> None:
    limits = Limits()
    assert (limits.stream_bytes, limits.stream_burst) == (4 * MIB, 16 * MIB)
    bucket = Bucket(200, 0.0)
    for _ in range(16 * 1024):
        sends(bucket, kind, 1024, 0.0)

    no = refused(bucket, kind, 1024, 0.0)

    assert no.details is not None
    assert no.details["limit"] == "stream_bytes"
    sends(bucket, kind, 1024, 1.0)


def state(bucket: Bucket) -> list[float]:
    return [getattr(bucket, name) for name in Bucket.__slots__]


@given(
    st.lists(st.integers(0, 9 * MIB), min_size=1, max_size=5),
    st.integers(0, 1100),
    st.floats(0, 10),
)
def test_what_is_afforded_together_would_be_taken_one_by_one(
    sizes: list[int], before: int, now: float
) -> None:
    bucket, other = Bucket(200, 0.0), Bucket(200, 0.0)
    bucket.messages_left = other.messages_left = 1000.0 - before

    if bucket.can_afford(sum(sizes), now):
        bucket.bytes_left -= sum(sizes)
        for size in sizes:
            sends(other, "response.chunk", size, now)
        assert state(bucket) == state(other)
    else:
        other.charge_bytes(0, now)
        assert other.messages_left < 1 or other.bytes_left < sum(sizes)


@proves("OPEN-45")
@pytest.mark.parametrize("kind", sorted(STOP_TYPES))
def test_a_stop_works_for_somebody_who_talks_too_much(kind: str) -> None:
    bucket = Bucket(200, 0.0)
    for _ in range(1000):
        sends(bucket, "prompt.submit", 100, 0.0)
    refused(bucket, "prompt.submit", 100, 0.0)

    for _ in range(100):
        sends(bucket, kind, SHORT_MESSAGE_BYTES, 0.0)
