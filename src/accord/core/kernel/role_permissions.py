"""Authority: roles and capabilities grant permissions, and each message type needs one."""

from collections.abc import Iterable
from enum import StrEnum


class Kind(StrEnum):
    """The kind of an actor; only approvals by humans count (OPEN-12)."""

    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


class Role(StrEnum):
    """The six roles of PVP 7.2."""

    DRIVER = "driver"
    NAVIGATOR = "navigator"
    ADVERSARY = "adversary"
    OBSERVER = "observer"
    APPROVER = "approver"
    ADMIN = "admin"


class ThreadRole(StrEnum):
    """The values of the `role` claim of MSG (OPEN-121)."""

    OPERATOR = "operator"
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"


class Capability(StrEnum):
    """The capabilities of PVP 7.3, granted by a role or in addition to one.

    `supervise` is of tokens alone: its holder keeps an agent's terminal and may wake it there. No
    role contains it, no session grants it.
    """

    PROMPT = "prompt"
    APPROVE = "approve"
    INTERRUPT = "interrupt"
    FORK = "fork"
    ADD_CONTEXT = "add_context"
    MANAGE_PARTICIPANTS = "manage_participants"
    END_SESSION = "end_session"
    SUPERVISE = "supervise"


class Permission(StrEnum):
    """What the sender of a message must be allowed to do; exactly one per message type."""

    ENTER = "enter"  # any authenticated principal: create, join
    MEMBER = "belong"  # any member, observers too
    PARTICIPATE = "take part"  # any member except pure observers
    ACT_AS_AGENT = "act as an agent"
    PROMPT = "prompt"
    APPROVE = "approve"
    INTERRUPT = "interrupt"
    FORK = "fork"
    ADD_CONTEXT = "add context"
    MANAGE_PARTICIPANTS = "manage participants"
    CONFIGURE_SESSION = "configure the session"
    END_SESSION = "end the session"
    SERVER_ONLY = "be the server"


Roles = frozenset[Role]
Capabilities = frozenset[Capability]
Permissions = frozenset[Permission]

C = Capability
# PVP 7.3: what a session can grant.
SESSION_CAPABILITIES: Capabilities = frozenset(Capability) - {C.SUPERVISE}

# PVP 7.2, normative; every role except observer may add context (OPEN-10).
ROLE_CAPABILITIES: dict[Role, Capabilities] = {
    Role.DRIVER: frozenset({C.PROMPT, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.NAVIGATOR: frozenset({C.APPROVE, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.ADVERSARY: frozenset({C.PROMPT, C.APPROVE, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.OBSERVER: frozenset(),
    Role.APPROVER: frozenset({C.APPROVE, C.INTERRUPT, C.ADD_CONTEXT}),
    Role.ADMIN: SESSION_CAPABILITIES,
}

CAPABILITY_PERMISSION: dict[Capability, Permission] = {
    C.PROMPT: Permission.PROMPT,
    C.APPROVE: Permission.APPROVE,
    C.INTERRUPT: Permission.INTERRUPT,
    C.FORK: Permission.FORK,
    C.ADD_CONTEXT: Permission.ADD_CONTEXT,
    C.MANAGE_PARTICIPANTS: Permission.MANAGE_PARTICIPANTS,
    C.END_SESSION: Permission.END_SESSION,
}

MEMBER_PERMISSIONS: Permissions = frozenset({Permission.ENTER, Permission.MEMBER})


def capabilities_of(roles: Iterable[Role], capabilities: Iterable[Capability] = ()) -> Capabilities:
    """All capabilities; explicit ones add to those of the roles, never restrict them (OPEN-9)."""
    return frozenset(capabilities).union(*(ROLE_CAPABILITIES[role] for role in roles))


def permissions_for(kind: Kind, roles: Roles, capabilities: Capabilities) -> Permissions:
    """Permissions of a member of this kind with these roles and capabilities."""
    granted = MEMBER_PERMISSIONS | {
        CAPABILITY_PERMISSION[right]
        for right in capabilities_of(roles, capabilities)
        if right in CAPABILITY_PERMISSION
    }
    participates = bool(roles - {Role.OBSERVER})
    # OPEN-13: approving includes rejecting, even for an observer with only that capability.
    if participates or Permission.APPROVE in granted:
        granted |= {Permission.PARTICIPATE}
    if participates and kind is Kind.AGENT:
        granted |= {Permission.ACT_AS_AGENT}
    if Role.ADMIN in roles:
        granted |= {Permission.CONFIGURE_SESSION}
    return granted


REVIEWING_ROLES = frozenset({Role.NAVIGATOR, Role.APPROVER, Role.ADVERSARY})


def thread_role_of(
    kind: Kind, roles: Roles, capabilities: Capabilities = frozenset()
) -> ThreadRole:
    """The thread role for these rights; an agent never becomes an orchestrator this way."""
    human = kind is Kind.HUMAN
    if human and Role.ADMIN in roles:
        return ThreadRole.OPERATOR
    drives = Role.DRIVER in roles
    if human and drives and Capability.MANAGE_PARTICIPANTS in capabilities:
        return ThreadRole.ORCHESTRATOR
    reviews = bool(roles & REVIEWING_ROLES) and (human or not drives)
    return ThreadRole.REVIEWER if reviews else ThreadRole.WORKER
