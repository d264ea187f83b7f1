"""Envelopes as clients write them, and every value that a type allows."""

import json
from typing import Any, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import inspect

from accord.core.dialects.pvp import BODIES
from accord.core.kernel.ids import TRUNK_NAMES
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.timestamps import to_iso

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CONFIG = {
    "require_approval_for": ["shell_execute", "file_write"],
    "default_gate_quorum": {"type": "any", "count": 1},
    "allow_forks": True,
    "max_participants": 5,
    "ordering_mode": "causal",
    "on_participant_timeout": "skip",
    "heartbeat_interval_seconds": 30,
    "idle_timeout_seconds": 120,
    "away_timeout_seconds": 300,
}
CLAUDE = {
    "id": "claude",
    "name": "Claude",
    "type": "agent",
    "roles": ["driver"],
    "transport": "websocket",
}
GRANT = {"id": "g", "digest": "d", "expires_at": "2026-01-30T21:00:00.000Z"}
CONTENT_REF = {
    "hash": "ab" * 32,
    "size_bytes": 7,
    "mime_type": "text/plain",
    "storage": "s3",
    "uri": "s3://bucket/key",
}
# One payload of every type, with every field it has.
PAYLOADS: dict[str, dict[str, Any]] = {
    "session.create": {"name": "Auth", "config": CONFIG},
    "session.join": {
        "participant": CLAUDE | {"capabilities": ["prompt"], "metadata": {"model": "m"}},
        "supported_versions": [1, 2],
    },
    "session.leave": {"reason": "Lunch", "participant": "claude"},
    "session.end": {"reason": "Done", "final_state": "completed"},
    "session.config_update": {"changes": {"max_participants": 9}, "reason": "More"},
    "participant.announce": CLAUDE | {"capabilities": ["prompt"], "metadata": {"model": "m"}},
    "participant.role_change": {
        "participant": "bob",
        "old_roles": ["driver"],
        "new_roles": ["observer"],
        "changed_by": "alice",
        "reason": "Because",
    },
    "presence.update": {
        "participant": "alice",
        "status": "idle",
        "last_active": "2026-01-30T20:00:00Z",
    },
    "heartbeat.ping": {},
    "heartbeat.pong": {},
    "context.add": {
        "key": "requirements",
        "content_type": "structured",
        "content": {"b": 1, "a": ["ö", 2.5, None]},
        "content_ref": CONTENT_REF,
        "visible_to": ["alice", "claude"],
        "source": "wiki",
        "tags": ["auth"],
    },
    "context.update": {
        "key": "requirements",
        "reason": "Wrong",
        "diff": "@@ -1 +1 @@\n-a\n+b\n",
        "new_content": "b\n",
        "new_content_ref": CONTENT_REF,
    },
    "context.remove": {"key": "requirements", "reason": "Done"},
    "secret.share": {
        "key": "API_KEY",
        "scope": ["claude"],
        "value_ref": "env:API_KEY",
        "expires_at": "2026-01-30T21:00:00Z",
        "secret_type": "api_key",
    },
    "secret.revoke": {"key": "API_KEY", "reason": "Leaked"},
    "prompt.draft": {"content": "Pl", "contributors": ["alice"], "target_agent": "claude"},
    "prompt.amend": {"original_prompt": "p", "amendment": "And tests", "reason": "Forgot"},
    "thinking.start": {"agent": "claude", "prompt_ref": "p", "visible_to": ["alice"]},
    "thinking.chunk": {"text": "Hm"},
    "thinking.end": {"summary": "Well", "duration_ms": 5},
    "interrupt.raise": {
        "urgency": "stop",
        "message": "Wrong branch",
        "target": "claude",
        "inject_context": "Use main",
        "inject_context_ref": CONTENT_REF,
    },
    "interrupt.acknowledge": {
        "interrupt": "i",
        "by": "claude",
        "action_taken": "ignored",
        "ignore_reason": "Almost done",
    },
    "fork.create": {
        "name": "Try JWT",
        "from_point": "p",
        "reason": "To compare",
        "participants": ["claude"],
        "copy_context": True,
    },
    "fork.switch": {"target_fork": "try-jwt"},
    "merge.propose": {
        "source_fork": "try-jwt",
        "target_fork": "main",
        "strategy": "manual",
        "summary": "It works",
    },
    "merge.execute": {
        "merge_proposal": "m",
        "resolved_conflicts": [
            {"conflict_id": "a", "resolution": "use_source"},
            {"conflict_id": "b", "resolution": "custom", "custom_value": {"c": 1}},
        ],
    },
    "prompt.submit": {
        "content": "Please",
        "target_agent": "claude",
        "contributors": ["alice"],
        "context_keys": ["requirements"],
        "config": {
            "temperature": 0.5,
            "max_tokens": 100,
            "tools_allowed": ["bash"],
            "model": "m",
            "provider_params": {"top_p": 1},
        },
    },
    "response.start": {"agent": "claude", "prompt_ref": "p"},
    "response.chunk": {"text": "Hello"},
    "response.end": {
        "finish_reason": "complete",
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "thinking_tokens": 3,
            "cost_usd": 0.25,
            "model": "m",
            "latency_ms": 4,
        },
    },
    "tool.propose": {
        "tool_name": "bash",
        "arguments": {"argv": ["ls", "-l"]},
        "agent": "claude",
        "risk_level": "low",
        "description": "Look",
        "requires_approval": True,
        "category": "shell_execute",
        "suggested_approvers": ["alice"],
    },
    "tool.approve": {"tool_proposal": "t", "approver": "alice", "comment": "Go ahead"},
    "tool.reject": {
        "tool_proposal": "t",
        "rejector": "alice",
        "reason": "No",
        "suggestion": "Ask first",
    },
    "tool.execute": {"tool_proposal": "t", "approved_by": ["alice"], "grant": GRANT},
    "tool.output": {
        "tool_proposal": "t",
        "stream": "stdout",
        "text": "ok",
        "complete": False,
        "grant": "g",
    },
    "tool.result": {
        "tool_proposal": "t",
        "success": False,
        "duration_ms": 12,
        "result": {"files": [1, 2.5, None, True]},
        "error": "It broke",
        "grant": GRANT,
    },
    "gate.request": {
        "action_type": "prompt",
        "action_ref": "p",
        "quorum": {"type": "all_of", "rules": [{"type": "majority"}, {"type": "any", "count": 2}]},
        "timeout_seconds": 60,
        "message": "May I?",
    },
    "gate.approve": {"gate": "g", "approver": "alice", "comment": "Yes"},
    "gate.reject": {"gate": "g", "rejector": "alice", "reason": "No"},
    "gate.timeout": {
        "gate": "g",
        "approvals_received": 1,
        "approvals_required": 2,
        "resolution": "escalated",
    },
    "error": {
        "code": "AGENT_ERROR",
        "message": "The model is gone",
        "recoverable": True,
        "details": {"status": 503},
        "related_to": "p",
    },
}


def envelope(type: str = "response.chunk", /, **fields: Any) -> dict[str, Any]:
    """A good envelope, but for these fields."""
    return {
        "v": 1,
        "id": "01HX7K9P4QZCVD3N8MYW6R5T2B",
        "ts": "2026-01-30T20:00:00.000Z",
        "session": "ses_1",
        "sender": "claude",
        "type": type,
        "payload": PAYLOADS.get(type, {}),
    } | fields


def wire(type: str = "response.chunk", /, **fields: Any) -> bytes:
    """The same as bytes."""
    return json.dumps(envelope(type, **fields)).encode()


def with_payload(type: str, /, **fields: Any) -> bytes:
    """An envelope whose good payload has these fields beside or instead of its own."""
    return wire(type, payload=PAYLOADS[type] | fields)


def without(type: str, field: str) -> bytes:
    """An envelope whose payload lacks a field."""
    payload = {name: value for name, value in PAYLOADS[type].items() if name != field}
    return wire(type, payload=payload)


# Every value a type allows

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ids = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")),
    min_size=1,
    max_size=128,
)
instants = st.integers(0, 253_402_300_799_999)
_made: dict[type, st.SearchStrategy[Any]] = {}


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """What msgspec would accept for a type, bounds included."""
    match kind:
        case inspect.AnyType():
            return json_values
        case inspect.StrType(min_length=least, max_length=most, pattern=form):
            plain = st.text(min_size=least or 0, max_size=min(most or 40, 200))
            return st.from_regex(form, fullmatch=True) if form else plain
        case inspect.IntType(ge=least, le=most):
            return st.integers(least, most)
        case inspect.FloatType(ge=least, le=most):
            return st.floats(least, most, allow_nan=False, allow_infinity=False)
        case inspect.LiteralType(values=words):
            return st.sampled_from(words)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.UnionType(types=kinds):
            return st.one_of([values(each) for each in kinds])
        case inspect.VarTupleType(item_type=each, min_length=least):
            return st.lists(values(each), min_size=least or 0, max_size=4).map(tuple)
        case inspect.FrozenSetType(item_type=each):
            return st.frozensets(values(each), max_size=4)
        case inspect.DictType(key_type=key, value_type=each):
            return st.dictionaries(values(key), values(each), max_size=4)
        case inspect.StructType(cls=cls):
            return structs(cls)
        case _:
            return PLAIN[type(kind)]


PLAIN: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.BytesType: st.binary(max_size=64),
}


def structs(cls: type, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Instances of a struct; fields that are given are taken from there."""
    if cls not in _made or given:
        made = st.deferred(lambda: _struct(cls, given))
        if given:
            return made
        _made[cls] = made
    return _made[cls]


def _struct(cls: type, given: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    fields = {
        field.name: given[field.name] if field.name in given else values(field.type)
        for field in info.fields
    }
    return st.builds(cls, **fields)


def bodies(cls: type[Body]) -> st.SearchStrategy[Body]:
    """Payloads of one type."""
    return structs(cls)


any_body = st.sampled_from(sorted(BODIES)).flatmap(lambda name: bodies(BODIES[name]))


@st.composite
def messages(draw: st.DrawFn, cls: type[Body]) -> Message:
    """Envelopes around payloads of one type."""
    return Message(
        id=draw(ids),
        ts=to_iso(draw(instants)),
        room=draw(ids),
        sender=draw(ids),
        body=draw(bodies(cls)),
        ref=draw(st.none() | ids),
        causal_refs=tuple(draw(st.lists(ids, max_size=3))),
        fork=draw(st.none() | ids.filter(lambda id: id not in TRUNK_NAMES)),
    )


@st.composite
def events(draw: st.DrawFn, cls: type[Event]) -> Event:
    """Events of one class, in a fork or not; only what is said has a reference and an audience."""
    given: dict[str, st.SearchStrategy[Any]] = {}
    if "said" not in cls.__struct_fields__:
        given = {"ref": st.none(), "to": st.none(), "fork": st.none() | ids}
    else:
        given = {"fork": st.none() | ids}
        if inspect.type_info(get_type_hints(cls)["said"]) == BARE:
            given["said"] = any_body
    made = draw(structs(cls, **given))
    assert isinstance(made, Event)
    return made


BARE = inspect.type_info(Body)


@st.composite
def records(draw: st.DrawFn, cls: type[Event]) -> Record:
    """Records as the engine stamps them: reference, fork and audience are the event's."""
    event = draw(events(cls))
    said: Body | None = getattr(event, "said", None)
    message = draw(messages(BODIES["response.chunk"]))
    return Record(
        stream=f"room/{message.room}",
        version=draw(st.integers(1, 1 << 40)),
        seq=draw(st.integers(1, 1 << 40)) if said is not None else 0,
        id=message.id,
        at=draw(instants),
        actor=draw(ids | st.just(message.sender)),
        cause=draw(ids | st.just(message.id)),
        ts=message.ts,
        sender=message.sender,
        event=event,
        said=said,
        ref=event.ref,
        causal_refs=message.causal_refs,
        fork=event.fork,
        to=event.to,
    )
