"""Content of any JSON shape, from other members and other tools, never breaks showing a session."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.cli.git.why_text import render_reason
from accord.cli.session.command import absence_policy
from accord.core.provenance.commit_message.parser import parse_message
from accord.git.repository import Commit
from accord.git.why import CommitExplanation
from accord.show.html_page import render_page
from accord.show.markdown import render_markdown
from accord.show.text import (
    describe_gating,
    describe_quorum,
    describe_verdict,
    one_line,
    render_invocation,
)
from accord.show.timeline.state import SYSTEM
from accord.show.timeline.timeline import HANDLERS_BY_TYPE, turns_of
from accord.show.transcript import render_transcript

TIME = "2026-01-30T20:00:00Z"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# Every field that a handler reads, so that the values reach the handlers and not only the defaults.
FIELDS = (
    *("name", "participant", "id", "roles", "type", "reason", "final_state", "changes"),
    *("new_roles", "target_agent", "content", "text", "finish_reason", "amendment", "visible_to"),
    *("summary", "key", "content_ref", "new_content", "new_content_ref", "diff", "scope"),
    *("target", "urgency", "message", "inject_context", "action_taken", "ignore_reason"),
    *("participants", "target_fork", "source_fork", "strategy", "merge_proposal"),
    *("resolved_conflicts", "tool_name", "risk_level", "category", "description", "arguments"),
    *("action_ref", "action_type", "timeout_seconds", "quorum", "decision", "comment", "gate"),
    *("tool_proposal", "resolution", "approvals_received", "approvals_required", "approved_by"),
    *("duration_ms", "success", "error"),
)
PAYLOADS = st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON
SYSTEM_KEYS = ("session:tasks", "decision:d1", "decision:d1#convergence", "review:T1")
SESSION: dict[str, Any] = {
    "id": "ses_1",
    "name": "n",
    "status": "active",
    "created_at": TIME,
    "created_by": "alice",
    "members": [],
}


def envelope(message_type: str, payload: Any, **more: Any) -> dict[str, Any]:
    head = {"id": "m1", "ts": TIME, "sender": "bob", "seq": 1, "ref": "m1"}
    return {**head, "type": message_type, "payload": payload, **more}


def show(envelopes: list[dict[str, Any]]) -> str:
    """Everything that can be made of a conversation; raises if any of it cannot be made."""
    turns = turns_of(envelopes)
    lines = list(render_transcript(turns, whole=True))
    return "\n".join([*lines, render_markdown(SESSION, turns), render_page(SESSION, turns)])


def is_plain(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\u200d" for letter in text)


@pytest.mark.parametrize("message_type", HANDLERS_BY_TYPE)
@settings(max_examples=25)
@given(payload=PAYLOADS, sender=st.just(SYSTEM) | JSON)
def test_any_payload_of_any_message_type_is_shown_as_plain_text(
    message_type: str, payload: Any, sender: Any
) -> None:
    started = [envelope(kind, {}) for kind in ("session.join", "response.start", "gate.request")]

    assert is_plain(show([*started, envelope(message_type, payload, sender=sender)]))


@pytest.mark.parametrize("key", SYSTEM_KEYS)
@settings(max_examples=50)
@given(content=JSON | st.fixed_dictionaries({"tasks": JSON, "items": JSON, "table": JSON}))
def test_any_content_of_a_system_context_item_is_shown_as_plain_text(
    key: str, content: Any
) -> None:
    payload = {"key": key, "content_type": "structured", "content": content}

    assert is_plain(show([envelope("context.add", payload, sender=SYSTEM)]))


@given(head=st.dictionaries(st.sampled_from(["id", "ts", "sender", "seq", "ref", "fork"]), JSON))
def test_any_envelope_head_is_shown_as_plain_text(head: dict[str, Any]) -> None:
    assert is_plain(show([{"type": kind, "payload": {}} | head for kind in HANDLERS_BY_TYPE]))


@pytest.mark.parametrize("content", [{"list": ["T1"]}, {"tasks": "T1"}, "T1", ["T1"], 1])
def test_a_task_list_of_another_tool_is_shown_as_an_ordinary_context_item(content: Any) -> None:
    payload = {"key": "session:tasks", "content_type": "structured", "content": content}

    (turn,) = turns_of([envelope("context.add", payload, sender=SYSTEM)])

    assert turn.title == "adds the context session:tasks"
    assert turn.code == (content if isinstance(content, str) else json.dumps(content, indent=2))


def test_a_task_of_another_shape_is_listed_as_json() -> None:
    tasks = ["T1", {"id": 2}, {"id": "T3", "pact": {"status": "assigned", "owner": "bob"}}]
    payload = {"key": "session:tasks", "content": {"tasks": tasks}}

    (turn,) = turns_of([envelope("context.add", payload, sender=SYSTEM)])

    assert turn.title == "The pact has 3 tasks"
    assert turn.code.splitlines() == ["T1", '{"id": 2}', "T3           assigned           bob → "]


@given(JSON)
def test_any_quorum_verdict_configuration_and_arguments_are_described(value: Any) -> None:
    rule = {"type": "all_of", "rules": value, "count": value}
    for quorum in (value, rule, *({"type": kind} for kind in ("role", "label", "specific"))):
        assert is_plain(describe_quorum(quorum))
    assert isinstance(describe_verdict({"sha256": value, "batch": value}), str)
    assert isinstance(render_invocation(value), str)
    assert is_plain(describe_gating({"require_approval_for": value, "default_gate_quorum": rule}))
    config = {"on_participant_timeout": value, "away_timeout_seconds": value}
    assert is_plain(one_line(absence_policy(config)))


def test_a_deeply_nested_quorum_is_described() -> None:
    rule: dict[str, Any] = {"type": "any", "count": 1}
    for _ in range(300):
        rule = {"type": "all_of", "rules": [rule]}

    assert "all_of" in describe_quorum(rule)


@given(record=st.dictionaries(st.sampled_from(["decisions", "conversation", "session"]), JSON))
def test_any_note_on_a_commit_is_explained_as_plain_text(record: dict[str, Any]) -> None:
    commit = Commit("a" * 40, (), "alice", TIME, "subject")
    reason = CommitExplanation(commit, parse_message("subject"), record, "note")

    assert is_plain("\n".join(render_reason(reason, (), whole=True, brief=False)))
