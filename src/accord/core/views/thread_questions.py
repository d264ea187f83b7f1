"""What waits for one participant of a thread: messages addressed to it, and findings."""

from collections.abc import Iterator
from typing import Any

from accord.core.kernel.actor import Actor
from accord.core.kernel.timestamps import to_iso
from accord.core.room.discussion import Finding
from accord.core.room.threads.state import Thread, ThreadStatus
from accord.core.room.threads.thread_findings import CLOSING_ROLES

QUIET_STATUSES = frozenset({ThreadStatus.RESOLVED, ThreadStatus.CLOSED})

Entry = dict[str, Any]


def questions_in(thread: Thread, actor: Actor) -> Iterator[Entry]:
    """What a thread that is not over asks of this participant."""
    if thread.status in QUIET_STATUSES or actor.principal not in thread.participants:
        return
    asked = thread.addressed.get(actor.principal)
    if asked is not None:
        yield {
            **_entry(thread, "addressed", asked.message, asked.seq, asked.by),
            "since": to_iso(asked.at),
        }
    for id, finding in thread.findings.items():
        if kind := finding_question(finding, actor):
            about = {"severity": finding.severity, "task_id": finding.task_id}
            yield {**_entry(thread, kind, id, finding.seq, finding.reporter), **about}


def finding_question(finding: Finding, actor: Actor) -> str:
    """`finding_open` for those who could fix it, `finding_fixed` for those who may verify that."""
    mine, reports = actor.principal in finding.fixed_by, actor.principal == finding.reporter
    if finding.fixed_by:
        verifies = not mine and (reports or actor.thread_role in CLOSING_ROLES)
        return "finding_fixed" if verifies else ""
    return "" if reports else "finding_open"


def _entry(thread: Thread, kind: str, message: str, seq: int, by: str) -> Entry:
    return {
        "thread": thread.id,
        "title": thread.title,
        "kind": kind,
        "message_id": message,
        "seq": seq,
        "by": by,
        "since": None,
        "severity": "",
        "task_id": "",
    }
