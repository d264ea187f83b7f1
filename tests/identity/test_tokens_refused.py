"""Tokens that are refused, and why; the few that are not."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from accord.identity.token_signing import MAX_TOKEN_BYTES, Keyring
from tests.identity.token_forgery import GONE, T0, check, claims, encoded, forged, issued, refusal
from tests.spec import proves

MINUTE = 60_000


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
    assert "larger than" in refusal(ring, token + "A" * MAX_TOKEN_BYTES)


@proves("OPEN-122")
@pytest.mark.parametrize("none", ["none", "None", "NONE", ""])
def test_a_token_without_a_signature_is_refused(ring: Keyring, token: str, none: str) -> None:
    body = token.split(".")[1]
    head = encoded(json.dumps({"alg": none, "kid": ring.public_keys()[-1].kid}).encode())

    assert "EdDSA" in refusal(ring, f"{head}.{body}.")
    assert refusal(ring, token.rpartition(".")[0] + ".")


@proves("OPEN-122")
def test_public_key_is_not_accepted_as_an_hmac_secret(ring: Keyring) -> None:
    """The classic: HS256 with the public key as the secret."""
    key = ring.public_keys()[-1]
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
    mine = ring.public_keys()[-1].kid

    assert "unknown here" in refusal(ring, issued(theirs).token)
    assert "signature" in refusal(ring, forged(theirs, kid=mine, jwk={"kty": "OKP"}))


def test_what_we_must_understand_but_do_not_is_refused(ring: Keyring) -> None:
    assert refusal(ring, forged(ring, crit=["b64"], b64=False))


def test_anothers_claims_under_a_good_signature_are_refused(ring: Keyring, token: str) -> None:
    head, _, signature = token.split(".")
    body = encoded(json.dumps(claims(agent_id="mallory")).encode())

    assert "signature" in refusal(ring, f"{head}.{body}.{signature}")


def test_signature_has_only_one_accepted_encoding(ring: Keyring, token: str) -> None:
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
        ({"agent_id": ""}, "valid name"),
        ({"agent_id": "x" * 129}, "valid name"),
        ({"agent_id": "a\u0000b"}, "valid name"),
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
    assert check(ring, forged(ring, claims(nbf=0, aud="x", more={}))).actor.principal == "alice"


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
    assert check(ring, token, T0 - MINUTE).actor.principal == "alice"
    assert "future" in refusal(ring, token, T0 - MINUTE - 1)


@proves("OPEN-122")
def test_a_revoked_token_is_refused_and_others_are_not(ring: Keyring) -> None:
    one, two = issued(ring), issued(ring)
    revoked = {one.claims.jti: None}

    assert "revoked" in refusal(ring, one.token, revoked=revoked)
    assert check(ring, two.token, revoked=revoked).actor.principal == "alice"


def test_tokens_outlive_a_rotation_and_die_with_their_key(tmp_path: Path) -> None:
    server, shell = Keyring.open(tmp_path / "keys"), Keyring.open(tmp_path / "keys")
    before = issued(server)
    shell.rotate()
    after = issued(shell)

    assert check(server, before.token).actor == check(shell, before.token).actor
    assert check(server, after.token).claims.jti == after.claims.jti
    assert issued(server).key == after.key

    shell.forget(before.key)
    assert "removed" in refusal(server, before.token)
    assert check(server, after.token).actor.principal == "alice"
