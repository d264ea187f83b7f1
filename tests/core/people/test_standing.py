"""The `role` claim of MSG."""

import pytest

from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.people.standing import Standing, derived, read, standing
from tests.spec import proves

HUMAN, AGENT = Kind.HUMAN, Kind.AGENT


@proves("OPEN-121")
@pytest.mark.parametrize(
    ("kind", "roles", "expected"),
    [
        (HUMAN, "admin driver", Standing.OPERATOR),
        (HUMAN, "driver", Standing.ORCHESTRATOR),
        (HUMAN, "driver approver", Standing.ORCHESTRATOR),
        (HUMAN, "navigator", Standing.REVIEWER),
        (HUMAN, "approver observer", Standing.REVIEWER),
        (HUMAN, "observer", Standing.WORKER),
        (HUMAN, "", Standing.WORKER),
        (AGENT, "driver", Standing.WORKER),
        (AGENT, "driver navigator", Standing.WORKER),
        (AGENT, "navigator", Standing.REVIEWER),
        (AGENT, "adversary", Standing.REVIEWER),
        (AGENT, "admin", Standing.WORKER),
    ],
)
def test_what_roles_are_called_among_threads(kind: Kind, roles: str, expected: Standing) -> None:
    assert standing(kind, frozenset(map(Role, roles.split()))) is expected


@proves("OPEN-121")
@pytest.mark.parametrize(
    ("claim", "kind", "expected"),
    [
        *((each, HUMAN, each) for each in Standing),
        ("operator", AGENT, Standing.WORKER),
        ("orchestrator", AGENT, Standing.ORCHESTRATOR),
        ("emperor", HUMAN, Standing.WORKER),
        ("", HUMAN, Standing.WORKER),
    ],
)
def test_a_claim_nobody_knows_has_the_least_privilege(
    claim: str, kind: Kind, expected: Standing
) -> None:
    assert read(claim, kind) is expected


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
    assert derived(kind, names) == (frozenset(roles), frozenset(rights))
