"""A stored message as an item of `read_messages`, marked with its verified sender."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from accord.api.threads import MessageItem, OpenItem
from accord.core.attention.delivery_marks import DeliveryState
from accord.core.kernel.records import Record
from accord.core.kernel.timestamps import to_iso
from accord.core.room.discussion import Finding
from accord.core.room.threads.thread_creation import ParticipantsAdded
from accord.core.room.threads.thread_messages import ThreadMessage, author_of, text_of
from accord.core.room.threads.thread_posts import MessagePosted
from accord.core.room.threads.thread_status import StatusChanged
from accord.core.views.thread_summary import MAX_ITEM_CHARS, excerpt

Delivery = Mapping[str, DeliveryState]


def item_of(
    thread_id: str, record: Record, event: ThreadMessage, delivery: Delivery | None = None
) -> MessageItem:
    """The item; everything about its sender is what the server verified."""
    return MessageItem(
        message_id=record.id,
        thread_id=thread_id,
        seq=record.seq,
        sender_agent_id=author_of(record),
        sender_kind=event.author_kind,
        sender_verified=event.verified,
        sender_session_id=event.session,
        kind=event.kind,
        body=text_of(event),
        metadata=metadata_of(event) or UNSET,
        in_reply_to=record.ref or UNSET,
        idempotency_key=event.key or UNSET,
        schema_version=event.schema_version,
        created_at=to_iso(record.at),
        quoted=True,
        delivery=UNSET if delivery is None else dict(delivery),
    )


def metadata_of(event: ThreadMessage) -> dict[str, Any]:
    """The metadata; of the server's own messages, what they say as fields."""
    own = event.metadata or {}
    if type(event) is MessagePosted:  # most are, and isinstance is slower
        return own
    if isinstance(event, StatusChanged):
        change = {"status": event.status, "previous": event.previous}
        reason = {"reason": event.reason} if event.reason else {}
        return {**own, **change, **reason, "forced": event.forced}
    if isinstance(event, ParticipantsAdded):
        return {**own, "added": list(event.added)}
    return own


def open_item(id: str, finding: Finding, text: str) -> OpenItem:
    """An open finding; its text without secrets (UNI-29)."""
    return OpenItem(
        message_id=id,
        seq=finding.seq,
        event_type="finding_reported",
        severity=finding.severity or UNSET,
        task_id=finding.task_id or UNSET,
        text=excerpt(text, MAX_ITEM_CHARS),
        reported_by=finding.reporter,
    )
