"""The shelf: what is put there, and by whom."""

import json
from hashlib import sha256
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import pvp
from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.content import content_hash
from accord.core.room.state import ContentRef, Item, Room
from tests.core.dialects.wire import QUICK, json_values
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    T0,
    given,
    joined,
    opened,
    refused,
    step,
    when,
)
from tests.helpers.shelf import adds, item, ref, removes, some_room, updates
from tests.spec import proves


@proves("PVP-9.1-1", "PVP-9.1-4")
def test_what_is_put_there_is_kept_as_it_was_given() -> None:
    body = adds({"a": [1]}, "carol", content_ref=ref(b'{"a":[1]}'), source="wiki", tags=("x", "y"))

    room = some_room(step(BOB, body, id="added"))

    kept = item(room)
    assert kept == Item(
        key="k",
        content_type="structured",
        content={"a": [1]},
        content_ref=ref(b'{"a":[1]}'),
        visible_to=frozenset({"carol"}),
        author="bob",
        source="wiki",
        tags=("x", "y"),
        changed=kept.changed,
        announced="added",
    )
    assert msgspec.json.decode(msgspec.json.encode(room), type=Room) == room


@proves("PVP-9.1-3", "OPEN-39")
def test_there_must_be_something_to_put() -> None:
    with refused(Why.MALFORMED, "content or content_ref"):
        when(some_room(), BOB, adds(None))
    assert when(some_room(), BOB, adds(""))
    assert when(some_room(), BOB, adds({}))


@proves("PVP-9.2-1", "OPEN-40")
@pytest.mark.parametrize("storage", ["inline", "local", "s3", "ipfs"])
def test_what_lies_elsewhere_is_known_by_its_reference_and_never_fetched(storage: Any) -> None:
    elsewhere = ContentRef("ab" * 32, 1 << 40, "text/plain", storage, "http://169.254.169.254/")

    room = some_room(step(BOB, adds(None, content_ref=elsewhere)))

    assert (item(room).content, item(room).content_ref) == (None, elsewhere)


@proves("PVP-5.2-1", "PVP-5.2-2", "OPEN-39", "OPEN-40")
@pytest.mark.parametrize(
    ("content", "hashed"),
    [
        ("", b""),
        ("ö\r\n", "ö\r\n".encode()),
        ({"b": 1, "a": "ö"}, '{"a":"ö","b":1}'.encode()),
        ({"b": 1, "a": "ö"}, '{"b":1,"a":"ö"}'.encode()),
        ({"n": 1e21}, b'{"n":1e+21}'),
        ({"n": 2**60}, b'{"n":1152921504606846976}'),
    ],
)
def test_content_and_reference_go_together_if_the_hash_is_right(
    content: Any, hashed: bytes
) -> None:
    assert when(some_room(), BOB, adds(content, content_ref=ref(hashed)))


@proves("PVP-5.2-1", "PVP-5.2-2", "OPEN-39", "OPEN-40")
@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("a", ref(b"b")),
        ("a", ref(hash=sha256(b"a").hexdigest().upper())),
        ("a", ref(hash="sha256:" + sha256(b"a").hexdigest())),
        ("a", ref(b'"a"')),
        ({"a": 1}, ref(b'{"a": 1}')),
        ({"n": 2**60}, ref(b"{}")),
    ],
)
def test_a_reference_to_something_else_is_refused(content: Any, wrong: ContentRef) -> None:
    with refused(Why.MALFORMED):
        when(some_room(), BOB, adds(content, content_ref=wrong))


@proves("OPEN-40")
@QUICK
@for_all(st.dictionaries(st.text(), json_values, max_size=4), st.randoms())
def test_the_order_of_keys_does_not_change_a_hash(content: dict[str, Any], random: Any) -> None:
    keys = list(content)
    random.shuffle(keys)
    other = {key: content[key] for key in keys}

    def hashed(each: dict[str, Any]) -> str | Why:
        try:
            return content_hash(each)
        except Refused as no:
            return no.why

    assert hashed(content) == hashed(other)
    assert hashed(content) in (Why.MALFORMED, sha256(canonical(content)).hexdigest())
    given_order = ref(msgspec.json.encode(content))
    assert when(some_room(), BOB, adds(content, content_ref=given_order))


def canonical(content: dict[str, Any]) -> bytes:
    """The form of RFC 8785, or nothing where there is none."""
    try:
        return rfc8785.dumps(content)
    except rfc8785.CanonicalizationError:
        return b""


@proves("OPEN-39", "PVP-9.1-4")
def test_an_empty_list_is_not_everybody() -> None:
    whole = json.loads(pvp.told("m", T0, "r", adds()))
    whole["payload"]["visible_to"] = []

    with refused(Why.MALFORMED, "visible_to"):
        pvp.decode(json.dumps(whole).encode())


@proves("OPEN-39", "PVP-9.1-1")
def test_its_author_may_put_it_there_anew() -> None:
    room = some_room(
        step(BOB, adds("old", "carol", tags=("t",)), id="one"), step(BOB, adds("new"), id="two")
    )

    again = item(room)

    assert (again.content, again.visible_to, again.tags) == ("new", None, ())
    assert (again.announced, len(room.shelf[""])) == ("two", 1)


@proves("OPEN-39")
def test_others_may_not_and_learn_whose_it_is_only_if_they_see_it() -> None:
    room = some_room(step(BOB, adds("old", "carol")))

    with refused(Why.WRONG_STATE, "^k is bob's; update it, or choose another key$"):
        when(room, CAROL, adds())
    for who in (ALICE, CLAUDE):
        with refused(Why.WRONG_STATE, "^k is taken; choose another key$"):
            when(room, who, adds())


@proves("OPEN-10")
def test_an_observer_adds_nothing_unless_given_that_right() -> None:
    room = some_room(step(BOB, adds()))
    for body in (adds(key="other"), updates(), removes()):
        with refused(Why.FORBIDDEN, "add context"):
            when(room, DAVE, body)

    able = given(opened(), joined(DAVE, Role.OBSERVER, capabilities=(Capability.ADD_CONTEXT,)))

    assert when(able, DAVE, adds())
