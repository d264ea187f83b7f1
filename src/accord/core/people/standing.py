"""The `role` claim of MSG, which follows from kind and PVP roles (UNI-13 read backwards)."""

from enum import StrEnum

from accord.core.kernel.authority import Kind, Role, Roles


class Standing(StrEnum):
    """OPEN-121: the values of the claim."""

    OPERATOR = "operator"
    ORCHESTRATOR = "orchestrator"
    WORKER = "worker"
    REVIEWER = "reviewer"


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


def read(claim: str, kind: Kind) -> Standing:
    """OPEN-121: a claim nobody knows, and an operator who is no human, have the least privilege."""
    if claim == Standing.OPERATOR and kind is not Kind.HUMAN:
        return Standing.WORKER
    return Standing(claim) if claim in set(Standing) else Standing.WORKER
