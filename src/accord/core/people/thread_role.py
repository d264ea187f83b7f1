"""The `role` claim of MSG, derived from kind and PVP roles (the reverse of UNI-13).

An orchestrator reads every thread of the workspace. UNI-13 makes both orchestrators and workers
drivers, so `driver` alone says nothing, and the least privilege counts (OPEN-121). What tells a
human orchestrator apart is the capability to manage participants.
"""

from collections.abc import Iterable

from accord.core.kernel.role_permissions import (
    Capabilities,
    Capability,
    Kind,
    Role,
    Roles,
    ThreadRole,
)

# UNI-13: the session role of a pact seat or a thread role. Roles that approve or administer are
# never derived; they have to be granted explicitly.
SESSION_ROLE_OF = {
    ThreadRole.ORCHESTRATOR: Role.DRIVER,
    ThreadRole.WORKER: Role.DRIVER,
    ThreadRole.REVIEWER: Role.NAVIGATOR,
}


def session_rights_of(kind: Kind, names: Iterable[str]) -> tuple[Roles, Capabilities]:
    """Session roles and capabilities for these thread roles; unknown names grant nothing."""
    thread_roles = {ThreadRole(name) for name in names if name in set(ThreadRole)}
    roles = {SESSION_ROLE_OF[role] for role in thread_roles if role in SESSION_ROLE_OF}
    human = kind is Kind.HUMAN
    if human and ThreadRole.OPERATOR in thread_roles:
        roles.add(Role.ADMIN)
    leads = human and ThreadRole.ORCHESTRATOR in thread_roles
    capabilities = {Capability.MANAGE_PARTICIPANTS} if leads else set[Capability]()
    return frozenset(roles), frozenset(capabilities)


def parse_role_claim(claim: str, kind: Kind) -> ThreadRole:
    """Unknown claims, and `operator` for a non-human, get the least privilege (OPEN-121)."""
    if claim == ThreadRole.OPERATOR and kind is not Kind.HUMAN:
        return ThreadRole.WORKER
    return ThreadRole(claim) if claim in set(ThreadRole) else ThreadRole.WORKER
