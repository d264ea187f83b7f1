"""What was decided and is not stored yet: a store that hangs must not fill the memory."""

from collections.abc import Sequence
from operator import attrgetter

from accord.core.kernel.authority import Kind
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.refusal import Refused
from accord.engine.cell import Asked, Cell
from accord.engine.ports import Sealed

# What a record under way costs beside its bytes.
OVERHEAD = 1024
SERVER = Kind.SYSTEM
BODY = attrgetter("body")


class Load:
    """Bytes under way, of each stream and of all of them."""

    __slots__ = ("bytes", "fine", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.bytes = 0
        self.fine = min(limits.unstored, limits.unstored_session)  # nothing to look into

    def too_much(self, cell: Cell, asked: Asked) -> Refused | None:
        """Why nothing more is taken in just now; the server's own word always is."""
        limits = self.limits
        if self.bytes > limits.unstored:
            name, most = "unstored", limits.unstored
        elif cell.unstored > limits.unstored_session:
            name, most = "unstored_session", limits.unstored_session
        else:
            return None
        if asked.actor.kind is SERVER:
            return None
        detail = f"The store is slow and {most} bytes wait for it; try again"
        return reached(name, most, detail, retry_after_ms=1000)

    def more(self, cell: Cell, made: Sequence[Sealed]) -> None:
        """This was decided, and waits."""
        size = OVERHEAD * (len(made) or 1) + sum(map(len, map(BODY, made)))
        cell.unstored += size
        self.bytes += size

    def less(self, cell: Cell, size: int) -> None:
        """So much is stored, or lost."""
        size = min(size, cell.unstored)  # a stream that was given up has nothing any more
        cell.unstored -= size
        self.bytes -= size
