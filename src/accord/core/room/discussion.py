"""What is open in a conversation: findings that nobody closed, escalations, a resolution.

In a thread and in a session that is read as one; `threads/thread_findings.py` has the rules.
"""

from collections.abc import Mapping

import msgspec


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `finding_reported` that is not closed; its text is the body of message `seq`."""

    seq: int
    reporter: str
    severity: str = ""
    task_id: str = ""
    fixed_by: frozenset[str] = frozenset()  # those who pushed a fix; none of them may close it


class Discussion(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the events in one conversation of a session left open."""

    findings: Mapping[str, Finding] = {}  # by message id
    escalated: bool = False
    resolved: bool = False  # by an operator, and nothing was asked for since
