"""The hash chain and what is signed of it."""

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.integrity.hash_chain import (
    SignatureCoverage,
    SignedHead,
    genesis_hash,
    link_hash,
)

rows = st.lists(st.binary(max_size=8), min_size=1, max_size=6)


def sealed(stream: str, bodies: list[bytes]) -> bytes:
    return reduce(link_hash, bodies, genesis_hash(stream))


@given(rows, rows)
@settings(deadline=None)
def test_other_rows_end_in_another_hash(some: list[bytes], others: list[bytes]) -> None:
    assert (sealed("room/r", some) == sealed("room/r", others)) is (some == others)


@given(rows)
@settings(deadline=None)
def test_the_same_rows_in_another_stream_end_in_another_hash(some: list[bytes]) -> None:
    assert sealed("room/a", some) != sealed("room/b", some)


def test_a_head_claims_everything_but_its_own_signature() -> None:
    head = SignedHead("room/r", 7, b"\x01\xff", at=5, key="k1")
    signed = SignedHead("room/r", 7, b"\x01\xff", at=5, key="k1", signature=b"s")

    assert head.signed_bytes() == signed.signed_bytes() == b"accord-head-v1\nroom/r\n7\n01ff\n5\nk1"


def test_a_head_that_counts_claims_its_count_under_another_name() -> None:
    head = SignedHead("room/r", 7, b"\x01\xff", at=5, key="k1", total=12)

    assert head.signed_bytes() == b"accord-head-v2\nroom/r\n7\n01ff\n5\nk1\n12"
    assert (SignatureCoverage(3).signed_records, SignatureCoverage(3, head).signed_records) == (
        0,
        12,
    )
