"""The total table: what each of the 41 message types needs of its sender (OPEN-10)."""

from accord.core.kernel.authority import May
from accord.core.kernel.log import Body
from accord.core.room import DECIDE, Tick
from accord.core.room.gates import GateTimeout

SPOKEN: tuple[type[Body], ...] = (*DECIDE, GateTimeout)
PERMISSIONS: dict[str, May] = {body.type: body.needs for body in SPOKEN if body is not Tick}
