"""The published schema accepts what the decoder accepts, and nothing else."""

import json
from datetime import UTC, datetime
from typing import Any
from unicodedata import category

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, settings
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import asyncapi, pvp, pvp_schema
from accord.core.dialects.stored_records import EVENTS, encode_record
from accord.core.kernel.ids import INVISIBLE_CHARACTERS, is_visible
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import BOUNDARY_YEARS, TIMESTAMP_PATTERN, is_iso
from tests.core.dialects.envelopes import PAYLOADS, envelope, json_values, messages, records
from tests.spec import proves

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
WHOLE = json.loads(pvp_schema.document())
CLIENTS = jsonschema_rs.validator_for(WHOLE)
SERVERS = jsonschema_rs.validator_for({**WHOLE, "oneOf": [pvp_schema.ref(pvp_schema.RECEIVED_DEF)]})


def decodes(value: Any) -> bool:
    """Whether the decoder takes this value."""
    try:
        pvp.decode(json.dumps(value).encode())
    except Refused:
        return False
    return True


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, itself included."""
    inner: Any = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [path, *(each for key, part in inner for each in places(part, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at that place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def drop(value: Any, path: tuple[Any, ...]) -> Any:
    """The value without what is at that place."""
    copy = value.copy()
    if len(path) > 1:
        copy[path[0]] = drop(value[path[0]], path[1:])
    else:
        del copy[path[0]]
    return copy


def spelled(value: Any) -> Any:
    """Whole numbers as one writes them: to a schema 1.0 is 1, to the decoder it is not."""
    match value:
        case dict():
            return {key: spelled(each) for key, each in value.items()}
        case list():
            return [spelled(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


texts = st.sampled_from(
    ["", "a", "a" * 128, "a" * 129, "a" * 4097, "any", "all", "x\u202ey", "ö\n", "🙂"]
)
oddities: st.SearchStrategy[Any] = (
    texts | json_values | st.sampled_from([-1, 0, 1, 2, 1 << 53, (1 << 53) + 1, [], {}, None])
)


@st.composite
def tampered(draw: st.DrawFn, name: str) -> Any:
    """An envelope of this type, with up to three things wrong, or none."""
    drawn = draw(
        st.just(envelope(name)) | messages(pvp.BODIES[name]).map(pvp.encode_relayed).map(json.loads)
    )
    value: Any = drawn
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(places(value)))
        if path and draw(st.booleans()):
            value = drop(value, path)
        else:
            value = put(value, path, draw(oddities))
        if not isinstance(value, dict | list):
            break
    return spelled(value)


@proves("PVP-4.1-7", "UNI-7")
@pytest.mark.parametrize("name", sorted(pvp.BODIES))
def test_the_schema_accepts_exactly_what_the_decoder_accepts(name: str) -> None:
    @SOME
    @for_all(tampered(name))
    def agree(value: Any) -> None:
        assert CLIENTS.is_valid(value) == decodes(value), value

    agree()


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_a_full_message_of_every_type_is_valid_and_is_not_with_anything_missing(name: str) -> None:
    whole = envelope(name)
    assert CLIENTS.is_valid(whole)
    for path in places(whole):
        if path:
            less = drop(whole, path)
            assert CLIENTS.is_valid(less) == decodes(less), path


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_whatever_the_server_sends_is_as_the_schema_says(name: str) -> None:
    @SOME
    @for_all(records(EVENTS[name]))
    def fits(record: Any) -> None:
        frame = encode_record(record).frame
        assert frame is None or SERVERS.is_valid(json.loads(frame))

    fits()


@pytest.mark.parametrize("why", list(Reason))
def test_every_refusal_is_as_the_schema_says(why: Reason) -> None:
    said = pvp.encode_refusal("1", 0, "s", Refused(why, "No", {"limit": 1}), "m")
    assert SERVERS.is_valid(json.loads(said))
    assert not SERVERS.is_valid(json.loads(said) | {"payload": {}})


def test_two_readings_of_json_schema_agree_on_it() -> None:
    jsonschema.Draft202012Validator.check_schema(WHOLE)
    other = jsonschema.Draft202012Validator(WHOLE)
    for name in sorted(PAYLOADS):
        assert other.is_valid(envelope(name))
        assert not other.is_valid(envelope(name, id="a\u202eb"))


def test_no_sentence_of_it_needs_another_document() -> None:
    assert not [text for text in sentences(WHOLE) if "OPEN-" in text or "UNI-" in text]


def sentences(part: Any) -> list[str]:
    """Every description in it."""
    if isinstance(part, list):
        return [text for each in part for text in sentences(each)]
    if not isinstance(part, dict):
        return []
    own = [part["description"]] if isinstance(part.get("description"), str) else []
    return own + [text for each in part.values() for text in sentences(each)]


def test_what_cannot_be_seen_is_what_python_cannot_print() -> None:
    unseen = jsonschema_rs.validator_for({"not": {"pattern": INVISIBLE_CHARACTERS}})
    for letter in map(chr, range(0x110000)):
        if category(letter) not in {"Cs", "Cn"}:  # what is not assigned yet may be tomorrow
            assert is_visible(letter) == letter.isprintable(), hex(ord(letter))
    for letter in map(chr, [*range(0x3000), 0xE000, 0xFEFF, 0xFFFD, 0x110BD, 0x1F600, 0x10FFFF]):
        assert unseen.is_valid(f"a{letter}b") == is_visible(letter), hex(ord(letter))


@for_all(
    st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[012][0-9]:[0-6]0:[0-6]0(Z|\+0[0-9]:00)\Z")
)
@example("2000-02-29T00:00:00Z")
@example("1900-02-29T00:00:00Z")
@example("2026-02-29T00:00:00Z")
@example("9999-12-31T00:00:00Z")
@example("9999-12-31T00:00:00+01:00")
def test_a_timestamp_is_one_for_the_standard_library_as_well(text: str) -> None:
    try:
        real = bool(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):
        real = False
    strays = text[:4] in BOUNDARY_YEARS and not text.endswith("Z")
    assert is_iso(text) == (real and not strays)
    assert jsonschema_rs.is_valid({"pattern": TIMESTAMP_PATTERN}, text) == is_iso(text)


def test_every_pointer_of_the_channels_leads_somewhere() -> None:
    channels = json.loads(asyncapi.document("1"))
    for pointer in pointers(channels):
        path, _, inside = pointer.partition("#/")
        place: Any = WHOLE if path == pvp_schema.PATH else channels
        for step in inside.split("/"):
            place = place[step]
        assert place


def pointers(part: Any) -> list[str]:
    """Every `$ref` in it."""
    if isinstance(part, list):
        return [each for inner in part for each in pointers(inner)]
    if not isinstance(part, dict):
        return []
    own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    return own + [each for inner in part.values() for each in pointers(inner)]


def test_every_type_a_client_may_send_is_on_the_channels() -> None:
    channels = json.loads(asyncapi.document("1"))
    names = {each["name"] for each in channels["components"]["messages"].values()}
    assert names == {*pvp.BODIES, "envelope"}
