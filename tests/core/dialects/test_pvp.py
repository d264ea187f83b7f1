"""PVP: its types, the token of a join, and what is written."""

import json
from typing import Any

import msgspec
import pytest

from accord.core.dialects import pvp
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.dialects.stored_records import encode_record
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Failure, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.membership.joining import MemberJoined, SessionJoin
from accord.core.room.membership.leaving import SessionLeave
from tests.core.dialects.envelopes import PAYLOADS, envelope, wire, with_payload
from tests.helpers.room.scenario import T0, expect_refusal
from tests.spec import proves

# PVP 4.3, row by row.
CATEGORIES = {
    "session": ("create", "join", "leave", "end", "config_update"),
    "participant": ("announce", "role_change"),
    "heartbeat": ("ping", "pong"),
    "presence": ("update",),
    "context": ("add", "update", "remove"),
    "secret": ("share", "revoke"),
    "prompt": ("draft", "submit", "amend"),
    "thinking": ("start", "chunk", "end"),
    "response": ("start", "chunk", "end"),
    "tool": ("propose", "approve", "reject", "execute", "output", "result"),
    "gate": ("request", "approve", "reject", "timeout"),
    "interrupt": ("raise", "acknowledge"),
    "fork": ("create", "switch"),
    "merge": ("propose", "execute"),
}
NAMES = {*(f"{row}.{name}" for row, names in CATEGORIES.items() for name in names), "error"}


def read(data: bytes) -> Any:
    """Bytes as any JSON reader sees them."""
    return json.loads(data)


def record(message: Message, **fields: Any) -> Record:
    """A record in which a message is said."""
    whole: dict[str, Any] = {
        "stream": f"room/{message.room}",
        "version": 3,
        "seq": 2,
        "id": message.id,
        "at": T0,
        "actor": message.sender,
        "cause": message.id,
        "ts": message.ts,
        "sender": message.sender,
        "event": Event(),
        "said": message.body,
    }
    return Record(**(whole | fields))


# Types


@proves(
    "OPEN-1",
    "PVP-4.1-6",
    "PVP-4.3-1",
    "PVP-4.3-2",
    "PVP-4.3-3",
    "PVP-4.3-4",
    "PVP-4.3-5",
    "PVP-4.3-6",
    "PVP-4.3-7",
    "PVP-4.3-8",
    "PVP-4.3-9",
    "PVP-4.3-10",
    "PVP-4.3-11",
    "PVP-4.3-12",
    "PVP-4.3-13",
    "PVP-4.3-14",
    "PVP-4.3-15",
    "PVP-4.3-16",
)
def test_the_primitives_are_the_41_of_the_table() -> None:
    assert (len(NAMES), len({name.partition(".")[0] for name in NAMES})) == (41, 15)
    assert pvp.PRIMITIVES == NAMES
    assert PAYLOADS.keys() == pvp.BODIES.keys() == NAMES


@proves("OPEN-3", "PVP-4.1-7")
@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_every_field_of_a_spoken_type_comes_through(name: str) -> None:
    message = pvp.decode(wire(name))

    assert message.body.type == name
    assert read(msgspec.json.encode(message.body)) == PAYLOADS[name]


@proves("OPEN-2", "PVP-4.1-6", "PVP-17-2")
@pytest.mark.parametrize("name", ["", "chat", "session", "Session.Join", "tick", "x" * 1000])
def test_a_type_that_pvp_does_not_have_is_refused(name: str) -> None:
    with expect_refusal(Reason.MALFORMED, "is not a message type of PVP v1"):
        pvp.decode(wire(name))


@proves("OPEN-2")
@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_unknown_fields_are_ignored_and_not_relayed(name: str) -> None:
    payload = PAYLOADS[name] | {"flavour": {"deep": [1]}}
    message = pvp.decode(wire(name, payload=payload, flavour="vanilla"))

    assert message == pvp.decode(wire(name))
    assert b"flavour" not in pvp.encode_relayed(message)
    assert b"flavour" not in (pvp.encode_frame(record(message)) or b"")


# The token of a join


@proves("PVP-6.3-1", "PVP-20.1-1")
def test_the_token_of_a_join_is_read_once_and_goes_no_further() -> None:
    data = with_payload("session.join", token="s3cret")
    message = pvp.decode(data)
    assert isinstance(message.body, SessionJoin)
    joined = MemberJoined(
        said=message.body,
        kind=Kind.AGENT,
        roles=frozenset(),
        capabilities=frozenset(),
        labels=frozenset(),
        settled=False,
    )

    sealed = encode_record(record(message, event=joined))

    assert pvp.token_of(data) == "s3cret"
    assert "s3cret" not in repr(message)
    assert b"s3cret" not in sealed.body
    assert b"s3cret" not in (sealed.frame or b"")


@pytest.mark.parametrize(
    "data",
    [
        wire("session.join"),
        with_payload("session.join", token=None),
        with_payload("session.join", token=7),
        with_payload("session.leave", token="s3cret"),
        wire("session.join", payload=["token"]),
        wire("session.join", id=None),
        b"token",
        b"",
    ],
)
def test_there_is_no_token_but_in_a_join(data: bytes) -> None:
    assert pvp.token_of(data) is None


# Out


@proves("PVP-4.2-1", "PVP-4.1-9", "OPEN-35", "OPEN-38")
def test_a_record_goes_out_with_its_seq_and_the_sender_s_own_time() -> None:
    message = pvp.decode(wire(seq=99))

    frame = pvp.encode_frame(record(message, ref="s", causal_refs=("a",), fork="f"))

    assert frame is not None
    assert read(frame) == envelope() | {"ref": "s", "seq": 2, "causal_refs": ["a"], "fork": "f"}


def test_a_record_without_a_form_on_the_wire_is_not_sent() -> None:
    assert pvp.encode_frame(record(pvp.decode(wire()), said=None)) is None


def test_an_optional_field_that_is_not_there_is_not_written() -> None:
    assert read(pvp.encode_relayed(pvp.decode(wire("session.leave", payload={})))) == envelope(
        "session.leave", payload={}
    )


@proves("PVP-4.2-6", "PVP-4.2-4", "UNI-25")
def test_the_server_speaks_as_system_in_utc() -> None:
    said = read(pvp.encode_notice("m", T0, "ses_1", SessionLeave(participant="bob"), ref="r"))

    assert said == {
        "v": 1,
        "id": "m",
        "ts": "2026-01-30T20:00:00.000Z",
        "session": "ses_1",
        "sender": SYSTEM,
        "type": "session.leave",
        "payload": {"participant": "bob"},
        "ref": "r",
    }


@proves("PVP-17-1", "PVP-17-12", "PVP-4.2-7", "OPEN-28")
def test_a_refusal_says_what_went_wrong_with_which_message() -> None:
    no = Refused(Reason.FULL, "The session is full", {"reason": "max_participants", "limit": 5})

    said = read(pvp.encode_refusal("e", T0, "ses_1", no, "m"))

    assert said["type"] == "error"
    assert (said["sender"], said["ref"]) == (SYSTEM, "m")
    assert said["payload"] == {
        "code": "INVALID_STATE",
        "message": "The session is full",
        "recoverable": True,
        "details": {"reason": "max_participants", "limit": 5},
        "related_to": "m",
    }


@proves("PVP-17-1", "PVP-17-12", "OPEN-49")
@pytest.mark.parametrize("why", Reason)
def test_every_reason_to_refuse_becomes_an_error_that_pvp_knows(why: Reason) -> None:
    data = pvp.encode_refusal("e", T0, "ses_1", Refused(why, "No"), "m")

    assert pvp.decode(data).body.type == "error"
    assert read(data)["payload"]["recoverable"] is ERROR_CODES[why].recoverable


@proves("OPEN-49", "PVP-17-2")
def test_the_answer_to_what_cannot_be_read_names_no_session_and_no_message() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b"{")
    session, related = pvp.session_and_id_of(b"{")

    said = read(pvp.encode_refusal("e", T0, session, no.value, related))

    assert said["session"] == ""
    assert "related_to" not in said["payload"]
    assert "ref" not in said
    assert said["payload"]["code"] == "INVALID_MESSAGE"


def test_an_error_is_itself_a_message_that_anybody_can_read() -> None:
    problem = pvp.encode_refusal("e", T0, "ses_1", Refused(Reason.INTERNAL, "Sorry"), "m")
    news = pvp.encode_failure("e", T0, "ses_1", Failure(Reason.GATE_FAILED, "Rejected by bob", "t"))

    assert pvp.decode(problem).body.type == "error"
    assert read(news)["payload"] == {
        "code": "GATE_FAILED",
        "message": "Rejected by bob",
        "recoverable": True,
        "related_to": "t",
    }


@proves("OPEN-49")
@pytest.mark.parametrize(
    ("data", "gist"),
    [
        (wire(v=2), ("ses_1", "01HX7K9P4QZCVD3N8MYW6R5T2B")),
        (b'{"id": "m", "session": "s", "payload": null}', ("s", "m")),
        (b'{"id": 7, "session": ["s"]}', ("", None)),
        (b'{"id": "", "session": "\\u0000"}', ("", None)),
        (b'{"id": "m", "id": "n"}', ("", "n")),
        (b"[]", ("", None)),
        (b"nonsense", ("", None)),
    ],
)
def test_of_refused_bytes_session_and_id_are_made_out_where_possible(
    data: bytes, gist: tuple[str, str | None]
) -> None:
    assert pvp.session_and_id_of(data) == gist
