"""Identifiers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.ids import ids_by_slug, is_id, slug
from accord.core.kernel.ulid import derive_ulid, derive_ulid_after, ulid
from tests.spec import proves

instants = st.integers(0, 2**48 - 1)


@proves("PVP-4.2-3", "PVP-5.1-2")
@given(instants, st.binary(min_size=10, max_size=32))
@settings(deadline=None)
def test_an_id_is_a_ulid(at: int, entropy: bytes) -> None:
    id = ulid(at, entropy)

    assert len(id) == 26
    assert set(id) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    assert id[0] <= "7"
    assert is_id(id)


@proves("PVP-4.2-3")
@given(instants, instants, st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
@settings(deadline=None)
def test_ids_sort_by_their_instant_and_then_by_chance(
    one: int, other: int, first: bytes, second: bytes
) -> None:
    assert (ulid(one, first) < ulid(other, second)) is ((one, first) < (other, second))


def test_a_known_ulid_is_written_as_everybody_writes_it() -> None:
    assert ulid(1_469_918_176_385, b"\0" * 10) == "01ARYZ6S410000000000000000"
    assert ulid(2**48 - 1, b"\xff" * 10) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


def test_the_same_cause_at_the_same_instant_has_the_same_id() -> None:
    assert derive_ulid(5, "room/r", "m", "1") == derive_ulid(5, "room/r", "m", "1")
    assert derive_ulid(5, "room/r", "m", "1") != derive_ulid(5, "room/r", "m", "2")
    assert derive_ulid(5, "room/r", "m", "1") != derive_ulid(6, "room/r", "m", "1")


@proves("OPEN-4", "PVP-5.1-1")
@pytest.mark.parametrize("id", ["m", "msg-1", "alice's message", "x" * 128, "é", "0" * 26])
def test_any_printable_id_will_do(id: str) -> None:
    assert is_id(id)


@proves("OPEN-4")
@pytest.mark.parametrize("id", ["", "x" * 129, "a\nb", "a\x00", "\u202e"])
def test_what_cannot_be_shown_is_no_id(id: str) -> None:
    assert not is_id(id)


@proves("UNI-3")
@pytest.mark.parametrize(
    ("id", "written"),
    [("ann", "ann"), ("alice_01", "alice-01"), ("Reviewer_Agent", "reviewer-agent"), ("é", "")],
)
def test_a_foreign_id_has_one_way_to_be_written_as_a_slug(id: str, written: str) -> None:
    assert slug(id) == written


@proves("UNI-3")
def test_two_that_would_be_written_alike_are_never_taken_for_each_other() -> None:
    assert ids_by_slug(["ann", "alice_01", "Bob", "é"]) == {
        "ann": "ann",
        "alice-01": "alice_01",
        "bob": "Bob",
    }
    assert ids_by_slug(["a_b", "A-B"]) == {}
    assert ids_by_slug(["a_b", "a-b"]) == {"a-b": "a-b"}


@given(instants, st.binary(min_size=10, max_size=10), st.text(min_size=1), st.text(min_size=1))
def test_what_follows_from_the_same_is_the_same_and_sorts_as_it_does(
    at: int, entropy: bytes, cause: str, other: str
) -> None:
    id = ulid(at, entropy)

    assert derive_ulid_after(id, cause) == derive_ulid_after(id, cause)
    assert derive_ulid_after(id, cause)[:10] == id[:10]
    assert (derive_ulid_after(id, cause) == derive_ulid_after(id, other)) is (cause == other)
    assert derive_ulid_after(id, cause) != id


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_follows_from_any_id_is_a_ulid(id: str, other: str) -> None:
    made = derive_ulid_after(id, "alice")

    assert len(made) == 26
    assert set(made) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    assert made[0] <= "7"
    assert (made == derive_ulid_after(other, "alice")) is (id == other)
