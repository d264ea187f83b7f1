"""`session.join` of a thread: a connection watches it as it would a session (UNI-6 to UNI-8).

Nothing is stored: reading a thread is no event of it. What the connection gets are the thread's own
records, the same bytes that server-sent events and polls have.
"""

from msgspec.structs import replace

from accord.core.attention.cursors import cursor_in
from accord.core.attention.state import Cursor
from accord.core.dialects import pvp
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Lifetime, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SessionJoin
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.threads.state import Thread, stream_of
from accord.engine.ports import StoreError
from accord.engine.streams.stream import Peer, Submission
from accord.engine.streams.stream_cache import unreadable_refusal
from accord.transports.http.messages.message_pages import MessageReader, ReadPosition
from accord.transports.msg.service import ThreadService

READ_ONLY_DETAIL = (
    "This is a thread, which a connection only watches; post with POST /v1/post_message, "
    "`accord thread post` or the MCP tool post_message"
)
NO_CONNECTION_DETAIL = (
    "A thread is joined on a WebSocket; over HTTP read its messages or events without joining"
)


class ThreadWatcher:
    """Takes what connections send to threads."""

    def __init__(self, threads: ThreadService, reader: MessageReader) -> None:
        self.threads = threads
        self.engine = threads.engine
        self.reader = reader

    def take(self, submission: Submission) -> None:
        """Join, leave, or refuse; raises Refused."""
        message, peer = submission.message, submission.peer
        if isinstance(message.body, SessionJoin) and peer is not None:
            if stream_of(message.room) not in self.engine.streams:
                buckets = self.threads.intake.buckets
                buckets.charge_stream_load(submission.actor, message.body.type)
            self.engine.tasks.spawn(self._join(submission, peer))
        elif isinstance(message.body, SessionLeave) and peer is not None:
            self._leave(message, peer)
        elif message.body.lifetime is not Lifetime.SIGNAL:
            detail = READ_ONLY_DETAIL if peer is not None else NO_CONNECTION_DETAIL
            raise Refused(Reason.WRONG_STATE, detail)

    def _leave(self, message: Message, peer: Peer) -> None:
        stream = stream_of(message.room)
        if not self.engine.delivery.is_subscribed(stream, peer):
            raise Refused(Reason.NO_MEMBER, "You do not watch this thread")
        self.engine.delivery.unsubscribe(stream, peer)
        peer.write(peer.join_frames([pvp.encode_relayed(message)]))

    async def _join(self, submission: Submission, peer: Peer) -> None:
        try:
            await self._watch(submission.message, submission.actor, peer)
        except Refused as refusal:
            submission.refuse(refusal)
        except StoreError as error:
            submission.refuse(unreadable_refusal(error))

    async def _watch(self, message: Message, actor: Actor, peer: Peer) -> None:
        """Echo the join, replay what was missed, then deliver live; raises Refused."""
        self.threads.ensure_open()
        joins = message.body
        if not isinstance(joins, SessionJoin) or joins.participant.id != actor.principal:
            raise Refused(Reason.CLAIM_MISMATCH, f"You are {actor.principal}; join as yourself")
        position = await self.reader.position(message.room, actor)
        since = None
        if message.ref is not None:
            since = await self.reader.version_of(position, actor.principal, message.ref)
            position = await self.reader.position(message.room, actor)
        attention = await self.threads.attention_of(actor.workspace, actor.principal)
        # From here on there is no `await`: nothing can be committed in between.
        if not peer.is_connected:
            return
        echo = replace(message, body=replace(joins, participant=announced(joins, actor)))
        peer.write(peer.join_frames([pvp.encode_relayed(echo)]))
        if not self.engine.delivery.is_subscribed(position.stream.id, peer):
            self.engine.joining.resume(position.stream, peer, since)
        self._mark_delivered(position, since, actor, cursor_in(attention, message.room))

    def _mark_delivered(
        self, position: ReadPosition, since: int | None, actor: Actor, cursor: Cursor
    ) -> None:
        """What was replayed is on a live connection; record 1 of a thread is no message."""
        thread: Thread = position.stream.base.state
        first = self.reader.window_start(position.stream) if since is None else since
        self.threads.record_handed_over(
            thread,
            actor.principal,
            cursor,
            after=max(0, first - 1),
            up_to=thread.last_seq,
            seen=False,
        )


def announced(joins: SessionJoin, actor: Actor) -> ParticipantAnnounce:
    """Who watches, as the server verified it: an observer."""
    kind = "human" if actor.kind is Kind.HUMAN else "agent"
    return replace(joins.participant, kind=kind, roles=(Role.OBSERVER,), capabilities=())
