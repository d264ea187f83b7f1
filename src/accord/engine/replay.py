"""What somebody who comes in is told: who is here, what they missed, and how things stand."""

from collections.abc import Container, Iterator
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from accord.core.kernel.log import Recall
from accord.engine.cell import Asked, Cell, Peer

if TYPE_CHECKING:
    from accord.engine.engine import Engine


class Entry(NamedTuple):
    """Somebody coming in, who has seen everything up to `since`; None: nothing.

    Where only the store knows how long ago that was, `ref` names the last message seen.
    """

    peer: Peer
    since: int | None
    ref: str | None = None
    fresh: bool = False  # never here before, as far as it says
    asked: Asked | None = None


def entry_of(cell: Cell, asked: Asked, peer: Peer) -> Entry:
    """Where a joiner left off: behind the message its `ref` names (OPEN-37)."""
    ref = asked.message.ref
    last = (cell.index.get(ref) or asked.found.get(ref)) if ref else None
    asked = copy(asked)  # it is answered now, and may have to be told of a damaged page later
    if last:
        return Entry(peer, last.record.version, asked=asked)
    return Entry(peer, None, ref, ref is None, asked)


class Replay:
    """A room as it is told to one who was not there; `missed` is what is at hand of it."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine

    def roll_call(self, cell: Cell, seat: str, told: Container[str] = ()) -> Iterator[bytes]:
        """Who and what is here, unless the replay says it anyway."""
        now, room = self.engine.clock.now(), cell.stream.partition("/")[2]
        for said in cell.context.welcome(cell.base.state, seat):
            early = said.secret is None and not said.late
            if early and said.id not in cell.index and said.id not in told:
                yield self.engine.codec.recall(now, room, said)

    def missed(self, cell: Cell, entry: Entry, until: int | None = None) -> Iterator[bytes]:
        """The records behind `since`; to one who has left again, those up to `until`."""
        since, seat = entry.since or 0, entry.peer.seat
        for sealed in cell.window:
            record = sealed.record
            if record.version <= since or (frame := sealed.frame) is None:
                continue
            if until is not None and record.version > until:
                return
            if cell.may_see(record, seat):
                yield frame

    def here_now(self, cell: Cell, entry: Entry) -> Iterator[bytes]:
        """How things stand that the records do not tell: old context, and secrets' values."""
        engine, room = self.engine, cell.stream.partition("/")[2]
        for said in cell.context.welcome(cell.base.state, entry.peer.seat):
            key = said.secret if entry.peer.private else None
            value = engine.vault.value(cell.stream, key) if key else None
            if value:
                body = engine.codec.whispered(said.body, value)
                again = Recall(engine.ids(), said.sender, body)
                yield engine.codec.recall(engine.clock.now(), room, again, said.id)
            elif said.late and entry.fresh and said.id not in cell.index:
                yield engine.codec.recall(engine.clock.now(), room, said)
