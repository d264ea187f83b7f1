"""The envelope: what surrounds every payload, and what is refused of it."""

import json

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.conversation.responses import ResponseChunk
from tests.core.dialects.envelopes import envelope, wire
from tests.helpers.room.scenario import expect_refusal
from tests.spec import proves


@proves(
    "PVP-1.2-3",
    "PVP-4.1-1",
    "PVP-4.1-2",
    "PVP-4.1-3",
    "PVP-4.1-4",
    "PVP-4.1-5",
    "PVP-4.1-8",
    "PVP-4.1-10",
    "PVP-4.1-11",
)
def test_an_envelope_becomes_a_message() -> None:
    data = wire(ref="r", causal_refs=["a", "b"], fork="try")

    assert pvp.decode(data) == Message(
        id="01HX7K9P4QZCVD3N8MYW6R5T2B",
        ts="2026-01-30T20:00:00.000Z",
        room="ses_1",
        sender="claude",
        body=ResponseChunk("Hello"),
        ref="r",
        causal_refs=("a", "b"),
        fork="try",
    )


@proves("PVP-4.1-11", "OPEN-46")
@pytest.mark.parametrize("fork", [None, "", "main", "trunk"])
def test_the_trunk_has_several_names_and_one_meaning(fork: str | None) -> None:
    assert pvp.decode(wire(fork=fork)) == pvp.decode(wire())


def test_what_may_be_absent_may_be_null() -> None:
    data = wire(ref=None, causal_refs=None, fork=None)

    assert pvp.decode(data) == pvp.decode(wire())


@proves("OPEN-35", "PVP-4.1-9")
@pytest.mark.parametrize("seq", [1, 10**30, -1, "seven", None])
def test_the_client_s_seq_is_not_even_read(seq: object) -> None:
    assert pvp.decode(wire(seq=seq)) == pvp.decode(wire())


@proves("PVP-3.3-1", "PVP-3.3-2", "PVP-4.1-1", "PVP-4.2-1", "UNI-27")
@pytest.mark.parametrize("version", [0, 2, -1, 10**300])
def test_another_version_is_refused_with_the_ones_we_speak(version: int) -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(wire(v=version))

    assert no.value.reason is Reason.UNSUPPORTED_VERSION
    assert no.value.details == {"supported_versions": [1]}


@proves("PVP-4.1-1")
@pytest.mark.parametrize("version", ["1", 1.5, None, True, [1]])
def test_a_version_that_is_no_integer_is_refused(version: object) -> None:
    with expect_refusal(Reason.MALFORMED):
        pvp.decode(wire(v=version))


@proves("PVP-4.1-1", "PVP-4.1-2", "PVP-4.1-3", "PVP-4.1-4", "PVP-4.1-5", "PVP-4.1-6", "PVP-4.1-7")
@pytest.mark.parametrize("field", sorted(envelope()))
def test_every_required_field_of_the_envelope_is_required(field: str) -> None:
    whole = envelope()
    del whole[field]

    with expect_refusal(Reason.MALFORMED, f"missing required field `{field}`"):
        pvp.decode(json.dumps(whole).encode())


@pytest.mark.parametrize("field", ["id", "ts", "session", "sender", "type", "ref", "fork"])
@pytest.mark.parametrize("value", [7, True, [], {}])
def test_a_field_of_another_type_is_refused(field: str, value: object) -> None:
    with expect_refusal(Reason.MALFORMED, f"at `\\$.{field}`"):
        pvp.decode(wire(**{field: value}))


@pytest.mark.parametrize("field", ["v", "id", "ts", "session", "sender", "type", "payload"])
def test_a_required_field_may_not_be_null(field: str) -> None:
    with expect_refusal(Reason.MALFORMED):
        pvp.decode(wire(**{field: None}))


@proves("OPEN-4", "PVP-5.1-1")
@pytest.mark.parametrize("field", ["id", "sender"])
@pytest.mark.parametrize(
    "text", ["x", "x" * 128, "alice_01", "Ünïcode ☃", "01HX7KBS7TCGYH6UI1QZ9U8W5E"]
)
def test_an_id_may_be_any_printable_text(field: str, text: str) -> None:
    message = pvp.decode(wire(**{field: text}))

    assert getattr(message, field) == text


@proves("OPEN-4")
@pytest.mark.parametrize("field", ["id", "sender", "ref"])
@pytest.mark.parametrize("text", ["", "x" * 129])
def test_an_id_is_neither_empty_nor_huge(field: str, text: str) -> None:
    with expect_refusal(Reason.MALFORMED, "length"):
        pvp.decode(wire(**{field: text}))


@proves("OPEN-4")
@pytest.mark.parametrize("field", ["id", "sender"])
@pytest.mark.parametrize("text", ["a\nb", "\0", "\x7f", "\u202e", "a\u00a0b", "\ue000"])
def test_an_id_has_no_characters_that_cannot_be_seen(field: str, text: str) -> None:
    with expect_refusal(Reason.MALFORMED, "printable"):
        pvp.decode(wire(**{field: text}))


@pytest.mark.parametrize("field", ["session", "fork"])
def test_names_that_may_be_empty_are_still_not_huge(field: str) -> None:
    assert pvp.decode(wire(**{field: ""})).body.type
    with expect_refusal(Reason.MALFORMED, "length"):
        pvp.decode(wire(**{field: "x" * 129}))


def test_a_message_depends_on_at_most_64_others() -> None:
    assert len(pvp.decode(wire(causal_refs=["r"] * 64)).causal_refs) == 64
    for refs in (["r"] * 65, [""], [7], "r", ["x" * 129]):
        with expect_refusal(Reason.MALFORMED):
            pvp.decode(wire(causal_refs=refs))


@proves("PVP-4.1-3", "OPEN-38")
@pytest.mark.parametrize(
    "ts",
    [
        "2026-01-30T20:00:00.000Z",
        "2026-01-30T20:00:00Z",
        "2026-01-30T21:00:00+01:00",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999Z",
    ],
)
def test_any_time_is_kept_as_it_was_told_however_wrong_the_clock(ts: str) -> None:
    assert pvp.decode(wire(ts=ts)).ts == ts


@proves("PVP-4.1-3")
@pytest.mark.parametrize("ts", ["", "now", "1769803200000", "2026-13-01T00:00:00Z", "T" * 65])
def test_envelope_with_an_invalid_ts_is_refused(ts: str) -> None:
    with expect_refusal(Reason.MALFORMED):
        pvp.decode(wire(ts=ts))
