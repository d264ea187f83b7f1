"""Payloads: which fields they have, and what may stand in each."""

import json
from typing import Any

import pytest

from accord.core.dialects import pvp
from accord.core.kernel.refusal import Reason
from tests.core.dialects.envelopes import CONTENT_REF, PAYLOADS, wire, with_payload, without
from tests.helpers.room.scenario import expect_refusal
from tests.spec import proves


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

    with expect_refusal(Reason.MALFORMED, f"missing required field `{field}`"):
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

    with expect_refusal(Reason.MALFORMED, "Bad payload of session.create"):
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

    with expect_refusal(Reason.MALFORMED, f"missing required field `{field}`"):
        pvp.decode(without(name, field))
    with expect_refusal(Reason.MALFORMED, f"Bad payload of {name}"):
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
    with expect_refusal(Reason.MALFORMED, f"Bad payload of {name}"):
        pvp.decode(with_payload(name, **{field: value}))


@proves("PVP-4.1-7")
@pytest.mark.parametrize("payload", [[], "{}", 1, False, None, [{}]])
def test_a_payload_is_an_object(payload: object) -> None:
    with expect_refusal(Reason.MALFORMED, "Bad payload of session.leave"):
        pvp.decode(wire("session.leave", payload=payload))


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
def test_free_form_objects_keep_all_their_fields(name: str, payload: dict[str, Any]) -> None:
    said = pvp.encode_relayed(pvp.decode(with_payload(name, **payload)))

    assert json.loads(said)["payload"] == PAYLOADS[name] | payload
