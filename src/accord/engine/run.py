"""The short way for pieces of one answer that arrive together: all of them in one go."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Pieces, Seats
from accord.engine.cell import Answerer, Asked, Cell, Outcome, Peer
from accord.engine.ports import Sealed

if TYPE_CHECKING:
    from accord.engine.engine import Engine


class Run(msgspec.Struct, frozen=True, gc=False):
    """What became of such pieces: a record each, which nobody comes or goes by.

    Whoever asked hears of them in the room, and is answered only if they cannot be kept.
    """

    pieces: Pieces
    actor: Actor
    answer: Answerer
    peer: Peer
    sealed: Sequence[Sealed]
    to: Seats | None

    def frames(self) -> list[bytes]:
        """What the room hears; not asked of each, because that takes as long as all else here."""
        return [each.body[each.start : each.end] for each in self.sealed]

    def waiting(self) -> Iterator[Asked]:
        """The messages, one by one."""
        for message in self.pieces.each():
            yield Asked(message, self.actor, self.answer, self.peer)

    def outcomes(self) -> Iterator[Outcome]:
        """What became of each."""
        for asked, sealed in zip(self.waiting(), self.sealed, strict=True):
            yield Outcome(asked, (sealed,))


def take(engine: "Engine", pieces: Pieces, actor: Actor, answer: Answerer, peer: Peer) -> bool:
    """Whether these are next pieces, and nothing has changed: then they were taken."""
    cell = engine.cells.get(f"room/{pieces.first.room}")
    flow = cell.flows.get(pieces.first.ref) if cell else None
    if cell is None or flow is None or not flow.plain or not is_open(engine, cell):
        return False
    ids = pieces.ids
    if (
        not flow.bears(cell, Asked(pieces.first, actor))
        or not cell.index.keys().isdisjoint(ids)
        or len(set(ids)) < len(ids)
    ):
        return False
    try:
        sealed = engine.decider.run_on(cell, flow, pieces, engine.clock.now() + cell.ahead)
    except Exception:  # noqa: BLE001 - the long way meets the same, and has an answer to it
        return False
    engine.committer.post(cell, Run(pieces, actor, answer, peer, sealed, flow.to))
    return True


def is_open(engine: "Engine", cell: Cell) -> bool:
    """Whether what comes now can be decided now."""
    return not cell.busy and not cell.queue and engine.load.bytes <= engine.load.fine
