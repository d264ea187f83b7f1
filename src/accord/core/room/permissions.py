"""The total table: what each of the 41 message types needs of its sender (OPEN-10)."""

from accord.core.kernel.authority import May
from accord.core.kernel.log import Body
from accord.core.room import DECIDE, Tick, pact
from accord.core.room.timeouts import GateTimeout

# What the server says to itself has no form on the wire.
INWARD: frozenset[type[Body]] = frozenset({Tick, *pact.DECIDE})
SPOKEN: tuple[type[Body], ...] = (*DECIDE, GateTimeout)
PERMISSIONS: dict[str, May] = {body.type: body.needs for body in SPOKEN if body not in INWARD}
