"""Who was addressed and has not answered: an index in memory of what the log says."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from accord.core.attention.state import STREAM_PREFIX, Attention, Seat, seat_of, stream_of
from accord.core.attention.waking.state import Awaited
from accord.core.attention.waking.wake_events import AddressAnswered, AgentAddressed, SilenceNoticed
from accord.core.attention.waking.wake_messages import AgentAnswer
from accord.core.kernel.actor import POLICY_ACTOR, Actor
from accord.core.kernel.role_permissions import ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.core.room.state import Room
from accord.engine.committer import of_streams
from accord.engine.engine import Engine
from accord.engine.ports import EncodedRecord
from accord.transports.http.session_index import ROOM_PREFIX

MAX_ANSWERED = 10_000
WATCHED = (AgentAddressed, AddressAnswered, SilenceNoticed)


class SilenceWatch:
    """Asked at every read and post, so it holds only agents from which an answer is due."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._awaited: dict[Seat, Mapping[str, Awaited]] = {}
        # How far agents answered lately: a message may be read before it is known to be awaited.
        self._answered: OrderedDict[tuple[Seat, str], int] = OrderedDict()
        self.on_change: list[Callable[[str], None]] = []  # called with the workspace
        engine.on_state_change.append(of_streams(STREAM_PREFIX, self._on_change))
        self._room_listener = of_streams(ROOM_PREFIX, self._on_room_commit)

    def load(self, stream: str, attention: Attention) -> None:
        """Take in what the log says about an agent."""
        seat = seat_of(stream)
        was_awaited = bool(self._awaited)
        if attention.waking.awaited:
            self._awaited[seat] = attention.waking.awaited
        else:
            self._awaited.pop(seat, None)
        if was_awaited and not self._awaited:
            self._engine.on_commit.remove(self._room_listener)
        elif self._awaited and not was_awaited:
            self._engine.on_commit.append(self._room_listener)

    def on_answer(self, workspace: str, agent: str, thread: str, seq: int) -> None:
        """An agent read, acknowledged or posted up to `seq`; stored only if that was awaited."""
        seat = Seat(workspace, agent)
        self._answered[seat, thread] = seq
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        if seat in self._awaited:
            self._record_answer(seat, thread, seq)

    def on_session_read(self, room: Room, agent: str, seq: int) -> None:
        """A member read a session up to `seq`, with all forks that it is in."""
        seat = Seat(room.workspace, agent)
        forks = [thread for thread in self._awaited.get(seat, ()) if thread in room.forks]
        for thread in (room.id, *forks):
            self.on_answer(*seat, thread, seq)

    def _on_room_commit(self, stream: str, fresh: Sequence[EncodedRecord]) -> None:
        """What a member does in a session answers what addressed it there."""
        room: Room = self._engine.streams[stream].base.state
        for record in (encoded.record for encoded in fresh):
            seat = Seat(room.workspace, record.actor)
            if record.seq and record.sender == record.actor and seat in self._awaited:
                self._record_answer(seat, record.fork or room.id, record.seq)

    def has_answered(self, seat: Seat, thread: str, seq: int) -> bool:
        """Whether an agent was lately seen to have read or written up to `seq`."""
        return self._answered.get((seat, thread), 0) >= seq

    def record_early_answer(self, seat: Seat, thread: str, seq: int) -> None:
        """The message at `seq` is awaited now; it may have been answered already."""
        if self.has_answered(seat, thread, seq):
            self._record_answer(seat, thread, self._answered[seat, thread])

    def _record_answer(self, seat: Seat, thread: str, seq: int) -> None:
        awaited = self._awaited.get(seat, {}).get(thread)
        if awaited is not None and seq >= awaited.seq:
            body = AgentAnswer(thread, seq)
            self._engine.submit_system_message(stream_of(*seat), body, POLICY_ACTOR)

    def silences_for(self, actor: Actor) -> list[dict[str, Any]]:
        """Whose silence was noticed, the longest first; only for operators, of their workspace."""
        if actor.thread_role is not ThreadRole.OPERATOR:
            return []
        noticed = (
            (awaited.since, seat.agent, thread, awaited)
            for seat, threads in self._awaited.items()
            if seat.workspace == actor.workspace
            for thread, awaited in threads.items()
            if awaited.noticed
        )
        return [
            {
                "thread": thread,
                "agent": agent,
                "message": awaited.message,
                "by": awaited.by,
                "since": to_iso(since),
            }
            for since, agent, thread, awaited in sorted(noticed, key=itemgetter(0, 1, 2))
        ]

    def _on_change(self, stream: str, fresh: Sequence[EncodedRecord]) -> None:
        if any(isinstance(encoded.record.event, WATCHED) for encoded in fresh):
            self.load(stream, self._engine.streams[stream].base.state)
            for listener in self.on_change:
                listener(seat_of(stream).workspace)
