"""Pact events, as read from a log and as drafted by a verb."""

from typing import Any

import msgspec

from accord.core.work.vocabulary import ROLE_OF, EventKind


class PactPayload(msgspec.Struct, frozen=True, gc=False):
    """All payload fields that version 1 or Accord's own rules read; others are ignored."""

    project: str = ""
    protocol_version: Any = 0
    seats: Any = ()
    base_branch: str = ""
    owner: str = ""
    reviewer: str = ""
    branch: str = ""
    spec: str = ""
    deps: Any = ()
    roles: Any = ()
    evidence: str = ""
    reason: str = ""
    id: str = ""
    entry: str = ""
    commit: str = ""
    files: str = ""


class PactEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a log; missing fields have their defaults (PACT 1.2).

    The claimed role is not read, because it follows from the type (PACT 2.1).
    """

    event_id: str = ""
    ts: str = ""
    agent_id: str = ""
    event_type: str = ""
    task_id: str = ""
    feature: str = ""
    payload: PactPayload = PactPayload()


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """An event with its instant, comparable as text, and its line number."""

    at: str
    line: int
    event: PactEvent


class EventDraft(msgspec.Struct, frozen=True):
    """An event to be recorded, without id and time yet."""

    kind: EventKind
    payload: dict[str, Any]
    task: str = ""
    feature: str = ""


def event_object(draft: EventDraft, event_id: str, ts: str, agent: str) -> dict[str, Any]:
    """The event's eight fields in the order in which all tools write them."""
    return {
        "event_id": event_id,
        "ts": ts,
        "agent_id": agent,
        "role": ROLE_OF[draft.kind],
        "event_type": draft.kind,
        "task_id": draft.task,
        "feature": draft.feature,
        "payload": draft.payload,
    }
