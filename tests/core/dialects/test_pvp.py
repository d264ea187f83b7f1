"""PVP envelopes: what is read out of them, what is refused, what is written."""

import json
from typing import Any

import msgspec
import pytest

from accord.core.dialects import pvp
from accord.core.dialects.canonical import seal
from accord.core.dialects.codes import CODES
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Event, Failure, Message, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.members import Joined, SessionJoin, SessionLeave
from accord.core.room.streams import ResponseChunk
from tests.core.dialects.wire import CONTENT_REF, PAYLOADS, envelope, wire, with_payload, without
from tests.helpers.room import T0, refused
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
    with refused(Why.MALFORMED, "is not a type of PVP v1"):
        pvp.decode(wire(name))


# The envelope


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


@proves("PVP-3.3-1", "PVP-3.3-2", "PVP-4.1-1", "PVP-4.2-1")
@pytest.mark.parametrize("version", [0, 2, -1, 10**300])
def test_another_version_is_refused_with_the_ones_we_speak(version: int) -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(wire(v=version))

    assert no.value.why is Why.VERSION
    assert no.value.details == {"supported_versions": [1]}


@proves("PVP-4.1-1")
@pytest.mark.parametrize("version", ["1", 1.5, None, True, [1]])
def test_a_version_that_is_no_integer_is_refused(version: object) -> None:
    with refused(Why.MALFORMED):
        pvp.decode(wire(v=version))


@proves("PVP-4.1-1", "PVP-4.1-2", "PVP-4.1-3", "PVP-4.1-4", "PVP-4.1-5", "PVP-4.1-6", "PVP-4.1-7")
@pytest.mark.parametrize("field", sorted(envelope()))
def test_every_required_field_of_the_envelope_is_required(field: str) -> None:
    whole = envelope()
    del whole[field]

    with refused(Why.MALFORMED, f"missing required field `{field}`"):
        pvp.decode(json.dumps(whole).encode())


@pytest.mark.parametrize("field", ["id", "ts", "session", "sender", "type", "ref", "fork"])
@pytest.mark.parametrize("value", [7, True, [], {}])
def test_a_field_of_another_type_is_refused(field: str, value: object) -> None:
    with refused(Why.MALFORMED, f"at `\\$.{field}`"):
        pvp.decode(wire(**{field: value}))


@pytest.mark.parametrize("field", ["v", "id", "ts", "session", "sender", "type", "payload"])
def test_a_required_field_may_not_be_null(field: str) -> None:
    with refused(Why.MALFORMED):
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
    with refused(Why.MALFORMED, "length"):
        pvp.decode(wire(**{field: text}))


@proves("OPEN-4")
@pytest.mark.parametrize("field", ["id", "sender"])
@pytest.mark.parametrize("text", ["a\nb", "\0", "\x7f", "\u202e", "a\u00a0b", "\ue000"])
def test_an_id_has_no_characters_that_cannot_be_seen(field: str, text: str) -> None:
    with refused(Why.MALFORMED, "printable"):
        pvp.decode(wire(**{field: text}))


@pytest.mark.parametrize("field", ["session", "fork"])
def test_names_that_may_be_empty_are_still_not_huge(field: str) -> None:
    assert pvp.decode(wire(**{field: ""})).body.type
    with refused(Why.MALFORMED, "length"):
        pvp.decode(wire(**{field: "x" * 129}))


def test_a_message_depends_on_at_most_64_others() -> None:
    assert len(pvp.decode(wire(causal_refs=["r"] * 64)).causal_refs) == 64
    for refs in (["r"] * 65, [""], [7], "r", ["x" * 129]):
        with refused(Why.MALFORMED):
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
def test_what_is_no_time_is_refused(ts: str) -> None:
    with refused(Why.MALFORMED):
        pvp.decode(wire(ts=ts))


# Payloads


@proves(
    "PVP-6.1-1",
    "PVP-6.2-1",
    "PVP-6.2-2",
    "PVP-6.2-3",
    "PVP-6.2-4",
    "PVP-6.2-5",
    "PVP-6.2-6",
    "PVP-6.2-7",
)
@pytest.mark.parametrize("field", sorted(PAYLOADS["session.create"]["config"]))
def test_a_session_s_configuration_is_whole(field: str) -> None:
    config = {k: v for k, v in PAYLOADS["session.create"]["config"].items() if k != field}

    with refused(Why.MALFORMED, f"missing required field `{field}`"):
        pvp.decode(with_payload("session.create", config=config))


@proves("PVP-6.2-5", "PVP-6.2-6", "PVP-6.2-7", "PVP-6.2-8", "OPEN-15")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("require_approval_for", ["rocket_launch"]),
        ("require_approval_for", "all"),
        ("require_approval_for", ["all"] * 65),
        ("default_gate_quorum", {"type": "any", "count": 0}),
        ("default_gate_quorum", {"type": "any", "count": 10**30}),
        ("default_gate_quorum", {"type": "specific", "participants": []}),
        ("default_gate_quorum", {"type": "some"}),
        ("default_gate_quorum", {"count": 1}),
        ("allow_forks", 1),
        ("max_participants", 0),
        ("max_participants", "5"),
        ("ordering_mode", "random"),
        ("on_participant_timeout", "panic"),
        ("heartbeat_interval_seconds", 0),
        ("idle_timeout_seconds", 1.5),
        ("away_timeout_seconds", 10**30),
    ],
)
def test_a_session_s_configuration_is_well_formed(field: str, value: object) -> None:
    config = PAYLOADS["session.create"]["config"] | {field: value}

    with refused(Why.MALFORMED, "Bad payload of session.create"):
        pvp.decode(with_payload("session.create", config=config))


REQUIRED = {
    "session.create": ("config",),
    "session.join": ("participant", "supported_versions"),
    "session.end": ("reason", "final_state"),
    "session.config_update": ("changes", "reason"),
    "participant.announce": ("id", "name", "type", "roles", "transport"),
    "participant.role_change": ("participant", "old_roles", "new_roles", "changed_by"),
    "presence.update": ("participant", "status", "last_active"),
    "context.add": ("key", "content_type"),
    "context.update": ("key", "reason"),
    "context.remove": ("key", "reason"),
    "secret.share": ("key", "scope", "value_ref"),
    "secret.revoke": ("key", "reason"),
    "prompt.draft": ("content", "contributors"),
    "prompt.amend": ("original_prompt", "amendment", "reason"),
    "thinking.start": ("agent", "prompt_ref", "visible_to"),
    "thinking.chunk": ("text",),
    "interrupt.raise": ("urgency", "message"),
    "interrupt.acknowledge": ("interrupt", "by", "action_taken"),
    "fork.create": ("name", "from_point", "reason", "participants", "copy_context"),
    "fork.switch": ("target_fork",),
    "merge.propose": ("source_fork", "target_fork", "strategy", "summary"),
    "merge.execute": ("merge_proposal",),
    "prompt.submit": ("content", "target_agent", "contributors", "context_keys"),
    "response.start": ("agent", "prompt_ref"),
    "response.chunk": ("text",),
    "response.end": ("finish_reason",),
    "tool.propose": (
        *("tool_name", "arguments", "agent", "risk_level"),
        *("description", "requires_approval", "category"),
    ),
    "tool.approve": ("tool_proposal", "approver"),
    "tool.reject": ("tool_proposal", "rejector", "reason"),
    "tool.execute": ("tool_proposal", "approved_by"),
    "tool.output": ("tool_proposal", "stream", "text", "complete"),
    "tool.result": ("tool_proposal", "success", "duration_ms"),
    "gate.request": ("action_type", "action_ref", "quorum", "timeout_seconds", "message"),
    "gate.approve": ("gate", "approver"),
    "gate.reject": ("gate", "rejector", "reason"),
    "gate.timeout": ("gate", "approvals_received", "approvals_required", "resolution"),
    "error": ("code", "message", "recoverable"),
}
FIELDS = [(name, field) for name in PAYLOADS for field in PAYLOADS[name]]


@proves(
    "PVP-6.1-1",
    "PVP-6.3-1",
    "PVP-6.4-1",
    "PVP-6.5-1",
    "PVP-6.6-1",
    "PVP-7.1-1",
    "PVP-7.4-1",
    "PVP-11.2-1",
    "PVP-12.2-1",
    "PVP-12.2-3",
    "PVP-13.1-1",
    "PVP-13.3-3",
    "PVP-14.1-1",
    "PVP-14.3-4",
    "PVP-17-1",
    "PVP-8.2-1",
    "PVP-9.1-1",
    "PVP-9.3-2",
    "PVP-10-1",
    "OPEN-3",
)
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_payload_may_lack_what_is_optional_and_nothing_else(name: str, field: str) -> None:
    if field not in REQUIRED.get(name, ()):
        assert pvp.decode(without(name, field)) == pvp.decode(with_payload(name, **{field: None}))
        return

    with refused(Why.MALFORMED, f"missing required field `{field}`"):
        pvp.decode(without(name, field))
    with refused(Why.MALFORMED, f"Bad payload of {name}"):
        pvp.decode(with_payload(name, **{field: None}))


@proves(
    "PVP-7.1-1",
    "PVP-7.4-1",
    "PVP-8.2-1",
    "PVP-9.1-1",
    "PVP-9.1-2",
    "PVP-9.2-1",
    "PVP-9.3-2",
    "PVP-10-1",
    "PVP-12.2-4",
    "PVP-12.2-5",
    "PVP-13.1-2",
    "PVP-17-1",
    "OPEN-3",
    "OPEN-39",
    "OPEN-42",
)
@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("participant.announce", "type", "system"),
        ("participant.announce", "type", "ai"),
        ("participant.announce", "roles", ["king"]),
        ("participant.announce", "roles", "driver"),
        ("participant.announce", "capabilities", ["fly"]),
        ("participant.announce", "transport", "t140"),
        ("participant.announce", "metadata", []),
        ("participant.announce", "id", ""),
        ("participant.announce", "id", "x" * 129),
        ("participant.announce", "name", "x" * 4097),
        ("participant.role_change", "new_roles", [None]),
        ("session.join", "supported_versions", ["1"]),
        ("session.join", "supported_versions", [1] * 65),
        ("session.join", "supported_versions", 1),
        ("session.end", "final_state", "over"),
        ("session.config_update", "changes", [1]),
        ("presence.update", "status", "asleep"),
        ("context.add", "key", ""),
        ("context.add", "key", "x" * 513),
        ("context.add", "content_type", "video"),
        ("context.add", "content", ["a"]),
        ("context.add", "content", 7),
        ("context.add", "content_ref", CONTENT_REF | {"hash": ""}),
        ("context.add", "content_ref", CONTENT_REF | {"hash": None}),
        ("context.add", "content_ref", CONTENT_REF | {"size_bytes": -1}),
        ("context.add", "content_ref", CONTENT_REF | {"size_bytes": "7"}),
        ("context.add", "content_ref", CONTENT_REF | {"mime_type": None}),
        ("context.add", "content_ref", CONTENT_REF | {"storage": "ftp"}),
        ("context.add", "content_ref", CONTENT_REF | {"uri": 7}),
        ("context.add", "content_ref", "ab" * 32),
        ("context.add", "visible_to", []),
        ("context.add", "visible_to", "alice"),
        ("context.add", "visible_to", [""]),
        ("context.add", "source", {}),
        ("context.add", "tags", ["t"] * 65),
        ("context.update", "reason", 7),
        ("context.update", "diff", ["-a"]),
        ("context.update", "new_content", ["a"]),
        ("context.remove", "reason", {}),
        ("secret.share", "scope", []),
        ("secret.share", "scope", "claude"),
        ("secret.share", "value_ref", 7),
        ("secret.share", "value_ref", "x" * 65_537),
        ("secret.share", "expires_at", 1769803200),
        ("secret.share", "secret_type", "rumour"),
        ("thinking.start", "visible_to", "everybody"),
        ("thinking.end", "duration_ms", -1),
        ("interrupt.raise", "urgency", "panic"),
        ("interrupt.acknowledge", "action_taken", "laughed"),
        ("fork.create", "name", ""),
        ("fork.create", "copy_context", "yes"),
        ("merge.propose", "strategy", "rebase"),
        ("merge.execute", "resolved_conflicts", [{"conflict_id": "a", "resolution": "both"}]),
        ("prompt.submit", "contributors", ["x"] * 257),
        ("prompt.submit", "context_keys", [1]),
        ("prompt.submit", "config", {"temperature": "hot"}),
        ("prompt.submit", "config", {"max_tokens": 1.5}),
        ("response.chunk", "text", ["Hello"]),
        ("response.end", "finish_reason", "tired"),
        ("response.end", "usage", {"input_tokens": 1}),
        ("response.end", "usage", {"input_tokens": -1, "output_tokens": 0}),
        ("tool.propose", "arguments", "rm -rf"),
        ("tool.propose", "risk_level", "none"),
        ("tool.propose", "category", "magic"),
        ("tool.propose", "requires_approval", "yes"),
        ("tool.output", "stream", "stdin"),
        ("tool.output", "grant", {"id": "g"}),
        ("tool.result", "duration_ms", -1),
        ("gate.request", "timeout_seconds", -1),
        ("gate.request", "action_type", "war"),
        ("gate.timeout", "resolution", "maybe"),
        ("error", "code", "TEAPOT"),
        ("error", "recoverable", 0),
        ("error", "details", "none"),
    ],
)
def test_a_value_outside_its_type_is_refused(name: str, field: str, value: object) -> None:
    with refused(Why.MALFORMED, f"Bad payload of {name}"):
        pvp.decode(with_payload(name, **{field: value}))


@proves("PVP-4.1-7")
@pytest.mark.parametrize("payload", [[], "{}", 1, False, None, [{}]])
def test_a_payload_is_an_object(payload: object) -> None:
    with refused(Why.MALFORMED, "Bad payload of session.leave"):
        pvp.decode(wire("session.leave", payload=payload))


@proves("OPEN-2")
@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_unknown_fields_are_ignored_and_not_relayed(name: str) -> None:
    payload = PAYLOADS[name] | {"flavour": {"deep": [1]}}
    message = pvp.decode(wire(name, payload=payload, flavour="vanilla"))

    assert message == pvp.decode(wire(name))
    assert b"flavour" not in pvp.relayed(message)
    assert b"flavour" not in (pvp.frame(record(message)) or b"")


FREE = {"colour": "☃", "deep": {"list": [1, -2.5, None, True, {"big": 2**70}]}, "": {}}


@proves("OPEN-2", "PVP-11.2-2")
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("session.join", {"participant": PAYLOADS["participant.announce"] | {"metadata": FREE}}),
        ("participant.announce", {"metadata": FREE}),
        ("tool.propose", {"arguments": FREE}),
        ("tool.result", {"result": FREE}),
        ("prompt.submit", {"config": {"provider_params": FREE}}),
        ("session.config_update", {"changes": FREE}),
        ("error", {"details": FREE}),
    ],
)
def test_free_objects_pass_whole(name: str, payload: dict[str, Any]) -> None:
    said = pvp.relayed(pvp.decode(with_payload(name, **payload)))

    assert read(said)["payload"] == PAYLOADS[name] | payload


# The token of a join


@proves("PVP-6.3-1", "PVP-20.1-1")
def test_the_token_of_a_join_is_read_once_and_goes_no_further() -> None:
    data = with_payload("session.join", token="s3cret")
    message = pvp.decode(data)
    assert isinstance(message.body, SessionJoin)
    joined = Joined(
        said=message.body,
        kind=Kind.AGENT,
        roles=frozenset(),
        capabilities=frozenset(),
        labels=frozenset(),
        settled=False,
    )

    sealed = seal(record(message, event=joined))

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

    frame = pvp.frame(record(message, ref="s", causal_refs=("a",), fork="f"))

    assert frame is not None
    assert read(frame) == envelope() | {"ref": "s", "seq": 2, "causal_refs": ["a"], "fork": "f"}


def test_a_record_without_a_form_on_the_wire_is_not_sent() -> None:
    assert pvp.frame(record(pvp.decode(wire()), said=None)) is None


def test_an_optional_field_that_is_not_there_is_not_written() -> None:
    assert read(pvp.relayed(pvp.decode(wire("session.leave", payload={})))) == envelope(
        "session.leave", payload={}
    )


@proves("PVP-4.2-6", "PVP-4.2-4", "UNI-25")
def test_the_server_speaks_as_system_in_utc() -> None:
    said = read(pvp.told("m", T0, "ses_1", SessionLeave(participant="bob"), ref="r"))

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
    no = Refused(Why.FULL, "The session is full", {"reason": "max_participants", "limit": 5})

    said = read(pvp.refusal("e", T0, "ses_1", no, "m"))

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
@pytest.mark.parametrize("why", Why)
def test_every_reason_to_refuse_becomes_an_error_that_pvp_knows(why: Why) -> None:
    data = pvp.refusal("e", T0, "ses_1", Refused(why, "No"), "m")

    assert pvp.decode(data).body.type == "error"
    assert read(data)["payload"]["recoverable"] is CODES[why].recoverable


@proves("OPEN-49", "PVP-17-2")
def test_the_answer_to_what_cannot_be_read_names_no_session_and_no_message() -> None:
    with pytest.raises(Refused) as no:
        pvp.decode(b"{")
    session, related = pvp.gist(b"{")

    said = read(pvp.refusal("e", T0, session, no.value, related))

    assert said["session"] == ""
    assert "related_to" not in said["payload"]
    assert "ref" not in said
    assert said["payload"]["code"] == "INVALID_MESSAGE"


def test_an_error_is_itself_a_message_that_anybody_can_read() -> None:
    problem = pvp.refusal("e", T0, "ses_1", Refused(Why.INTERNAL, "Sorry"), "m")
    news = pvp.failure("e", T0, "ses_1", Failure(Why.GATE_FAILED, "Rejected by bob", "t"))

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
    assert pvp.gist(data) == gist
