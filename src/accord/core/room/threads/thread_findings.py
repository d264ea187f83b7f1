"""Findings: reported, fixed, and closed only by those who may (the event is stored either way)."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.kernel.records import Record
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.room.threads.state import Finding, Thread
from accord.core.room.threads.thread_messages import ThreadMessage, author_of

EVENT_TYPES = (
    "finding_reported",
    "fix_pushed",
    "re_review_requested",
    "finding_verified",
    "finding_rejected",
    "thread_escalated",
    "thread_resolved",
)
MAX_OPEN_FINDINGS = 200
MAX_STORED_TEXT = 128  # of a severity or task id in the state
CLOSING_ROLES = frozenset({ThreadRole.REVIEWER, ThreadRole.ORCHESTRATOR, ThreadRole.OPERATOR})

Findings = Mapping[str, Finding]
OnEvent = Callable[[Thread, ThreadMessage, Record], Thread]


def event_type_of(metadata: Mapping[str, Any]) -> str:
    """The event type; empty if there is none, or none that can be one."""
    kind = metadata.get("event_type")
    return kind if isinstance(kind, str) else ""


def named_finding(thread: Thread, event: ThreadMessage) -> str | None:
    """The open finding that an event is about: `in_reply_to`, else a `task_id` of only one."""
    if event.ref in thread.findings:
        return event.ref
    task = short_text(event.metadata or {}, "task_id")
    same_task = [id for id, finding in thread.findings.items() if task and finding.task_id == task]
    return same_task[0] if len(same_task) == 1 else None


def short_text(metadata: Mapping[str, Any], name: str) -> str:
    value = metadata.get(name)
    return value[:MAX_STORED_TEXT] if isinstance(value, str) else ""


def report(thread: Thread, event: ThreadMessage, record: Record) -> Thread:
    finding = Finding(
        seq=record.seq,
        reporter=author_of(record),
        severity=short_text(event.metadata or {}, "severity"),
        task_id=short_text(event.metadata or {}, "task_id"),
    )
    return replace(thread, findings={**thread.findings, record.id: finding})


def push_fix(thread: Thread, event: ThreadMessage, record: Record) -> Thread:
    """The author of a fix may not close the finding."""
    id = named_finding(thread, event)
    if id is None:
        return thread
    finding = thread.findings[id]
    fixed = replace(finding, fixed_by=finding.fixed_by | {author_of(record)})
    return replace(thread, findings={**thread.findings, id: fixed})


def close_one(thread: Thread, event: ThreadMessage, record: Record) -> Thread:
    """By its reporter, a reviewer, orchestrator or operator, but never by who pushed its fix."""
    id, author = named_finding(thread, event), author_of(record)
    if id is None:
        return thread
    finding = thread.findings[id]
    may_close = author == finding.reporter or event.role in CLOSING_ROLES
    if not may_close or author in finding.fixed_by:
        return thread
    left = {each: kept for each, kept in thread.findings.items() if each != id}
    return replace(thread, findings=left)


def escalate(thread: Thread, event: ThreadMessage, record: Record) -> Thread:
    return replace(thread, escalated=True)


def resolve_all(thread: Thread, event: ThreadMessage, record: Record) -> Thread:
    """By a reviewer, orchestrator or operator; not findings whose fix that author pushed."""
    if event.role not in CLOSING_ROLES:
        return thread
    author = author_of(record)
    left = {id: kept for id, kept in thread.findings.items() if author in kept.fixed_by}
    return replace(thread, findings=left, escalated=False)


# Other event types are stored and not interpreted (OPEN-124).
ON_EVENT: Mapping[str, OnEvent] = {
    "finding_reported": report,
    "fix_pushed": push_fix,
    "finding_verified": close_one,
    "finding_rejected": close_one,
    "thread_escalated": escalate,
    "thread_resolved": resolve_all,
}
