"""From a credential to an Actor, and every way in which that is refused."""

import base64
import hashlib
import hmac
import json
from collections.abc import Container
from enum import Enum
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor, Grant, ceiling
from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.people.standing import Standing
from accord.transports.identity import (
    LONGEST_LIFE,
    LONGEST_TOKEN,
    Identity,
    Issued,
    Keyring,
    bearer,
    ensure_loopback,
    issue,
    open_actor,
    verify,
)
from tests.spec import proves

T0 = 1_750_000_000_000
NOW = T0 // 1000
MINUTE = 60_000


class Gone(Enum):
    """In the place of a claim that is not made; its name is the same in every process."""

    GONE = "gone"


GONE = Gone.GONE


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    return Keyring.open(tmp_path_factory.mktemp("home") / "keys")


@pytest.fixture(scope="module")
def token(ring: Keyring) -> str:
    return issued(ring).token


def issued(ring: Keyring, **wish: Any) -> Issued:
    usual = {"id": "alice", "kind": Kind.HUMAN, "roles": {Role.DRIVER}, "ttl_s": 3600}
    return issue(ring, **{"now": T0, **usual, **wish})


def check(ring: Keyring, token: str, at: int = T0, revoked: Container[str] = ()) -> Identity:
    return verify(token, at, ring, revoked)


def refusal(ring: Keyring, token: str, at: int = T0, revoked: Container[str] = ()) -> str:
    """The sentence with which the token is refused."""
    with pytest.raises(Refused) as no:
        check(ring, token, at, revoked)
    assert no.value.why is Why.UNAUTHENTICATED
    assert len(token) < 40 or token not in no.value.detail
    return no.value.detail


def claims(**changes: Any) -> dict[str, Any]:
    usual = {
        "iss": "accord",
        "agent_id": "alice",
        "workspace_id": "default",
        "role": "worker",
        "session_id": "S1",
        "iat": NOW,
        "exp": NOW + 3600,
        "jti": "J1",
        "kind": "human",
        "roles": ["driver"],
    }
    return {name: value for name, value in {**usual, **changes}.items() if value is not GONE}


def forged(ring: Keyring, payload: Any = None, **header: Any) -> str:
    """A token with a good signature of ours over whatever we like."""
    kid = ring.list()[-1].kid
    head = {"alg": "EdDSA", "typ": "JWT", "kid": kid, **header}
    parts = (head, claims() if payload is None else payload)
    text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    return f"{text}.{encoded(ring.sign(text.encode())[1])}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


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
    assert header == {"alg": "EdDSA", "typ": "JWT", "kid": ring.list()[-1].kid}
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
    public = ring.list()[-1].public

    payload = jwt.decode(token, public, ["EdDSA"], options={"verify_exp": False})

    assert payload["agent_id"] == "alice"


@proves("MSG-1.1-2", "PVP-20.1-1")
def test_the_actor_is_what_the_claims_say(ring: Keyring) -> None:
    given = issued(ring, workspace="lab", labels={"security"}, capabilities={Capability.FORK})

    who = check(ring, given.token)

    grant = Grant(frozenset({Role.DRIVER}), frozenset({Capability.FORK}), frozenset({"security"}))
    runtime, most = given.claims.session_id, ceiling(Kind.HUMAN, grant)
    assert who.actor == Actor("alice", Kind.HUMAN, runtime, "lab", grant, most)
    assert who.claims == given.claims
    assert who.expires_at == T0 + 3_600_000


@proves("UNI-2", "UNI-5")
def test_each_token_is_a_runtime_of_its_own_in_the_same_seat(ring: Keyring) -> None:
    one, two = (check(ring, issued(ring).token) for _ in range(2))

    assert one.actor.seat == two.actor.seat == "alice"
    assert len({one.actor.runtime, two.actor.runtime, one.claims.jti, two.claims.jti}) == 4


@proves("OPEN-122")
def test_a_token_counts_as_often_as_it_is_shown(ring: Keyring, token: str) -> None:
    assert check(ring, token) == check(ring, token)


def test_what_is_recorded_of_a_token_does_not_give_it_away(ring: Keyring) -> None:
    given = issued(ring, name="Alice")

    record = given.record()

    assert (record.jti, record.id, record.key) == (given.claims.jti, "alice", ring.list()[-1].kid)
    assert (record.issued_at, record.expires_at) == (T0, T0 + 3_600_000)
    assert given.token.rpartition(".")[2] not in repr(record)


@proves("OPEN-121")
def test_the_role_among_threads_follows_from_the_roles_or_is_given(ring: Keyring) -> None:
    assert issued(ring).claims.role == "orchestrator"
    assert issued(ring, kind=Kind.AGENT).claims.role == "worker"
    given = issued(ring, kind=Kind.AGENT, role=Standing.ORCHESTRATOR)
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


def test_usually_there_is_nothing_to_warn_of(ring: Keyring) -> None:
    assert issued(ring, roles={Role.ADMIN}).warnings == ()
    assert issued(ring, kind=Kind.AGENT).warnings == ()


# What is not issued


@proves("OPEN-4", "OPEN-11")
@pytest.mark.parametrize(
    "wish",
    [
        *({"id": name} for name in ("", "system", "system:policy", "SYSTEM", "a\nb", "x" * 129)),
        {"kind": Kind.SYSTEM},
        *({"ttl_s": life} for life in (59, 0, -1, LONGEST_LIFE + 1)),
        {"workspace": ""},
        {"labels": {"two\nlines"}},
        {"name": "a\tb"},
        {"name": "x" * 129},
        {"kind": Kind.AGENT, "role": Standing.OPERATOR},
    ],
    ids=repr,
)
def test_no_token_is_made_that_would_be_refused(ring: Keyring, wish: dict[str, Any]) -> None:
    with pytest.raises(Refused) as no:
        issued(ring, **wish)

    assert no.value.why is Why.MALFORMED


@pytest.mark.parametrize("life", [60, LONGEST_LIFE])
def test_lives_at_the_bounds_are_fine(ring: Keyring, life: int) -> None:
    assert check(ring, issued(ring, ttl_s=life).token).expires_at == T0 + life * 1000


def test_a_token_too_long_to_be_accepted_is_not_made(ring: Keyring) -> None:
    with pytest.raises(Refused) as no:
        issued(ring, labels={f"{number:0128}" for number in range(64)})

    assert no.value.why is Why.TOO_LARGE


# What is refused


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alice",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "..",
        "e30.e30.",
        "é.é.é",
        "\ud800.a.b",
        " a.b.c",
        "a.b.c\n",
        encoded(b"[" * 3000) + ".e30.AA",
        encoded(b'{"alg":' + b"[" * 3000) + ".e30.AA",
        encoded(b'"EdDSA"') + ".e30.AA",
        encoded(b"\xff\xfe") + ".e30.AA",
    ],
)
def test_what_is_no_token_is_refused(ring: Keyring, text: str) -> None:
    assert refusal(ring, text)


def test_a_token_that_is_too_long_is_not_even_looked_at(ring: Keyring, token: str) -> None:
    assert "more than" in refusal(ring, token + "A" * LONGEST_TOKEN)


@proves("OPEN-122")
@pytest.mark.parametrize("none", ["none", "None", "NONE", ""])
def test_a_token_without_a_signature_is_refused(ring: Keyring, token: str, none: str) -> None:
    body = token.split(".")[1]
    head = encoded(json.dumps({"alg": none, "kid": ring.list()[-1].kid}).encode())

    assert "EdDSA" in refusal(ring, f"{head}.{body}.")
    assert refusal(ring, token.rpartition(".")[0] + ".")


@proves("OPEN-122")
def test_the_public_key_is_no_password(ring: Keyring) -> None:
    """The classic: HS256 with the public key as the secret."""
    key = ring.list()[-1]
    head = encoded(json.dumps({"alg": "HS256", "kid": key.kid}).encode())
    text = f"{head}.{encoded(json.dumps(claims()).encode())}"
    signature = hmac.digest(key.public.encode(), text.encode(), hashlib.sha256)

    assert "EdDSA" in refusal(ring, f"{text}.{encoded(signature)}")


@proves("OPEN-122")
@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "Ed25519", "eddsa", "HS512", None, 1, []])
def test_another_algorithm_is_refused_even_with_a_good_signature(
    ring: Keyring, algorithm: Any
) -> None:
    assert "EdDSA" in refusal(ring, forged(ring, alg=algorithm))


@pytest.mark.parametrize("kid", ["unknown", "", "../keys", None, 7, ["a"]])
def test_a_key_nobody_knows_is_refused(ring: Keyring, kid: Any) -> None:
    assert refusal(ring, forged(ring, kid=kid))


def test_keys_that_come_with_the_token_are_not_believed(ring: Keyring, tmp_path: Path) -> None:
    theirs = Keyring.open(tmp_path / "keys")
    mine = ring.list()[-1].kid

    assert "No key" in refusal(ring, issued(theirs).token)
    assert "signature" in refusal(ring, forged(theirs, kid=mine, jwk={"kty": "OKP"}))


def test_what_we_must_understand_but_do_not_is_refused(ring: Keyring) -> None:
    assert refusal(ring, forged(ring, crit=["b64"], b64=False))


def test_anothers_claims_under_a_good_signature_are_refused(ring: Keyring, token: str) -> None:
    head, _, signature = token.split(".")
    body = encoded(json.dumps(claims(agent_id="mallory")).encode())

    assert "signature" in refusal(ring, f"{head}.{body}.{signature}")


def test_a_signature_has_one_spelling(ring: Keyring, token: str) -> None:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])

    for other in range(last + 1, last + 16):
        assert refusal(ring, token[:-1] + alphabet[other])
    for tail in ("=", "==", "A", "\n", " "):
        assert refusal(ring, token + tail)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(({name: GONE}, name) for name in claims()),
        ({"iss": "elsewhere"}, "iss"),
        ({"exp": "soon"}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": -1}, "exp"),
        ({"exp": 10**30}, "exp"),
        ({"exp": True}, "exp"),
        ({"iat": 1.5}, "iat"),
        ({"agent_id": 7}, "agent_id"),
        ({"role": ["operator"]}, "role"),
        ({"kind": "god"}, "kind"),
        ({"kind": "system"}, "alice"),
        ({"roles": "admin"}, "roles"),
        ({"roles": ["emperor"]}, "roles"),
        ({"labels": {"a": 1}}, "labels"),
        ({"capabilities": ["fly"]}, "capabilities"),
        ({"agent_id": ""}, "called"),
        ({"agent_id": "x" * 129}, "called"),
        ({"agent_id": "a\u0000b"}, "called"),
        ({"agent_id": "system"}, "system"),
        ({"agent_id": "system:timer"}, "system"),
        ({"workspace_id": ""}, "printable"),
        ({"session_id": ""}, "printable"),
        ({"jti": "\n"}, "printable"),
        ({"labels": [""]}, "printable"),
        ({"name": "\u202e" + "ecila"}, "name"),
        ({"kind": "agent", "role": "operator"}, "operator"),
    ],
    ids=repr,
)
@proves("MSG-1.1-1", "OPEN-11")
def test_claims_that_are_not_in_order_are_refused(
    ring: Keyring, changes: dict[str, Any], says: str
) -> None:
    assert says in refusal(ring, forged(ring, claims(**changes)))


@pytest.mark.parametrize("payload", [[], "text", 1, None, {"a": {"b": []}}])
def test_a_payload_that_is_no_set_of_claims_is_refused(ring: Keyring, payload: Any) -> None:
    assert refusal(ring, forged(ring, payload=[payload]))


def test_claims_we_do_not_know_do_no_harm(ring: Keyring) -> None:
    assert check(ring, forged(ring, claims(nbf=0, aud="x", more={}))).actor.seat == "alice"


@proves("OPEN-121")
def test_a_role_we_do_not_know_is_kept_as_it_is(ring: Keyring) -> None:
    assert check(ring, forged(ring, claims(role="emperor"))).claims.role == "emperor"


@proves("OPEN-122")
def test_a_token_ends_a_minute_after_its_time_and_not_before(ring: Keyring, token: str) -> None:
    end = T0 + 3_600_000

    assert check(ring, token, end + MINUTE - 1).expires_at == end
    assert "expired" in refusal(ring, token, end + MINUTE)
    assert "expired" in refusal(ring, token, end + 10**12)


@proves("OPEN-122")
def test_a_token_begins_up_to_a_minute_before_its_time(ring: Keyring, token: str) -> None:
    assert check(ring, token, T0 - MINUTE).actor.seat == "alice"
    assert "future" in refusal(ring, token, T0 - MINUTE - 1)


@proves("OPEN-122")
def test_a_revoked_token_is_refused_and_others_are_not(ring: Keyring) -> None:
    one, two = issued(ring), issued(ring)
    revoked = {one.claims.jti: None}

    assert "revoked" in refusal(ring, one.token, revoked=revoked)
    assert check(ring, two.token, revoked=revoked).actor.seat == "alice"


def test_tokens_outlive_a_rotation_and_die_with_their_key(tmp_path: Path) -> None:
    server, shell = Keyring.open(tmp_path / "keys"), Keyring.open(tmp_path / "keys")
    before = issued(server)
    shell.rotate()
    after = issued(shell)

    assert check(server, before.token).actor == check(shell, before.token).actor
    assert check(server, after.token).claims.jti == after.claims.jti
    assert issued(server).key == after.key

    shell.forget(before.key)
    assert "forgotten" in refusal(server, before.token)
    assert check(server, after.token).actor.seat == "alice"


# Whatever comes


@given(st.data())
def test_one_flipped_bit_anywhere_is_refused(
    ring: Keyring, token: str, data: st.DataObject
) -> None:
    letters = bytearray(token.encode())
    place = data.draw(st.integers(0, len(letters) - 1))
    letters[place] ^= 1 << data.draw(st.integers(0, 7))

    assert refusal(ring, letters.decode("latin-1"))


@given(st.data())
def test_one_other_byte_anywhere_is_refused(ring: Keyring, token: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda letter: letter != token[place]))

    assert refusal(ring, token[:place] + other + token[place + 1 :])


@given(st.text() | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*"))
@example("\x00")
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_arbitrary_text_is_refused_and_nothing_worse(ring: Keyring, text: str) -> None:
    assert refusal(ring, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c"]), JSON))
def test_arbitrary_headers_are_refused_and_nothing_worse(
    ring: Keyring, header: dict[str, Any]
) -> None:
    text = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims()).encode())}"

    assert refusal(ring, f"{text}.{encoded(bytes(64))}")


@given(st.dictionaries(st.sampled_from([*claims(), "labels", "capabilities", "name"]), JSON))
def test_arbitrary_claims_are_an_actor_or_refused(ring: Keyring, changes: dict[str, Any]) -> None:
    token = forged(ring, claims(**changes))

    assert kind_of(ring, token) in {Kind.HUMAN, Kind.AGENT, Why.UNAUTHENTICATED}


def kind_of(ring: Keyring, token: str) -> Kind | Why:
    try:
        return check(ring, token).actor.kind
    except Refused as no:
        return no.why


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
    assert bearer(authorization, subprotocols) == expected


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
        bearer(authorization, subprotocols)

    assert no.value.why is Why.UNAUTHENTICATED


# On trust


@proves("OPEN-8")
def test_on_trust_an_actor_has_no_grant(ring: Keyring) -> None:
    assert open_actor("alice", Kind.HUMAN, "tab-1") == Actor("alice", Kind.HUMAN, "tab-1")
    assert open_actor("alice", Kind.HUMAN).grant is None
    assert not open_actor("alice", Kind.HUMAN).is_operator


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
        open_actor(name, kind)

    assert no.value.why is Why.UNAUTHENTICATED


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

    assert no.value.why is Why.FORBIDDEN
