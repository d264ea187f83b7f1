"""The short way for pieces of one answer that arrive together."""

from typing import TYPE_CHECKING

from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Message
from accord.engine.cell import Answerer, Asked, Cell, Peer
from accord.engine.flow import Flow

if TYPE_CHECKING:
    from accord.engine.engine import Engine


class Lane:
    """What such pieces share was looked at once; good until anything else happens.

    So it is used by whoever opened it, in the same turn of the loop, and then dropped.
    """

    __slots__ = ("_at", "_cell", "_flow", "_go_on", "_message", "_seat")

    def __init__(self, engine: "Engine", cell: Cell, message: Message, flow: Flow) -> None:
        self._cell, self._flow = cell, flow
        self._message, self._seat = message, flow.actor.seat
        self._at = engine.clock.now() + cell.ahead
        self._go_on = engine.decider.go_on

    def take(self, message: Message, actor: Actor, answer: Answerer, peer: Peer | None) -> bool:
        """Whether this is a next piece, and was taken."""
        first, flow, cell = self._message, self._flow, self._cell
        if (
            message.ref != first.ref
            or message.room != first.room
            or message.sender != self._seat
            or message.fork != flow.fork
            or message.causal_refs
            or message.id in cell.index
            or type(message.body) is not flow.kind
            or actor is not flow.actor
            or cell.place.state is not flow.state
        ):
            return False
        try:
            self._go_on(cell, Asked(message, actor, answer, peer, quiet=True), flow, self._at)
        except Exception:  # noqa: BLE001 - the long way meets the same, and has an answer to it
            return False
        return True


def lane(engine: "Engine", message: Message) -> Lane | None:
    """A way for what may come right behind this message."""
    cell = engine.cells.get(f"room/{message.room}") if message.body.flows else None
    if cell is None or cell.busy or cell.queue or engine.load.bytes > engine.load.fine:
        return None
    flow = cell.flows.get(message.ref)
    if flow is None or flow.actor.seat in cell.quiet:
        return None
    return Lane(engine, cell, message, flow)
