"""The `role` claim of MSG, which follows from kind and PVP roles (UNI-13 read backwards)."""

from collections.abc import Iterable
from enum import StrEnum

from accord.core.kernel.authority import Capabilities, Capability, Kind, Role, Roles


class Standing(StrEnum):
    """OPEN-121: the values of the claim."""

    OPERATOR = "operator"
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"


# UNI-13: what a seat of a pact, or a role among threads, is in a session. A role that judges gates,
# or runs the house, follows from nothing: somebody has to give it.
SESSION_ROLE = {
    Standing.ORCHESTRATOR: Role.DRIVER,
    Standing.WORKER: Role.DRIVER,
    Standing.REVIEWER: Role.NAVIGATOR,
}
JUDGES = frozenset({Role.NAVIGATOR, Role.APPROVER, Role.ADVERSARY})


def standing(kind: Kind, roles: Roles) -> Standing:
    """What these roles are called among threads; an agent is an orchestrator only when told so."""
    human = kind is Kind.HUMAN
    if human and Role.ADMIN in roles:
        return Standing.OPERATOR
    if human and Role.DRIVER in roles:
        return Standing.ORCHESTRATOR
    only_judges = bool(roles & JUDGES) and Role.DRIVER not in roles
    return Standing.REVIEWER if only_judges else Standing.WORKER


def derived(kind: Kind, names: Iterable[str]) -> tuple[Roles, Capabilities]:
    """The roles and rights in sessions of whoever is called so; words nobody knows give nothing."""
    called = {Standing(name) for name in names if name in set(Standing)}
    roles = {SESSION_ROLE[each] for each in called if each in SESSION_ROLE}
    human = kind is Kind.HUMAN
    if human and Standing.OPERATOR in called:
        roles.add(Role.ADMIN)
    leads = human and Standing.ORCHESTRATOR in called
    rights = {Capability.MANAGE_PARTICIPANTS} if leads else set[Capability]()
    return frozenset(roles), frozenset(rights)


def read(claim: str, kind: Kind) -> Standing:
    """OPEN-121: a claim nobody knows, and an operator who is no human, have the least privilege."""
    if claim == Standing.OPERATOR and kind is not Kind.HUMAN:
        return Standing.WORKER
    return Standing(claim) if claim in set(Standing) else Standing.WORKER
