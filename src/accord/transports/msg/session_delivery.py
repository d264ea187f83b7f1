"""How far the messages of a session reached its members.

A live connection and a poll hand over everything that a member may see, in all forks; such marks
count versions of the stream. `read_messages` hands over one conversation; its marks count `seq`, as
in a thread. A message has reached a member if either mark covers it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from accord.core.attention.cursors import cursor_in
from accord.core.attention.delivery_marks import DeliveryMarks, DeliveryState, state_of
from accord.core.attention.state import Attention
from accord.core.kernel.actor import Actor
from accord.core.kernel.records import Record
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.room.state import Room
from accord.core.views.session_threads import SessionThread
from accord.engine.engine import Engine
from accord.transports.http.messages.polling_presence import PollingMember
from accord.transports.http.session_index import ROOM_PREFIX
from accord.transports.msg.delivery_marks import MarkPlace, Marks
from accord.transports.msg.waking.silence import SilenceWatch

if TYPE_CHECKING:
    from accord.engine.streams.stream import Peer, Stream

Reached = Mapping[int, dict[str, DeliveryState]]
AttentionOf = Callable[[str, str], Awaitable[Attention]]
# Of two marks, the one that says more.
ORDER = tuple(DeliveryState)


def place_of_all(room: Room, agent: str) -> MarkPlace:
    """Where the mark of everything in a session is kept; no thread has such an id."""
    return room.workspace, f"{room.id}\n", agent


def seq_at(opened: "Stream", version: int) -> int:
    """The newest `seq` up to a version; 0 if that is no longer in memory."""
    if version >= opened.base.version:
        return opened.base.seq
    for encoded in reversed(opened.window):
        if encoded.record.version <= version and encoded.record.seq:
            return encoded.record.seq
    return 0


class SessionDelivery:
    """Marks what was handed over, and tells senders and operators."""

    def __init__(
        self, engine: Engine, marks: Marks, attention_of: AttentionOf, silence: SilenceWatch
    ) -> None:
        self.engine = engine
        self.marks = marks
        self.attention_of = attention_of
        self.silence = silence
        self._live: set[tuple[str, str]] = set()  # streams, and members who get all of them
        engine.delivery.connection_listeners.append(self._on_connection)

    def _on_connection(self, stream: str, peer: "Peer", is_subscribed: bool) -> None:  # noqa: FBT001 - the listener's shape
        """A live connection got the window that was replayed, and then everything until it ends.

        It is noted when it begins and ends, or is asked for, and not with every commit.
        """
        opened = self.engine.streams.get(stream)
        is_member = stream.startswith(ROOM_PREFIX) and not isinstance(peer, PollingMember)
        if opened is None or not is_member:
            return
        live = (stream, peer.principal)
        if is_subscribed:
            after = opened.window[0].record.version - 1 if opened.window else opened.base.version
            self._move(opened, peer.principal, after, opened.base.version, seen=False)
            mark = self.marks.at(place_of_all(opened.base.state, peer.principal))
            if mark.delivered >= opened.base.version:
                self._live.add(live)
        elif live in self._live:
            self._note_live(opened, peer.principal)
            others = (each for each in self.engine.delivery.connections(stream) if each is not peer)
            if not any(each.principal == peer.principal for each in others):
                self._live.discard(live)

    def _note_live(self, opened: "Stream", agent: str) -> None:
        """Everything so far is on the member's connection."""
        place = place_of_all(opened.base.state, agent)
        known = self.marks.at(place)
        self.marks.move(place, known, known.delivered, opened.base.version, seen=False)

    def on_poll(self, stream: str, actor: Actor, after: int, up_to: int) -> None:
        """A member read everything it may see in these versions."""
        opened = self.engine.streams.get(stream)
        if opened is not None and stream.startswith(ROOM_PREFIX):
            self._move(opened, actor.principal, after, up_to, seen=True)
            self.silence.on_session_read(opened.base.state, actor.principal, seq_at(opened, up_to))

    def _move(self, opened: "Stream", agent: str, after: int, up_to: int, *, seen: bool) -> None:
        room: Room = opened.base.state
        place = place_of_all(room, agent)
        known = self.marks.at(place)
        first = max(known.delivered, known.seen)
        if after > first and (member := room.members.get(agent)) is not None:
            # What was said before it joined was not for it.
            joined = opened.index.get(member.announced)
            first = joined.record.version if joined is not None else first
            known = DeliveryMarks(max(known.delivered, first), max(known.seen, first))
        self.marks.move(place, known, after, up_to, seen=seen)

    def on_read(self, conversation: SessionThread, agent: str, after: int, up_to: int) -> None:
        """A member read a conversation with `read_messages`."""
        place = (conversation.room.workspace, conversation.id, agent)
        self.marks.move(place, self.marks.at(place), after, up_to, seen=True)
        self.silence.on_answer(conversation.room.workspace, agent, conversation.id, up_to)

    async def reached(
        self, conversation: SessionThread, actor: Actor, records: Sequence[Record]
    ) -> Reached:
        """How far these messages reached each member, for those that the actor may see."""
        is_operator = actor.thread_role is ThreadRole.OPERATOR
        shown = [each for each in records if is_operator or each.sender == actor.principal]
        if not shown:
            return {}
        room, stream = conversation.room, f"{ROOM_PREFIX}{conversation.room.id}"
        found: dict[int, dict[str, DeliveryState]] = {record.seq: {} for record in shown}
        for agent in conversation.participants:
            attention = await self.attention_of(room.workspace, agent)
            acked = cursor_in(attention, conversation.id).last_read_seq
            own = self.marks.at((room.workspace, conversation.id, agent))
            if (stream, agent) in self._live and (opened := self.engine.streams.get(stream)):
                self._note_live(opened, agent)
            every = self.marks.at(place_of_all(room, agent))
            for record in shown:
                if agent != record.sender and conversation.may_read(agent, record):
                    states = (state_of(record.seq, acked, own), state_of(record.version, 0, every))
                    found[record.seq][agent] = max(states, key=ORDER.index)
        return found
