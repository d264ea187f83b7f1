"""The permission that each of the 41 message types requires of its sender (OPEN-10)."""

from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Permission
from accord.core.room import DECIDE
from accord.core.room.approval import standing_grants
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.deadlines import Tick
from accord.core.room.forking import merge_approval, pact_tasks

# Messages without a form in PVP: those of the server to itself, and what only HTTP carries.
INTERNAL_BODIES: frozenset[type[Body]] = frozenset(
    {Tick, *pact_tasks.DECIDE, *merge_approval.DECIDE, *standing_grants.DECIDE}
)
ALL_BODIES: tuple[type[Body], ...] = (*DECIDE, GateTimeout)
PERMISSIONS: dict[str, Permission] = {
    body.type: body.needs for body in ALL_BODIES if body not in INTERNAL_BODIES
}
