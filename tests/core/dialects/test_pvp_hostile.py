"""Bytes that mean harm: they are refused, and nothing else happens."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import pvp
from accord.core.dialects.nesting import MAX_NESTING_DEPTH
from accord.core.kernel.refusal import Reason, Refused
from tests.core.dialects.envelopes import PAYLOADS, QUICK, envelope, json_values, wire, with_payload
from tests.helpers.room.scenario import expect_refusal
from tests.spec import proves

FREE = [
    ("participant.announce", "metadata"),
    ("tool.propose", "arguments"),
    ("session.config_update", "changes"),
    ("error", "details"),
]


def raw(payload: bytes, type: str = "response.chunk") -> bytes:
    """A good envelope around any bytes."""
    return wire(type, payload="PAYLOAD").replace(b'"PAYLOAD"', payload)


def safely(data: bytes) -> None:
    """Reading this either works, and then for good, or is refused."""
    pvp.token_of(data)
    pvp.session_and_id_of(data)
    refusals: list[Refused] = []
    try:
        message = pvp.decode(data)
    except Refused as no:
        refusals.append(no)
    else:
        assert pvp.decode(pvp.encode_relayed(message)) == message
    for each in refusals:
        assert each.reason in {Reason.MALFORMED, Reason.UNSUPPORTED_VERSION, Reason.TOO_LARGE}
        assert pvp.decode(pvp.encode_refusal("e", 0, "", each)).body.type == "error"


@proves("OPEN-51", "PVP-17-2")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"null",
        b"1",
        b'"{}"',
        b"[]",
        b"{}",
        b"{",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf" + wire(),
        wire().decode().encode("utf-16"),
        wire()[:-1],
        wire() + b"x",
        wire() + wire(),
        wire() + b"\n" + wire(),
        b"[" + wire() + b"]",
        wire().replace(b'"v": 1', b'"v": 1,'),
        wire().replace(b'"', b"'"),
        b"// a comment\n" + wire(),
    ],
)
def test_what_is_not_exactly_one_envelope_is_refused(data: bytes) -> None:
    with expect_refusal(Reason.MALFORMED, "Not a PVP envelope"):
        pvp.decode(data)


def test_white_space_around_an_envelope_does_no_harm() -> None:
    assert pvp.decode(b" \n" + wire() + b"\r\n\t") == pvp.decode(wire())


@proves("OPEN-51", "PVP-17-9")
def test_a_message_over_one_mebibyte_is_refused_and_told_the_limit() -> None:
    just = with_payload("response.chunk", text="")
    room = (1 << 20) - len(just)
    assert pvp.decode(with_payload("response.chunk", text="x" * room)).body.type

    with pytest.raises(Refused) as no:
        pvp.decode(with_payload("response.chunk", text="x" * (room + 1)))

    assert no.value.reason is Reason.TOO_LARGE
    assert no.value.details == {"limit": "message", "most": 1 << 20}


@pytest.mark.parametrize(
    "text",
    [
        rb'"\ud800"',
        rb'"\udc00"',
        rb'"\ud800\ud800"',
        rb'"\ud800x"',
        rb'"a\udfff"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xf4\x90\x80\x80"',
        b'"\x00"',
        b'"a\nb"',
        rb'"\x41"',
        rb'"\u12"',
        b'"',
    ],
)
def test_text_that_is_no_unicode_is_refused_wherever_it_is(text: bytes) -> None:
    for data in (
        raw(b'{"text": %b}' % text),
        raw(b'{"agent": "a", "prompt_ref": %b}' % text, "response.start"),
        raw(
            json.dumps(PAYLOADS["error"] | {"details": {"k": 0}}).encode().replace(b"0", text),
            "error",
        ),
        wire(sender="S").replace(b'"S"', text),
        wire(id="S").replace(b'"S"', text),
        wire(type="S").replace(b'"S"', text),
        wire(ref="S").replace(b'"S"', text),
    ):
        with expect_refusal(Reason.MALFORMED):
            pvp.decode(data)
        safely(data)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"nan"])
def test_numbers_that_json_does_not_have_are_refused(number: bytes) -> None:
    for data in (
        raw(b'{"tool_proposal": "t", "success": true, "duration_ms": %b}' % number, "tool.result"),
        raw(
            b'{"tool_proposal": "t", "success": true, "duration_ms": 1, "result": [%b]}' % number,
            "tool.result",
        ),
        raw(
            b'{"finish_reason": "complete", "usage": '
            b'{"input_tokens": 1, "output_tokens": 1, "cost_usd": %b}}' % number,
            "response.end",
        ),
        wire(v="N").replace(b'"N"', number),
    ):
        with expect_refusal(Reason.MALFORMED):
            pvp.decode(data)
        safely(data)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**4299, -(10**4298)])
def test_integers_past_64_bits_stay_exact_in_free_objects(number: int) -> None:
    data = with_payload("error", details={"n": number})

    message = pvp.decode(data)

    assert json.loads(pvp.encode_relayed(message))["payload"]["details"] == {"n": number}
    safely(data)


def test_integers_with_thousands_of_digits_are_refused() -> None:
    data = raw(b'{"code": "TIMEOUT", "message": "", "recoverable": true, "details": {"n": %b}}')
    data = data.replace(b"%b", b"1" * 5000).replace(b"response.chunk", b"error")

    with expect_refusal(Reason.MALFORMED, "out of range"):
        pvp.decode(data)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("gate.request", "timeout_seconds"),
        ("tool.result", "duration_ms"),
        ("response.end", "usage"),
    ],
)
def test_a_negative_number_past_64_bits_is_still_negative(name: str, field: str) -> None:
    number = -(10**30)
    value = {"input_tokens": number, "output_tokens": 1} if field == "usage" else number

    with expect_refusal(Reason.MALFORMED):
        pvp.decode(with_payload(name, **{field: value}))


def test_of_a_key_given_twice_the_last_one_counts_and_the_first_is_not_relayed() -> None:
    twice = b'{"text": "first", "text": "last"}'
    data = raw(twice).replace(b'"sender": "claude"', b'"sender": "mallory", "sender": "claude"')

    message = pvp.decode(data)

    assert (message.sender, message.body) == ("claude", pvp.BODIES["response.chunk"]("last"))
    assert b"first" not in pvp.encode_relayed(message)
    assert b"mallory" not in pvp.encode_relayed(message)


@pytest.mark.parametrize("field", [b"unknown", b"f\xff"])
def test_what_nobody_reads_is_text_nevertheless(field: bytes) -> None:
    data = raw(b'{"text": "t", "%b": "\xff"}' % field)

    with expect_refusal(Reason.MALFORMED, "Not a PVP envelope"):
        pvp.decode(data)


@proves("PVP-20.3-1")
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("secret.share", {"secret_type": "hunter2"}),
        ("secret.share", {"secret_type": "hunter2 - at `$`"}),
        ("secret.share", {"secret_type": "hunter2" * 10_000}),
        ("gate.request", {"quorum": {"type": "hunter2"}}),
        ("tool.propose", {"category": "hunter2"}),
    ],
)
def test_what_stands_in_the_wrong_place_is_not_repeated(name: str, payload: dict[str, Any]) -> None:
    """It may be a secret that was pasted there."""
    with pytest.raises(Refused) as no:
        pvp.decode(with_payload(name, **payload))

    assert no.value.reason is Reason.MALFORMED
    assert "hunter2" not in no.value.detail
    assert f"`$.{next(iter(payload))}" in no.value.detail


# Depth


@pytest.mark.parametrize("levels", [1_000, 10_000, 150_000])
@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":', b"}")])
def test_brackets_without_end_are_refused_wherever_they_are(
    levels: int, brackets: tuple[bytes, bytes]
) -> None:
    first, last = brackets
    endless = first * levels + b"1" + last * levels
    for data in (
        endless,
        first * levels,
        raw(endless),
        raw(b'{"text": "t", "more": %b}' % endless),
        raw(
            json.dumps(PAYLOADS["error"] | {"details": 0}).encode().replace(b"0", endless), "error"
        ),
        wire(id="D").replace(b'"D"', endless),
        wire(flavour="D").replace(b'"D"', endless),
    ):
        with expect_refusal(Reason.MALFORMED):
            pvp.decode(data)
        safely(data)


@pytest.mark.parametrize(("name", "field"), FREE)
@pytest.mark.parametrize("nested", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_a_free_object_may_be_nested_64_levels_and_no_deeper(
    name: str, field: str, nested: Callable[[Any], Any]
) -> None:
    value: Any = "bottom"
    for _ in range(MAX_NESTING_DEPTH - 2):
        value = nested(value)
    deepest, too_deep = with_payload(name, **{field: {"a": value}}), {"a": nested(value)}

    assert pvp.decode(deepest).body.type == name
    with expect_refusal(Reason.MALFORMED, "64 levels"):
        pvp.decode(with_payload(name, **{field: too_deep}))


@pytest.mark.parametrize("levels", [80, 200, 300])
def test_a_quorum_within_quorums_has_an_end(levels: int) -> None:
    quorum: dict[str, Any] = {"type": "majority"}
    for _ in range(levels):
        quorum = {"type": "all_of", "rules": [quorum]}

    with expect_refusal(Reason.MALFORMED):
        pvp.decode(with_payload("gate.request", quorum=quorum))


def test_many_brackets_side_by_side_are_not_deep() -> None:
    wide = {"rows": [[{}] for _ in range(1000)], "text": "{[" * 1000}

    assert pvp.decode(with_payload("tool.propose", arguments=wide)).body.type == "tool.propose"


def test_only_types_that_can_nest_pay_for_the_bound() -> None:
    bounded = {
        name
        for name, read in pvp._payload_decoders.items()
        if getattr(read, "__module__", None) == pvp.__name__
    }

    assert bounded == {
        *("session.create", "session.join", "session.config_update", "participant.announce"),
        *("prompt.submit", "tool.propose", "tool.result", "gate.request", "error"),
        "response.end",
        *("context.add", "context.update", "merge.propose", "merge.execute"),
    }


# Anything


@for_all(st.binary())
@QUICK
def test_no_bytes_do_anything_but_be_refused(data: bytes) -> None:
    safely(data)


@pytest.mark.parametrize("name", sorted(PAYLOADS))
@QUICK
@for_all(st.data())
def test_an_envelope_with_anything_anywhere_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    whole = envelope(name)
    spot = data.draw(st.sampled_from(sorted(whole)))
    within = bool(PAYLOADS[name]) and data.draw(st.booleans())
    if spot == "payload" and within:
        inner = data.draw(st.sampled_from(sorted(PAYLOADS[name])))
        whole["payload"] = PAYLOADS[name] | {inner: data.draw(json_values)}
    else:
        whole[spot] = data.draw(json_values)

    safely(json.dumps(whole).encode())


@pytest.mark.parametrize("name", sorted(PAYLOADS))
@QUICK
@for_all(st.data())
def test_an_envelope_with_a_few_bytes_changed_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    good = wire(name)
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, min(start + 8, len(good))))

    safely(good[:start] + data.draw(st.binary(max_size=8)) + good[end:])
