"""The `role` claim of MSG."""

import pytest

from accord.core.kernel.role_permissions import Capability, Kind, Role, ThreadRole, thread_role_of
from accord.core.people.thread_role import (
    parse_role_claim,
    session_rights_of,
)
from tests.spec import proves

HUMAN, AGENT = Kind.HUMAN, Kind.AGENT


@proves("OPEN-121")
@pytest.mark.parametrize(
    ("kind", "roles", "expected"),
    [
        (HUMAN, "admin driver", ThreadRole.OPERATOR),
        (HUMAN, "driver", ThreadRole.WORKER),
        (HUMAN, "driver approver", ThreadRole.REVIEWER),
        (HUMAN, "navigator", ThreadRole.REVIEWER),
        (HUMAN, "approver observer", ThreadRole.REVIEWER),
        (HUMAN, "observer", ThreadRole.WORKER),
        (HUMAN, "", ThreadRole.WORKER),
        (AGENT, "driver", ThreadRole.WORKER),
        (AGENT, "driver navigator", ThreadRole.WORKER),
        (AGENT, "navigator", ThreadRole.REVIEWER),
        (AGENT, "adversary", ThreadRole.REVIEWER),
        (AGENT, "admin", ThreadRole.WORKER),
    ],
)
def test_what_roles_are_called_among_threads(kind: Kind, roles: str, expected: ThreadRole) -> None:
    assert thread_role_of(kind, frozenset(map(Role, roles.split()))) is expected


@proves("UNI-13", "OPEN-121")
@pytest.mark.parametrize(
    ("kind", "roles", "expected"),
    [
        (HUMAN, "driver", ThreadRole.ORCHESTRATOR),
        (HUMAN, "admin", ThreadRole.OPERATOR),
        (HUMAN, "observer", ThreadRole.WORKER),
        (AGENT, "driver", ThreadRole.WORKER),
    ],
)
def test_a_person_who_manages_participants_and_drives_is_an_orchestrator(
    kind: Kind, roles: str, expected: ThreadRole
) -> None:
    manages = frozenset({Capability.MANAGE_PARTICIPANTS})
    assert thread_role_of(kind, frozenset(map(Role, roles.split())), manages) is expected


@proves("OPEN-121")
@pytest.mark.parametrize(
    ("claim", "kind", "expected"),
    [
        *((each, HUMAN, each) for each in ThreadRole),
        ("operator", AGENT, ThreadRole.WORKER),
        ("orchestrator", AGENT, ThreadRole.ORCHESTRATOR),
        ("emperor", HUMAN, ThreadRole.WORKER),
        ("", HUMAN, ThreadRole.WORKER),
    ],
)
def test_a_claim_nobody_knows_has_the_least_privilege(
    claim: str, kind: Kind, expected: ThreadRole
) -> None:
    assert parse_role_claim(claim, kind) is expected


@proves("UNI-13")
@pytest.mark.parametrize(
    ("kind", "names", "roles", "rights"),
    [
        (Kind.HUMAN, ["orchestrator"], {Role.DRIVER}, {Capability.MANAGE_PARTICIPANTS}),
        (Kind.AGENT, ["orchestrator", "worker"], {Role.DRIVER}, set()),
        (Kind.AGENT, ["reviewer"], {Role.NAVIGATOR}, set()),
        (Kind.HUMAN, ["operator"], {Role.ADMIN}, set()),
        (Kind.AGENT, ["operator", "admin", "approver"], set(), set()),
        (Kind.HUMAN, [], set(), set()),
    ],
)
def test_what_a_seat_is_in_a_session(
    kind: Kind, names: list[str], roles: set[Role], rights: set[Capability]
) -> None:
    assert session_rights_of(kind, names) == (frozenset(roles), frozenset(rights))
