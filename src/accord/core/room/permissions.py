"""The total table: what each of the 41 message types needs of its sender (OPEN-10)."""

from accord.core.kernel.authority import May
from accord.core.kernel.log import Body
from accord.core.room import DECIDE
from accord.core.room.gates import GateTimeout

# Types whose slices are yet to come; a server refuses them, and this is what they will need.
TO_COME: dict[str, May] = {
    "heartbeat.ping": May.BELONG,
    "heartbeat.pong": May.BELONG,
    "context.add": May.ADD_CONTEXT,
    "context.update": May.ADD_CONTEXT,
    "context.remove": May.ADD_CONTEXT,
    "secret.share": May.TAKE_PART,
    "secret.revoke": May.TAKE_PART,
    "prompt.draft": May.PROMPT,
    "prompt.amend": May.PROMPT,
    "thinking.start": May.ACT,
    "thinking.chunk": May.ACT,
    "thinking.end": May.ACT,
    "interrupt.raise": May.INTERRUPT,
    "interrupt.acknowledge": May.ACT,
    "fork.create": May.FORK,
    "fork.switch": May.BELONG,
    "merge.propose": May.FORK,
    "merge.execute": May.FORK,
}
SPOKEN: tuple[type[Body], ...] = (*DECIDE, GateTimeout)
PERMISSIONS: dict[str, May] = {
    **TO_COME,
    **{body.type: body.needs for body in SPOKEN if "." in body.type or body.type == "error"},
}
