"""From a credential to an Actor, and every way in which that is refused."""

from typing import Any

import jwt
import pytest

from accord.core.kernel.actor import Actor, CredentialRights, max_permissions_of
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Kind, Role, ThreadRole
from accord.identity.token_signing import (
    MAX_TOKEN_LIFE_S,
    Keyring,
    bearer_token,
    ensure_loopback,
    trusted_actor,
)
from tests.identity.token_forgery import NOW, T0, check, decoded, issued
from tests.spec import proves

# What a token says


@proves("MSG-1.1-1", "PVP-20.1-1")
def test_a_token_carries_the_claims_of_msg_and_ours(ring: Keyring) -> None:
    given = issued(
        ring,
        roles={Role.ADMIN, Role.DRIVER},
        workspace="lab",
        labels={"security"},
        capabilities={Capability.APPROVE},
        name="Alice",
    )

    header, payload = (decoded(part) for part in given.token.split(".")[:2])
    assert header == {"alg": "EdDSA", "typ": "JWT", "kid": ring.public_keys()[-1].kid}
    assert payload == {
        "iss": "accord",
        "agent_id": "alice",
        "workspace_id": "lab",
        "role": "operator",
        "session_id": given.claims.session_id,
        "iat": NOW,
        "exp": NOW + 3600,
        "jti": given.claims.jti,
        "kind": "human",
        "roles": ["admin", "driver"],
        "labels": ["security"],
        "capabilities": ["approve"],
        "name": "Alice",
    }


def test_any_library_can_check_a_token_with_the_public_key(ring: Keyring, token: str) -> None:
    public = ring.public_keys()[-1].public

    payload = jwt.decode(token, public, ["EdDSA"], options={"verify_exp": False})

    assert payload["agent_id"] == "alice"


@proves("MSG-1.1-2", "PVP-20.1-1")
def test_the_actor_is_what_the_claims_say(ring: Keyring) -> None:
    given = issued(ring, workspace="lab", labels={"security"}, capabilities={Capability.FORK})

    who = check(ring, given.token)

    grant = CredentialRights(
        frozenset({Role.DRIVER}), frozenset({Capability.FORK}), frozenset({"security"})
    )
    runtime, most = given.claims.session_id, max_permissions_of(Kind.HUMAN, grant)
    role = ThreadRole.WORKER
    assert who.actor == Actor("alice", Kind.HUMAN, runtime, "lab", grant, most, role)
    assert who.claims == given.claims
    assert who.expires_at == T0 + 3_600_000


@proves("UNI-2", "UNI-5")
def test_each_token_is_a_runtime_of_its_own_in_the_same_seat(ring: Keyring) -> None:
    one, two = (check(ring, issued(ring).token) for _ in range(2))

    assert one.actor.principal == two.actor.principal == "alice"
    assert len({one.actor.runtime, two.actor.runtime, one.claims.jti, two.claims.jti}) == 4


@proves("OPEN-122")
def test_a_token_counts_as_often_as_it_is_shown(ring: Keyring, token: str) -> None:
    assert check(ring, token) == check(ring, token)


def test_what_is_recorded_of_a_token_does_not_give_it_away(ring: Keyring) -> None:
    given = issued(ring, name="Alice")

    record = given.public_record()

    assert (record.jti, record.id, record.key) == (
        given.claims.jti,
        "alice",
        ring.public_keys()[-1].kid,
    )
    assert (record.issued_at, record.expires_at) == (T0, T0 + 3_600_000)
    assert given.token.rpartition(".")[2] not in repr(record)


@proves("OPEN-121")
def test_the_role_among_threads_follows_from_the_roles_or_is_given(ring: Keyring) -> None:
    assert issued(ring).claims.role == "worker"
    assert issued(ring, kind=Kind.AGENT).claims.role == "worker"
    given = issued(ring, kind=Kind.AGENT, role=ThreadRole.ORCHESTRATOR)
    assert check(ring, given.token).claims.role == "orchestrator"


@proves("OPEN-12")
@pytest.mark.parametrize("role", [Role.ADMIN, Role.APPROVER])
def test_an_agent_may_be_called_approver_but_one_is_told_that_it_never_counts(
    ring: Keyring, role: Role
) -> None:
    given = issued(ring, id="claude", kind=Kind.AGENT, roles={role, Role.DRIVER})

    (warning,) = given.warnings
    assert "claude is an agent" in warning
    assert not check(ring, given.token).actor.is_operator


def test_ordinary_tokens_have_no_warnings(ring: Keyring) -> None:
    assert issued(ring, roles={Role.ADMIN}).warnings == ()
    assert issued(ring, kind=Kind.AGENT).warnings == ()


# What is not issued


@proves("OPEN-4", "OPEN-11")
@pytest.mark.parametrize(
    "wish",
    [
        *({"id": name} for name in ("", "system", "system:policy", "SYSTEM", "a\nb", "x" * 129)),
        {"kind": Kind.SYSTEM},
        *({"ttl_s": life} for life in (59, 0, -1, MAX_TOKEN_LIFE_S + 1)),
        {"workspace": ""},
        {"labels": {"two\nlines"}},
        {"name": "a\tb"},
        {"name": "x" * 129},
        {"kind": Kind.AGENT, "role": ThreadRole.OPERATOR},
    ],
    ids=repr,
)
def test_no_token_is_made_that_would_be_refused(ring: Keyring, wish: dict[str, Any]) -> None:
    with pytest.raises(Refused) as no:
        issued(ring, **wish)

    assert no.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("life", [60, MAX_TOKEN_LIFE_S])
def test_lives_at_the_bounds_are_fine(ring: Keyring, life: int) -> None:
    assert check(ring, issued(ring, ttl_s=life).token).expires_at == T0 + life * 1000


def test_a_token_too_long_to_be_accepted_is_not_made(ring: Keyring) -> None:
    with pytest.raises(Refused) as no:
        issued(ring, labels={f"{number:0128}" for number in range(64)})

    assert no.value.reason is Reason.TOO_LARGE


# Where a token is found


@proves("PVP-20.1-1")
@pytest.mark.parametrize(
    ("authorization", "subprotocols", "expected"),
    [
        ([], [], None),
        (["Bearer a.b.c"], [], "a.b.c"),
        (["bearer   a.b.c "], [], "a.b.c"),
        ([], ["pvp.v1"], None),
        ([], ["pvp.v1", "bearer.a.b.c"], "a.b.c"),
        ([], ["pvp.v1, bearer.a.b.c"], "a.b.c"),
        (["Bearer a.b.c"], ["bearer.a.b.c", "pvp.v1"], "a.b.c"),
    ],
)
def test_a_token_is_found_in_either_header(
    authorization: list[str], subprotocols: list[str], expected: str | None
) -> None:
    assert bearer_token(authorization, subprotocols) == expected


@pytest.mark.parametrize(
    ("authorization", "subprotocols"),
    [
        (["Bearer a.b.c", "Bearer d.e.f"], []),
        (["Bearer a.b.c"], ["bearer.d.e.f"]),
        ([], ["bearer.a.b.c", "bearer.d.e.f"]),
        (["Basic YTpi"], []),
        (["Bearer"], []),
        (["Bearer "], []),
        ([""], []),
        (["a.b.c"], []),
    ],
)
def test_two_tokens_or_none_where_one_should_be_are_refused(
    authorization: list[str], subprotocols: list[str]
) -> None:
    with pytest.raises(Refused) as no:
        bearer_token(authorization, subprotocols)

    assert no.value.reason is Reason.UNAUTHENTICATED


# On trust


@proves("OPEN-8")
def test_on_trust_an_actor_has_no_grant(ring: Keyring) -> None:
    assert trusted_actor("alice", Kind.HUMAN, "tab-1") == Actor("alice", Kind.HUMAN, "tab-1")
    assert trusted_actor("alice", Kind.HUMAN).credential is None
    assert not trusted_actor("alice", Kind.HUMAN).is_operator


@proves("OPEN-11")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("system", Kind.HUMAN),
        ("system:timer", Kind.AGENT),
        ("", Kind.HUMAN),
        ("x" * 129, Kind.AGENT),
        ("alice", Kind.SYSTEM),
    ],
)
def test_even_on_trust_nobody_is_the_server(name: str, kind: Kind) -> None:
    with pytest.raises(Refused) as no:
        trusted_actor(name, kind)

    assert no.value.reason is Reason.UNAUTHENTICATED


@proves("OPEN-8")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.8.7", "::1", "[::1]", "localhost", "LOCALHOST"]
)
def test_this_machine_alone_may_be_trusted(host: str) -> None:
    ensure_loopback(host)


@proves("OPEN-8")
@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",  # noqa: S104 - it is refused
        *("", "::", "*", "192.168.1.1", "10.0.0.1", "fe80::1", "8.8.8.8", "2130706433"),
        *(
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "127.1",
            "::ffff:1.2.3.4",
        ),
    ],
)
def test_no_other_address_may_be_trusted(host: str) -> None:
    with pytest.raises(Refused, match="--auth token") as no:
        ensure_loopback(host)

    assert no.value.reason is Reason.FORBIDDEN
