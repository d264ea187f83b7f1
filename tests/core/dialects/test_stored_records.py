"""Records as stored bytes."""

import json

import msgspec
import pytest

from accord.core.dialects import pvp
from accord.core.dialects.stored_records import (
    EVENTS,
    body_with_secret,
    decode_record,
    encode_effect,
    encode_record,
    encode_replayed,
    encode_similar_records,
    encode_with_secret,
)
from accord.core.kernel.context import fold
from accord.core.kernel.effects import Relay, ReplayedMessage, ServerNotice
from accord.core.kernel.messages import Failure, Message
from accord.core.kernel.records import Record, UnknownEvent
from accord.core.kernel.refusal import Reason
from accord.core.room import CONTEXT
from accord.core.room.approval.gate_timeouts import GateTimedOut, GateTimeout
from accord.core.room.approval.votes import GatePassed
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.responses import ResponseChunk, ResponseChunked
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import GateResolution
from accord.core.room.shared_context.secrets import SecretShare, SecretShared
from tests.helpers.room.scenario import ALICE, CLAUDE, STREAM, T0, given, session_create, when
from tests.spec import proves

CHUNK = ResponseChunk("Hello")


def chunk(**fields: object) -> Record:
    """An agent's words on the log."""
    record = Record(
        stream=STREAM,
        version=5,
        seq=4,
        id="m",
        at=T0,
        actor="claude",
        cause="m",
        ts="2026-01-30T21:00:00+01:00",
        sender="claude",
        event=ResponseChunked(said=CHUNK, ref="s"),
        said=CHUNK,
        ref="s",
    )
    return msgspec.structs.replace(record, **fields)


@pytest.mark.parametrize(
    "more",
    [{}, {"fork": "f"}, {"to": frozenset({"bob"})}, {"actor": "system"}, {"ref": None}],
    ids=str,
)
def test_records_that_are_alike_are_sealed_as_each_is_alone(more: dict[str, object]) -> None:
    records = []
    for number, words in enumerate(("", "é\n", "x" * 1000)):
        said = ResponseChunk(words)
        event = ResponseChunked(said=said, ref="s")
        own = {"version": 8 + number, "seq": 7 + number, "id": f"m{number}", "cause": f"m{number}"}
        records.append(chunk(event=event, said=said, ts=f"t{number}", **own, **more))

    assert encode_similar_records(records) == [encode_record(each) for each in records]


@proves("UNI-7", "OPEN-38")
def test_a_stored_record_says_what_happened_when_it_came_and_what_was_said() -> None:
    stored = json.loads(encode_record(chunk()).body)

    assert stored["kind"] == "response.chunked"
    assert stored["at"] == T0
    assert stored["said"] == {
        "v": 1,
        "id": "m",
        "ts": "2026-01-30T21:00:00+01:00",
        "session": "r",
        "sender": "claude",
        "type": "response.chunk",
        "payload": {"text": "Hello"},
        "ref": "s",
        "seq": 4,
    }


@pytest.mark.parametrize(
    "fields", [{}, {"actor": "system:timer"}, {"cause": "other"}, {"to": frozenset({"b", "a"})}]
)
def test_what_the_envelope_does_not_tell_is_kept_beside_it(fields: dict[str, object]) -> None:
    record = chunk(**fields)
    record = msgspec.structs.replace(
        record, event=ResponseChunked(said=CHUNK, ref="s", to=record.to)
    )

    sealed = encode_record(record)

    assert decode_record(STREAM, 5, sealed.body) == sealed
    assert sealed.record == record


def test_the_same_record_has_the_same_bytes_every_time() -> None:
    words = [f"s{number}" for number in range(50)]
    one, other = (chunk(to=frozenset(order)) for order in (words, reversed(words)))

    assert encode_record(one).body == encode_record(other).body


def test_the_frame_is_cut_out_byte_for_byte_however_it_was_written() -> None:
    sealed = encode_record(chunk())
    assert sealed.frame is not None
    spaced = sealed.frame.replace(b'"seq":4', b'"seq" : 4')

    body = sealed.body.replace(sealed.frame, spaced)

    assert decode_record(STREAM, 5, body).frame == spaced


def test_a_record_without_a_form_on_the_wire_keeps_its_id_and_no_envelope() -> None:
    passed = GatePassed(gate="g", approved_by=("alice",))
    sealed = encode_record(chunk(event=passed, said=None, ref=None, seq=0))

    assert sealed.frame is None
    assert sealed.record.id == "m"
    assert (sealed.record.ts, sealed.record.sender) == ("", "")
    assert decode_record(STREAM, 5, sealed.body) == sealed


def test_a_field_that_an_older_record_lacks_has_its_default() -> None:
    (created, _) = when(given(), ALICE, session_create()).records
    stored = json.loads(encode_record(created).body)
    del stored["fact"]["labels"]

    read = decode_record(STREAM, 1, json.dumps(stored).encode()).record

    assert read.event == created.event


def test_what_no_field_of_today_holds_is_passed_by() -> None:
    said = GateTimeout("g", 0, 1, GateResolution.REJECTED)
    record = chunk(event=GateTimedOut(said=said, ref="g"), said=said, ref="g")
    stored = json.loads(encode_record(record).body) | {"fact": {"mood": "sad"}, "mood": "sad"}

    read = decode_record(STREAM, 5, json.dumps(stored).encode()).record

    assert read == record


def test_names_of_events_are_unique_and_their_defaults_plain_values() -> None:
    fields = [field for event in EVENTS.values() for field in msgspec.structs.fields(event)]

    assert all(name == event.name for name, event in EVENTS.items())
    assert all(field.default_factory is msgspec.NODEFAULT for field in fields)


# Effects


@proves("OPEN-25", "OPEN-49")
def test_bad_news_is_told_by_the_server() -> None:
    message = Message("m", "2026-01-30T20:00:00Z", "r", "bob", SessionLeave())
    news = Relay(Failure(Reason.GATE_FAILED, "Rejected by bob", "t"))

    told = json.loads(encode_effect("e", T0, message, news))

    assert (told["id"], told["sender"], told["session"]) == ("e", "system", "r")
    assert told["payload"]["code"] == "GATE_FAILED"
    assert told["payload"]["related_to"] == "t"


@proves("OPEN-49")
def test_a_signal_is_relayed_as_its_sender_sent_it() -> None:
    trouble = ErrorReport("AGENT_ERROR", "The model is gone", recoverable=True)
    message = Message("m", "2026-01-30T20:00:00Z", "r", CLAUDE.principal, trouble)

    assert pvp.decode(encode_effect("e", T0, message, Relay(trouble))) == message


@proves("OPEN-33")
def test_what_the_server_itself_says_and_nobody_keeps_has_no_seq() -> None:
    message = Message("m", "2026-01-30T20:00:00Z", "r", "bob", HeartbeatPing())

    told = json.loads(
        encode_effect("e", T0, message, ServerNotice(HeartbeatPong(), frozenset({"bob"}), "m"))
    )

    assert told == {
        "v": 1,
        "id": "e",
        "ts": "2026-01-30T20:00:00.000Z",
        "session": "r",
        "sender": "system",
        "type": "heartbeat.pong",
        "payload": {},
        "ref": "m",
    }


def test_what_is_said_again_has_the_id_and_the_sender_it_had_and_no_seq() -> None:
    told = json.loads(
        encode_replayed(T0, "r", ReplayedMessage("m", "bob", SessionLeave(participant="bob")))
    )

    assert (told["id"], told["sender"]) == ("m", "bob")
    assert "seq" not in told


def test_what_a_newer_version_recorded_is_passed_by_and_passed_on() -> None:
    """UNI-27: unknown things are kept, not understood."""
    said = b'{"v":1,"id":"m","ts":"2026-01-30T20:00:00Z","session":"r","sender":"a","type":"x.y",'
    frame = said + b'"payload":{"new":true},"seq":7}'
    body = b'{"kind":"x.happened","at":1,"fact":{"what":1},"said":' + frame + b"}"

    sealed = decode_record("room/r", 3, body)

    assert isinstance(sealed.record.event, UnknownEvent)
    assert (sealed.frame, sealed.record.seq, sealed.record.actor) == (frame, 7, "a")
    assert fold(CONTEXT, CONTEXT.initial_state("room/r"), [sealed.record]) == CONTEXT.initial_state(
        "room/r"
    )


@pytest.mark.parametrize("type", ["x.y", "response.chunk"])
def test_what_an_event_cannot_say_is_passed_by_like_an_event_nobody_knows(type: str) -> None:
    said = b'{"v":1,"id":"m","ts":"2026-01-30T20:00:00Z","session":"r","sender":"a","type":"%b",'
    frame = said % type.encode() + b'"payload":{"text":"t"},"seq":7}'
    body = b'{"kind":"fork.created","at":1,"fact":{"members":["a"]},"said":' + frame + b"}"

    sealed = decode_record("room/r", 3, body)

    assert (sealed.record.event, sealed.frame) == (UnknownEvent(), frame)
    assert fold(CONTEXT, CONTEXT.initial_state("room/r"), [sealed.record]) == CONTEXT.initial_state(
        "room/r"
    )


SHARED = SecretShare(key="k", scope=("bob",), value_ref="")


@proves("PVP-10-3", "OPEN-42")
def test_a_secret_goes_out_with_its_value_and_as_it_was_otherwise() -> None:
    record = chunk(event=SecretShared(said=SHARED), said=SHARED, ref=None)
    kept = json.loads(encode_record(record).frame or b"")

    told = json.loads(encode_with_secret(record, "mem:s3cret"))

    assert kept["payload"]["value_ref"] == ""
    assert told == kept | {"payload": kept["payload"] | {"value_ref": "mem:s3cret"}}


def test_a_secret_is_said_again_with_its_value_and_names_what_it_repeats() -> None:
    again = ReplayedMessage("n", "alice", body_with_secret(SHARED, "mem:s3cret"))

    told = json.loads(encode_replayed(T0, "r", again, "m"))

    assert (told["id"], told["ref"], told["sender"]) == ("n", "m", "alice")
    assert told["payload"]["value_ref"] == "mem:s3cret"


def test_what_is_no_secret_has_no_value_to_whisper() -> None:
    plain, unspoken = chunk(), chunk(event=GatePassed(gate="g", approved_by=()), said=None)

    assert encode_with_secret(plain, "mem:s3cret") == encode_record(plain).frame
    assert encode_with_secret(unspoken, "mem:s3cret") == b""
