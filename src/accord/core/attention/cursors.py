"""Cursors: how far an agent has read, moved only by `ack_read` and never back."""

from collections.abc import Iterable

from msgspec.structs import replace

from accord.core.attention.state import Attention, Cursor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission


class AckRead(Body, frozen=True, omit_defaults=True, gc=False):
    """Move the cursor of a thread.

    The server adds what the thread's own stream says: its newest `seq`, the message at the
    cursor, and how many messages up to there the agent wrote itself.
    """

    type = "attention.ack"
    needs = Permission.MEMBER

    thread: str
    last_read_seq: int
    latest_seq: int
    message_id: str = ""
    own: int = 0


class CursorMoved(Event, frozen=True, kw_only=True, gc=False):
    """An agent has read a thread up to `last_read_seq`."""

    name = "attention.cursor_moved"

    thread: str
    last_read_seq: int
    message_id: str = ""
    own: int = 0


def ack(attention: Attention, command: Command, body: AckRead) -> Iterable[EventOrEffect]:
    """OPEN-119: never back, never beyond the newest message; the same value again is fine."""
    seq, known = body.last_read_seq, attention.cursors.get(body.thread)
    before = known.last_read_seq if known else 0
    if seq < before:
        detail = f"last_read_seq {seq} is before your cursor, which is at {before}"
        raise Refused(Reason.MALFORMED, detail, {"last_read_seq": before})
    if seq > body.latest_seq:
        detail = f"last_read_seq {seq} is after the newest message, which is {body.latest_seq}"
        raise Refused(Reason.MALFORMED, detail, {"latest_seq": body.latest_seq})
    if seq == before:
        return ()
    return (
        CursorMoved(
            thread=body.thread, last_read_seq=seq, message_id=body.message_id, own=body.own
        ),
    )


def on_moved(attention: Attention, event: CursorMoved, record: Record) -> Attention:
    cursor = Cursor(event.last_read_seq, event.message_id, record.at, event.own)
    return replace(attention, cursors={**attention.cursors, event.thread: cursor})


def cursor_in(attention: Attention, thread: str) -> Cursor:
    """The agent's cursor in a thread; at the start if it never acknowledged anything."""
    return attention.cursors.get(thread) or Cursor(0, "", 0)


def unread_count(cursor: Cursor, latest_seq: int, written: int) -> int:
    """Messages after the cursor that the agent did not write; `written` counts all its own."""
    return (latest_seq - cursor.last_read_seq) - (written - cursor.own)


DECIDE: Deciders = {AckRead: ack}
EVOLVE: Evolvers = {CursorMoved: on_moved}
