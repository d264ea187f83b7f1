"""Who may do what: roles and capabilities give rights, and each message needs one verb."""

from collections.abc import Iterable
from enum import StrEnum


class Kind(StrEnum):
    """What an actor is; only a human's approval counts (OPEN-12)."""

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


class Capability(StrEnum):
    """The rights of PVP 7.3: what a role gives, and what may be given beside a role."""

    PROMPT = "prompt"
    APPROVE = "approve"
    INTERRUPT = "interrupt"
    FORK = "fork"
    ADD_CONTEXT = "add_context"
    MANAGE_PARTICIPANTS = "manage_participants"
    END_SESSION = "end_session"


class May(StrEnum):
    """What a message needs its sender to be allowed; exactly one per message type."""

    ENTER = "enter"  # whoever the edge has let in: create, join
    BELONG = "belong"  # any member, observers too
    TAKE_PART = "take part"  # any member but a mere observer
    ACT = "act as an agent"
    PROMPT = "prompt"
    APPROVE = "approve"
    INTERRUPT = "interrupt"
    FORK = "fork"
    ADD_CONTEXT = "add context"
    MANAGE = "manage participants"
    CONFIGURE = "configure the session"
    END = "end the session"
    SERVE = "be the server"


Roles = frozenset[Role]
Capabilities = frozenset[Capability]
Verbs = frozenset[May]

C = Capability

# PVP 7.2, normative; `add_context` goes with every role but observer (OPEN-10).
RIGHTS: dict[Role, Capabilities] = {
    Role.DRIVER: frozenset({C.PROMPT, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.NAVIGATOR: frozenset({C.APPROVE, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.ADVERSARY: frozenset({C.PROMPT, C.APPROVE, C.INTERRUPT, C.FORK, C.ADD_CONTEXT}),
    Role.OBSERVER: frozenset(),
    Role.APPROVER: frozenset({C.APPROVE, C.INTERRUPT, C.ADD_CONTEXT}),
    Role.ADMIN: frozenset(Capability),
}

VERB: dict[Capability, May] = {
    C.PROMPT: May.PROMPT,
    C.APPROVE: May.APPROVE,
    C.INTERRUPT: May.INTERRUPT,
    C.FORK: May.FORK,
    C.ADD_CONTEXT: May.ADD_CONTEXT,
    C.MANAGE_PARTICIPANTS: May.MANAGE,
    C.END_SESSION: May.END,
}

EVERY_MEMBER: Verbs = frozenset({May.ENTER, May.BELONG})


def rights(roles: Iterable[Role], capabilities: Iterable[Capability] = ()) -> Capabilities:
    """The union: capabilities add to roles and never restrict them (OPEN-9)."""
    return frozenset(capabilities).union(*(RIGHTS[role] for role in roles))


def verbs(kind: Kind, roles: Roles, capabilities: Capabilities) -> Verbs:
    """What a member of this kind may do with these roles and capabilities."""
    given = EVERY_MEMBER | {VERB[right] for right in rights(roles, capabilities)}
    takes_part = bool(roles - {Role.OBSERVER})
    # OPEN-13: who may approve may also reject, an observer with that one capability too.
    if takes_part or May.APPROVE in given:
        given |= {May.TAKE_PART}
    if takes_part and kind is Kind.AGENT:
        given |= {May.ACT}
    if Role.ADMIN in roles:
        given |= {May.CONFIGURE}
    return given
