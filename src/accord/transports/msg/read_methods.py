"""The methods that read threads."""

from typing import Any

from accord.api import threads as api
from accord.core.attention.cursors import cursor_in
from accord.core.attention.state import Cursor
from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.room.threads.state import Thread, is_thread_id
from accord.core.room.threads.thread_messages import ThreadMessage, text_of
from accord.core.views import thread_summary
from accord.core.views.thread_questions import questions_in
from accord.transports.msg.message_items import item_of, open_item
from accord.transports.msg.service import ThreadService
from accord.transports.msg.thread_index import Principal


async def read_messages(
    service: ThreadService, actor: Actor, request: api.ReadMessages
) -> api.MessagePage:
    """Messages after `since_seq`; marks them as seen unless asked not to; moves no cursor."""
    if not is_thread_id(request.thread_id):
        return await service.sessions.read_messages(actor, request)
    thread = await service.thread_for(request.thread_id, actor)
    records = await service.page_after(thread, request.since_seq, request.limit)
    next_seq = records[-1].seq if records else request.since_seq
    cursor = await service.cursor_of(thread, actor.principal)
    if records and not request.peek:
        service.record_handed_over(
            thread, actor.principal, cursor, after=request.since_seq, up_to=next_seq, seen=True
        )
        service.silence.on_answer(actor.workspace, actor.principal, thread.id, next_seq)
    reached = await service.deliveries(thread, actor, records)
    return api.MessagePage(
        messages=tuple(
            [
                item_of(thread.id, record, event, reached.get(record.seq))
                for record in records
                if isinstance(event := record.event, ThreadMessage)
            ]
        ),
        next_seq=next_seq,
        has_more=next_seq < thread.last_seq,
        notice=api.QUOTED_NOTICE,
    )


async def get_thread(
    service: ThreadService, actor: Actor, request: api.GetThread
) -> api.ThreadDetail:
    """A thread's metadata, and how much of it the caller has not read."""
    if not is_thread_id(request.thread_id):
        return await service.sessions.get_thread(actor, request)
    thread = await service.thread_for(request.thread_id, actor)
    cursor = await service.cursor_of(thread, actor.principal)
    return detail_of(service, actor, thread, cursor)


def detail_of(
    service: ThreadService, actor: Actor, thread: Thread, cursor: Cursor
) -> api.ThreadDetail:
    return api.ThreadDetail(
        thread_id=thread.id,
        workspace_id=thread.workspace,
        title=thread.title,
        type=thread.type,
        status=thread.status,
        participants=thread.participants,
        created_by=thread.created_by,
        created_at=to_iso(thread.created_at),
        updated_at=to_iso(thread.updated_at),
        last_seq=thread.last_seq,
        last_read_seq=cursor.last_read_seq,
        unread=service.unread(thread, actor.principal, cursor),
        quoted=True,
    )


async def list_threads(
    service: ThreadService, actor: Actor, request: api.ListThreads
) -> api.ThreadList:
    """The caller's threads, most recently changed first; operators and orchestrators see all."""
    service.ensure_open()
    attention = await service.attention_of(actor.workspace, actor.principal)
    found = []
    for thread in await service.index.threads_of(actor):
        cursor = cursor_in(attention, thread.id)
        if request.status in {None, thread.status} and (
            not request.unread_only or service.unread(thread, actor.principal, cursor)
        ):
            found.append((thread, cursor))
    positions = {thread.id: place for place, (thread, _) in enumerate(found, 1)}
    if request.after is not None and request.after not in positions:
        raise Refused(Reason.MALFORMED, "after must be the id of a thread in this list")
    start = positions[request.after] if request.after is not None else 0
    page = found[start : start + request.limit]
    return api.ThreadList(
        threads=tuple(detail_of(service, actor, thread, cursor) for thread, cursor in page),
        has_more=len(found) > start + request.limit,
    )


async def unread_threads(service: ThreadService, actor: Actor) -> list[api.ThreadDetail]:
    """The threads the caller takes part in and has not read, most recently changed first."""
    service.ensure_open()
    attention = await service.attention_of(actor.workspace, actor.principal)
    details = (
        detail_of(service, actor, thread, cursor_in(attention, thread.id))
        for thread in await service.index.threads_of(actor)
        if (actor.workspace, actor.principal) in participants_of(thread)
    )
    return [detail for detail in details if detail.unread]


async def questions(service: ThreadService, actor: Actor) -> list[dict[str, Any]]:
    """What waits for the caller in threads, most recently changed first."""
    threads = await service.index.threads_of(actor)
    return [question for thread in threads for question in questions_in(thread, actor)]


def participants_of(thread: Thread) -> frozenset[Principal]:
    """Whose inbox the thread is in; operators may read others too."""
    names = {thread.created_by, *thread.participants}
    return frozenset((thread.workspace, name) for name in names)


async def summarize_thread(
    service: ThreadService, actor: Actor, request: api.SummarizeThread
) -> api.ThreadSummary:
    """An extract of the newest messages, and the findings that are still open."""
    if not is_thread_id(request.thread_id):
        return await service.sessions.summarize_thread(actor, request)
    thread = await service.thread_for(request.thread_id, actor)
    records = await service.newest_messages(thread, request.max_messages)
    return api.ThreadSummary(
        summary=thread_summary.summarize(thread, records),
        open_items=tuple([await finding_item(service, thread, id) for id in thread.findings]),
        last_status=thread.status,
        notice=api.QUOTED_NOTICE,
    )


async def finding_item(service: ThreadService, thread: Thread, id: str) -> api.OpenItem:
    """A finding with its text, which is in the log."""
    finding = thread.findings[id]
    [record] = await service.messages_after(thread, finding.seq - 1, 1)
    return open_item(id, finding, text_of(thread_summary.event_of(record)))
