"""The methods that change a thread: create, post, acknowledge, status, participants."""

from collections.abc import Callable

from accord.api import threads as api
from accord.core.attention import state as attention_state
from accord.core.attention.cursors import AckRead, cursor_in
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Record
from accord.core.kernel.timestamps import to_iso
from accord.core.room.threads.state import (
    ID_PREFIX,
    MESSAGE_ID_PREFIX,
    Thread,
    ThreadStatus,
    is_thread_id,
    stream_of,
)
from accord.core.room.threads.thread_creation import (
    ParticipantsAdded,
    ThreadAdd,
    ThreadCreate,
    ThreadCreated,
)
from accord.core.room.threads.thread_posts import MessagePosted, ThreadPost, is_same_post
from accord.core.room.threads.thread_status import StatusChanged, ThreadSetStatus, is_same_change
from accord.transports.msg.argument_checks import (
    checked_metadata,
    checked_participants,
    checked_reason,
    checked_text,
    checked_title,
)
from accord.transports.msg.idempotent_submission import Place, Request, Stored
from accord.transports.msg.service import ThreadService
from accord.transports.msg.session_threads import own_rules_refusal


async def create_thread(
    service: ThreadService, actor: Actor, request: api.CreateThread
) -> api.CreatedThread:
    """Create a thread; anyone in the workspace may."""
    service.ensure_open()
    body = ThreadCreate(
        workspace=actor.workspace,
        title=checked_title(request.title),
        thread_type=request.type,
        participants=checked_participants(request.participants),
    )

    def place(id: str) -> Place:
        return stream_of(ID_PREFIX + id), MESSAGE_ID_PREFIX + id

    def is_same(record: Record) -> bool:
        event = record.event
        return isinstance(event, ThreadCreated) and (
            (event.title, event.type, event.participants)
            == (body.title, body.thread_type, body.participants)
        )

    stored = await submit_counted(
        service,
        Request(
            actor=actor,
            method=body.type,
            body=lambda _: body,
            scope="",
            key=request.idempotency_key,
            ref=None,
            place=place,
            is_same=is_same,
        ),
    )
    return api.CreatedThread(
        thread_id=stored.record.stream.partition("/")[2],
        status=ThreadStatus.ACTIVE,
        created_at=to_iso(stored.record.at),
    )


async def post_message(
    service: ThreadService, actor: Actor, request: api.PostMessage
) -> api.PostedMessage:
    """Store a message; the answer means that it is durable."""
    if not is_thread_id(request.thread_id):
        return await post_in_session(service, actor, request)
    thread = await service.thread_for(request.thread_id, actor)
    body = ThreadPost(
        kind=request.kind,
        text=checked_text(request.body),
        metadata=checked_metadata(request.metadata),
        schema_version=request.schema_version,
        key=request.idempotency_key or "",
    )

    def is_same(record: Record) -> bool:
        event = record.event
        return isinstance(event, MessagePosted) and is_same_post(event, body, request.in_reply_to)

    stored = await submit_counted(
        service,
        in_thread(thread, actor, body, request.idempotency_key, is_same, request.in_reply_to),
    )
    service.silence.on_answer(actor.workspace, actor.principal, thread.id, stored.record.seq)
    event = stored.record.event
    assert isinstance(event, MessagePosted)  # noqa: S101 - for the type checker
    return api.PostedMessage(
        message_id=stored.record.id,
        seq=stored.record.seq,
        thread_status=event.thread_status,
        created_at=to_iso(stored.record.at),
    )


async def ack_read(service: ThreadService, actor: Actor, request: api.AckRead) -> api.Acknowledged:
    """Move the caller's cursor; the same value again changes nothing."""
    seq = request.last_read_seq
    if is_thread_id(request.thread_id):
        body = await cursor_in_thread(service, actor, request.thread_id, seq)
    else:
        place = await service.sessions.position(request.thread_id, actor, seq)
        thread_id, latest_seq, message_id = place
        body = AckRead(thread_id, seq, latest_seq, message_id)
    stream = attention_state.stream_of(actor.workspace, actor.principal)
    now = service.engine.clock.now()
    message = Message(service.engine.new_id(), to_iso(now), body.thread, actor.principal, body)
    answer = await service.submitter.answer_to(stream, message, actor)
    if answer.refusal is not None:
        raise answer.refusal
    service.silence.on_answer(actor.workspace, actor.principal, body.thread, seq)
    cursor = cursor_in(await service.attention_of(actor.workspace, actor.principal), body.thread)
    return api.Acknowledged(ok=True, updated_at=to_iso(cursor.updated_at or now))


async def cursor_in_thread(
    service: ThreadService, actor: Actor, thread_id: str, seq: int
) -> AckRead:
    """The command, with what the thread says about the message at the new cursor."""
    thread = await service.thread_for(thread_id, actor)
    cursor = await service.cursor_of(thread, actor.principal)
    moves = cursor.last_read_seq < seq <= thread.last_seq
    at_cursor = await service.messages_after(thread, seq - 1, 1) if moves else []
    return AckRead(
        thread=thread.id,
        last_read_seq=seq,
        latest_seq=thread.last_seq,
        message_id=at_cursor[0].id if at_cursor else "",
        own=await service.own_up_to(thread, actor.principal, cursor, seq) if moves else 0,
    )


async def post_in_session(
    service: ThreadService, actor: Actor, request: api.PostMessage
) -> api.PostedMessage:
    """Post chat or an event to a session, where it is a context item (UNI-8)."""
    service.ensure_open()
    _, command = await service.sessions.post_request(actor, request)
    stored = await submit_counted(service, command)
    conversation = await service.sessions.conversation(request.thread_id, actor)
    if stored.is_retry:
        service.intake.buckets.charge_stream_load(actor, ThreadPost.type)
        conversation = await service.sessions.as_of(conversation, stored.record)
    return api.PostedMessage(
        message_id=stored.record.id,
        seq=stored.record.seq,
        thread_status=conversation.status,
        created_at=to_iso(stored.record.at),
    )


async def update_thread_status(
    service: ThreadService, actor: Actor, request: api.UpdateThreadStatus
) -> api.UpdatedThread:
    """Change the status; appends a message of kind `system`."""
    ensure_own_thread(request.thread_id)
    thread = await service.thread_for(request.thread_id, actor)
    body = ThreadSetStatus(
        status=request.status,
        reason=checked_reason(request.reason),
        force=request.force,
        metadata=checked_metadata(request.metadata),
        key=request.idempotency_key or "",
    )

    def is_same(record: Record) -> bool:
        return isinstance(record.event, StatusChanged) and is_same_change(record.event, body)

    stored = await submit_counted(
        service,
        in_thread(thread, actor, body, request.idempotency_key, is_same),
    )
    return api.UpdatedThread(
        thread_id=thread.id, status=request.status, updated_at=to_iso(stored.record.at)
    )


async def add_participants(
    service: ThreadService, actor: Actor, request: api.AddParticipants
) -> api.ThreadParticipants:
    """Add participants; appends a message of kind `system`."""
    ensure_own_thread(request.thread_id)
    thread = await service.thread_for(request.thread_id, actor)
    names = checked_participants(request.participants)
    body = ThreadAdd(participants=names, key=request.idempotency_key or "")

    def is_same(record: Record) -> bool:
        event = record.event
        # Those who were in the thread before are not in the event.
        return isinstance(event, ParticipantsAdded) and {*event.added} <= {*names} <= {
            *thread.participants,
            *event.added,
        }

    stored = await submit_counted(
        service,
        in_thread(thread, actor, body, request.idempotency_key, is_same),
    )
    changed = await service.thread_for(thread.id, actor)
    event = stored.record.event
    assert isinstance(event, ParticipantsAdded)  # noqa: S101 - for the type checker
    # Those who were added later come later, and a retry is not told of them.
    upto = changed.participants.index(event.added[-1]) + 1
    return api.ThreadParticipants(
        thread_id=thread.id,
        participants=changed.participants[:upto],
        updated_at=to_iso(stored.record.at),
    )


def ensure_own_thread(thread_id: str) -> None:
    """A session's status and members follow its own rules."""
    if not is_thread_id(thread_id):
        raise own_rules_refusal()


def in_thread(
    thread: Thread,
    actor: Actor,
    body: Body,
    key: str | None,
    is_same: Callable[[Record], bool],
    ref: str | None = None,
) -> Request:
    """A command for this thread, whose key counts within it."""
    stream = stream_of(thread.id)
    return Request(
        actor=actor,
        method=body.type,
        body=lambda _: body,
        scope=thread.id,
        key=key,
        ref=ref,
        place=lambda id: (stream, MESSAGE_ID_PREFIX + id),
        is_same=is_same,
    )


async def submit_counted(service: ThreadService, request: Request) -> Stored:
    """Submit within the sender's quota; retries and refusals use none of it up."""
    actor, quota = request.actor, service.quota
    taken = quota.take(actor)
    if not taken and not await service.submitter.was_accepted(request):
        raise quota.refusal_for(actor)
    is_new = False
    try:
        stored = await service.submitter.submit(request)
        is_new = not stored.is_retry
    finally:
        if taken and not is_new:
            quota.give_back(actor)
    return stored
