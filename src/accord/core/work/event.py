"""Events as they are read from a log, and as a verb wishes to write them."""

from typing import Any

import msgspec

from accord.core.work.words import ROLE_OF, Kind


class Payload(msgspec.Struct, frozen=True, gc=False):
    """Every payload field that version 1 or a rule of ours looks at; others pass by."""

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


class Event(msgspec.Struct, frozen=True, gc=False):
    """One line of a log; what it leaves out has its default (PACT 1.2).

    The role that it claims is not read: it follows from the type (PACT 2.1).
    """

    event_id: str = ""
    ts: str = ""
    agent_id: str = ""
    event_type: str = ""
    task_id: str = ""
    feature: str = ""
    payload: Payload = Payload()


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event in its place: the instant, comparable as text, then the line."""

    at: str
    line: int
    event: Event


class Draft(msgspec.Struct, frozen=True):
    """What a verb wishes to record, before it has an id and a time."""

    kind: Kind
    payload: dict[str, Any]
    task: str = ""
    feature: str = ""


def line(draft: Draft, event_id: str, ts: str, agent: str) -> dict[str, Any]:
    """The eight fields in the order that every tool writes them."""
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
