"""The verified sender of a request; never taken from the message itself."""

import msgspec

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.role_permissions import (
    Capabilities,
    Kind,
    Permissions,
    Role,
    Roles,
    ThreadRole,
    permissions_for,
)

DEFAULT_WORKSPACE = "default"


class CredentialRights(msgspec.Struct, frozen=True):
    """The roles, capabilities and labels that a credential grants in a session (OPEN-8)."""

    roles: Roles = frozenset()
    capabilities: Capabilities = frozenset()
    labels: frozenset[str] = frozenset()


class Actor(msgspec.Struct, frozen=True):
    """A principal connected through one runtime.

    `credential` is None where credentials are not checked (loopback only): the session's policy
    then decides which roles it gets. `max_permissions` is the most that the credential can ever
    allow, or None for the same reason.
    """

    principal: str
    kind: Kind
    runtime: str = ""
    workspace: str = DEFAULT_WORKSPACE
    credential: CredentialRights | None = None
    max_permissions: Permissions | None = None
    thread_role: ThreadRole = ThreadRole.WORKER  # the credential's role in threads

    @property
    def is_operator(self) -> bool:
        """Whether this is a human with the admin role, who may manage keys and tokens (UNI-16)."""
        admin = self.credential is not None and Role.ADMIN in self.credential.roles
        return self.kind is Kind.HUMAN and admin


TIMER_ACTOR = Actor(principal=f"{SYSTEM}:timer", kind=Kind.SYSTEM)
PRESENCE_ACTOR = Actor(principal=f"{SYSTEM}:presence", kind=Kind.SYSTEM)
POLICY_ACTOR = Actor(principal=f"{SYSTEM}:policy", kind=Kind.SYSTEM)


def max_permissions_of(kind: Kind, credential: CredentialRights) -> Permissions:
    """The most that a credential can allow; that of a human admin allows every role (OPEN-8)."""
    roles = (
        frozenset(Role)
        if kind is Kind.HUMAN and Role.ADMIN in credential.roles
        else credential.roles
    )
    return permissions_for(kind, roles or frozenset({Role.OBSERVER}), credential.capabilities)
