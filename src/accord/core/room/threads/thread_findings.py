"""Findings: reported, fixed, and closed only by those who may (the event is stored either way)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.room.discussion import Discussion, Finding
from accord.core.room.threads.state import Thread

EVENT_TYPES = (
    "finding_reported",
    "fix_pushed",
    "re_review_requested",
    "finding_verified",
    "finding_rejected",
    "thread_escalated",
    "thread_resolved",
)
REPORTED, RESOLVED = "finding_reported", "thread_resolved"
MAX_OPEN_FINDINGS = 200
MAX_STORED_TEXT = 128  # of a severity or task id in the state
CLOSING_ROLES = frozenset({ThreadRole.REVIEWER, ThreadRole.ORCHESTRATOR, ThreadRole.OPERATOR})

# What findings belong to: a thread, or a conversation of a session.
Place = TypeVar("Place", Thread, Discussion)


class FindingEvent(NamedTuple):
    """An event as the rules see it; `role` is its author's at that moment."""

    id: str
    seq: int
    author: str
    role: ThreadRole
    ref: str | None
    metadata: Mapping[str, Any]


def event_type_of(metadata: Mapping[str, Any]) -> str:
    """The event type; empty if there is none, or none that can be one."""
    kind = metadata.get("event_type")
    return kind if isinstance(kind, str) else ""


def named_finding(findings: Mapping[str, Finding], event: FindingEvent) -> str | None:
    """The open finding that an event is about: `in_reply_to`, else a `task_id` of only one."""
    if event.ref in findings:
        return event.ref
    task = short_text(event.metadata, "task_id")
    same_task = [id for id, finding in findings.items() if task and finding.task_id == task]
    return same_task[0] if len(same_task) == 1 else None


def short_text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    return value[:MAX_STORED_TEXT] if isinstance(value, str) else ""


def ensure_room_for_finding(findings: Mapping[str, Finding], metadata: Mapping[str, Any]) -> None:
    """Refuse another open finding beyond the limit."""
    if event_type_of(metadata) == REPORTED and len(findings) >= MAX_OPEN_FINDINGS:
        detail = f"The thread has {MAX_OPEN_FINDINGS} open findings; close some of them first"
        raise Refused(Reason.FULL, detail)


def report(place: Place, event: FindingEvent) -> Place:
    finding = Finding(
        seq=event.seq,
        reporter=event.author,
        severity=short_text(event.metadata, "severity"),
        task_id=short_text(event.metadata, "task_id"),
    )
    return replace(place, findings={**place.findings, event.id: finding})


def push_fix(place: Place, event: FindingEvent) -> Place:
    """The author of a fix may not close the finding."""
    id = named_finding(place.findings, event)
    if id is None:
        return place
    finding = place.findings[id]
    fixed = replace(finding, fixed_by=finding.fixed_by | {event.author})
    return replace(place, findings={**place.findings, id: fixed})


def close_one(place: Place, event: FindingEvent) -> Place:
    """By its reporter, a reviewer, orchestrator or operator, but never by who pushed its fix."""
    id = named_finding(place.findings, event)
    if id is None:
        return place
    finding = place.findings[id]
    may_close = event.author == finding.reporter or event.role in CLOSING_ROLES
    if not may_close or event.author in finding.fixed_by:
        return place
    left = {each: kept for each, kept in place.findings.items() if each != id}
    return replace(place, findings=left)


def escalate(place: Place, _: FindingEvent) -> Place:
    return replace(place, escalated=True)


def resolve_all(place: Place, event: FindingEvent) -> Place:
    """By a reviewer, orchestrator or operator; not findings whose fix that author pushed."""
    if event.role not in CLOSING_ROLES:
        return place
    left = {id: kept for id, kept in place.findings.items() if event.author in kept.fixed_by}
    return replace(place, findings=left, escalated=False)


Rule = Callable[[Any, FindingEvent], Any]
# Other event types are stored and not interpreted (OPEN-124).
ON_EVENT: Mapping[str, Rule] = {
    REPORTED: report,
    "fix_pushed": push_fix,
    "finding_verified": close_one,
    "finding_rejected": close_one,
    "thread_escalated": escalate,
    RESOLVED: resolve_all,
}


def after_event(place: Place, event: FindingEvent) -> Place:
    """What is open after an event."""
    rule = ON_EVENT.get(event_type_of(event.metadata))
    changed: Place = place if rule is None else rule(place, event)
    return changed
