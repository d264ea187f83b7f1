"""Who reviews in a thread: whom a fix, a finding or a review request wakes that names nobody."""

from collections.abc import Sequence

from accord.core.attention.waking.automatic_wakes import PostedMessage
from accord.core.kernel.records import Record
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.room.threads.state import Thread
from accord.core.room.threads.thread_findings import FindingEvent, named_finding
from accord.core.room.threads.thread_messages import ThreadMessage, author_of


def reviewers_for(
    thread: Thread, record: Record, event: ThreadMessage, newest: Sequence[PostedMessage]
) -> tuple[str, ...]:
    """The reporter of the finding that a message is about, else the thread's reviewers.

    Those have reported a finding that is open, or posted lately in that role.
    """
    about = (record.id, record.seq, author_of(record), event.role, event.ref, event.metadata or {})
    found = FindingEvent(*about)
    others = {id: finding for id, finding in thread.findings.items() if id != record.id}
    named = named_finding(others, found)
    if named is not None:
        return (others[named].reporter,)
    reporters = [finding.reporter for finding in others.values()]
    posted = [each.sender for each in newest if each.role == ThreadRole.REVIEWER]
    return tuple(dict.fromkeys((*reporters, *posted)))
