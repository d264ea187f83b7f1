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
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.shared_context.item_content import content_hash
from accord.core.room.state import ContentRef, ContextItem, Room
from tests.core.dialects.envelopes import QUICK, json_values
from tests.helpers.room.context_scenarios import (
    context_add,
    context_item,
    context_remove,
    context_update,
    make_content_ref,
    room_with_observer,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    T0,
    create_step,
    expect_refusal,
    given,
    join_step,
    script_step,
    when,
)
from tests.spec import proves


@proves("PVP-9.1-1", "PVP-9.1-4")
def test_what_is_put_there_is_kept_as_it_was_given() -> None:
    body = context_add(
        {"a": [1]},
        "carol",
        content_ref=make_content_ref(b'{"a":[1]}'),
        source="wiki",
        tags=("x", "y"),
    )

    room = room_with_observer(script_step(BOB, body, id="added"))

    kept = context_item(room)
    assert kept == ContextItem(
        key="k",
        content_type="structured",
        content={"a": [1]},
        content_ref=make_content_ref(b'{"a":[1]}'),
        visible_to=frozenset({"carol"}),
        author="bob",
        source="wiki",
        tags=("x", "y"),
        changed=kept.changed,
        announced="added",
    )
    assert msgspec.json.decode(msgspec.json.encode(room), type=Room) == room


@proves("PVP-9.1-3", "OPEN-39")
def test_context_add_requires_content_or_reference() -> None:
    with expect_refusal(Reason.MALFORMED, "content or content_ref"):
        when(room_with_observer(), BOB, context_add(None))
    assert when(room_with_observer(), BOB, context_add(""))
    assert when(room_with_observer(), BOB, context_add({}))


@proves("PVP-9.2-1", "OPEN-40")
@pytest.mark.parametrize("storage", ["inline", "local", "s3", "ipfs"])
def test_what_lies_elsewhere_is_known_by_its_reference_and_never_fetched(storage: Any) -> None:
    elsewhere = ContentRef("ab" * 32, 1 << 40, "text/plain", storage, "http://169.254.169.254/")

    room = room_with_observer(script_step(BOB, context_add(None, content_ref=elsewhere)))

    assert (context_item(room).content, context_item(room).content_ref) == (None, elsewhere)


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
    assert when(
        room_with_observer(), BOB, context_add(content, content_ref=make_content_ref(hashed))
    )


@proves("PVP-5.2-1", "PVP-5.2-2", "OPEN-39", "OPEN-40")
@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("a", make_content_ref(b"b")),
        ("a", make_content_ref(hash=sha256(b"a").hexdigest().upper())),
        ("a", make_content_ref(hash="sha256:" + sha256(b"a").hexdigest())),
        ("a", make_content_ref(b'"a"')),
        ({"a": 1}, make_content_ref(b'{"a": 1}')),
        ({"n": 2**60}, make_content_ref(b"{}")),
    ],
)
def test_a_reference_to_something_else_is_refused(content: Any, wrong: ContentRef) -> None:
    with expect_refusal(Reason.MALFORMED):
        when(room_with_observer(), BOB, context_add(content, content_ref=wrong))


@proves("OPEN-40")
@QUICK
@for_all(st.dictionaries(st.text(), json_values, max_size=4), st.randoms())
def test_the_order_of_keys_does_not_change_a_hash(content: dict[str, Any], random: Any) -> None:
    keys = list(content)
    random.shuffle(keys)
    other = {key: content[key] for key in keys}

    def hashed(each: dict[str, Any]) -> str | Reason:
        try:
            return content_hash(each)
        except Refused as no:
            return no.reason

    assert hashed(content) == hashed(other)
    assert hashed(content) in (Reason.MALFORMED, sha256(canonical(content)).hexdigest())
    given_order = make_content_ref(msgspec.json.encode(content))
    assert when(room_with_observer(), BOB, context_add(content, content_ref=given_order))


def canonical(content: dict[str, Any]) -> bytes:
    """The form of RFC 8785, or nothing where there is none."""
    try:
        return rfc8785.dumps(content)
    except rfc8785.CanonicalizationError:
        return b""


@proves("OPEN-39", "PVP-9.1-4")
def test_empty_visible_to_is_malformed() -> None:
    whole = json.loads(pvp.encode_notice("m", T0, "r", context_add()))
    whole["payload"]["visible_to"] = []

    with expect_refusal(Reason.MALFORMED, "visible_to"):
        pvp.decode(json.dumps(whole).encode())


@proves("OPEN-39", "PVP-9.1-1")
def test_its_author_may_put_it_there_anew() -> None:
    room = room_with_observer(
        script_step(BOB, context_add("old", "carol", tags=("t",)), id="one"),
        script_step(BOB, context_add("new"), id="two"),
    )

    again = context_item(room)

    assert (again.content, again.visible_to, again.tags) == ("new", None, ())
    assert (again.announced, len(room.shelf[""])) == ("two", 1)


@proves("OPEN-39")
def test_others_may_not_and_learn_whose_it_is_only_if_they_see_it() -> None:
    room = room_with_observer(script_step(BOB, context_add("old", "carol")))

    with expect_refusal(Reason.WRONG_STATE, "^k is taken by bob; update it or choose another key$"):
        when(room, CAROL, context_add())
    for who in (ALICE, CLAUDE):
        with expect_refusal(Reason.WRONG_STATE, "^k is already taken; choose another key$"):
            when(room, who, context_add())


@proves("OPEN-10")
def test_an_observer_adds_nothing_unless_given_that_right() -> None:
    room = room_with_observer(script_step(BOB, context_add()))
    for body in (context_add(key="other"), context_update(), context_remove()):
        with expect_refusal(Reason.FORBIDDEN, "add context"):
            when(room, DAVE, body)

    able = given(
        create_step(), join_step(DAVE, Role.OBSERVER, capabilities=(Capability.ADD_CONTEXT,))
    )

    assert when(able, DAVE, context_add())
