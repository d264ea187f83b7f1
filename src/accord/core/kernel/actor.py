"""Who is asking, as the edge has verified it; never taken from what a message says."""

import msgspec

from accord.core.kernel.authority import Capabilities, Kind, Role, Roles, Verbs, verbs
from accord.core.kernel.ids import SYSTEM

DEFAULT_WORKSPACE = "default"


class Grant(msgspec.Struct, frozen=True):
    """What a credential lets its holder ask for in a session (OPEN-8)."""

    roles: Roles = frozenset()
    capabilities: Capabilities = frozenset()
    labels: frozenset[str] = frozenset()


class Actor(msgspec.Struct, frozen=True):
    """A principal in its seat, speaking through one runtime.

    `grant` is None where nobody checks credentials (loopback only): then policy grants.
    """

    seat: str
    kind: Kind
    runtime: str = ""
    workspace: str = DEFAULT_WORKSPACE
    grant: Grant | None = None
    ceiling: Verbs | None = None  # the most this credential can ever do; None: nobody checked

    @property
    def is_operator(self) -> bool:
        """A human whose credential says admin: may look after keys and tokens (UNI-16)."""
        admin = self.grant is not None and Role.ADMIN in self.grant.roles
        return self.kind is Kind.HUMAN and admin


TIMER = Actor(seat=f"{SYSTEM}:timer", kind=Kind.SYSTEM)
PRESENCE = Actor(seat=f"{SYSTEM}:presence", kind=Kind.SYSTEM)
POLICY = Actor(seat=f"{SYSTEM}:policy", kind=Kind.SYSTEM)


def ceiling(kind: Kind, grant: Grant) -> Verbs:
    """What a credential allows at most; a human admin's allows every role (OPEN-8)."""
    roles = frozenset(Role) if kind is Kind.HUMAN and Role.ADMIN in grant.roles else grant.roles
    return verbs(kind, roles or frozenset({Role.OBSERVER}), grant.capabilities)
