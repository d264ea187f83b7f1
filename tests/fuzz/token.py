"""A credential is what was signed here, whole and in time; whatever else it is, it is refused."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.state import is_principal_id
from accord.identity import token_signing
from accord.identity.token_signing import Identity, Keyring, bearer_token, issue_token, verify_token
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

T0 = 1_769_803_200_000
CLAIMS = {
    "iss": "accord",
    "agent_id": "alice",
    "workspace_id": "default",
    "role": "operator",
    "session_id": "s",
    "iat": T0 // 1000,
    "exp": T0 // 1000 + 3600,
    "jti": "j",
    "kind": "human",
    "roles": ["admin"],
    "capabilities": ["fork"],
    "labels": ["security"],
    "name": "Alice",
}
JWT_HEADERS = ({"alg": "EdDSA"}, {"alg": "none"}, {"alg": "HS256"}, {"alg": "EdDSA", "jwk": {}})


def seeds() -> Iterator[bytes]:
    """Claims to be signed; heads and claims that nobody signed; and plain nonsense."""
    yield json.dumps(CLAIMS).encode()
    for head in JWT_HEADERS:
        yield (
            b"\x01"
            + json.dumps(head | {"kid": "KID"}).encode()
            + b"\n"
            + json.dumps(CLAIMS).encode()
        )
    yield b"\x02a.b.c"
    yield b"\x02Bearer a.b.c\npvp.v1, bearer.a.b.c"


def make_runner(place: Path) -> FuzzInput:
    """One ring for all of them."""
    ring = Keyring.open(place / "keys", lambda: T0)
    good = issue_token(ring, id="alice", kind=Kind.HUMAN, roles=[Role.ADMIN], now=T0).token
    return TokenVerifier(ring, good).check_bytes


def base64url(data: bytes) -> bytes:
    """A part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class TokenVerifier:
    """Where credentials are shown."""

    def __init__(self, ring: Keyring, good: str) -> None:
        self.ring = ring
        self.kid, self.key = ring.signer()
        self.signature = good.rpartition(".")[2].encode()

    def check_bytes(self, data: bytes) -> None:
        """By the first byte: claims that we sign, parts that we do not, or any text."""
        if data[:1] == b"\x01":
            assert self.verify(self.forge(data[1:])) is None, "accepted unsigned"
        elif data[:1] == b"\x02":
            self.check_headers(data[1:].decode("latin-1"))
        else:
            self.check(self.verify(self.sign(data)))

    def forge(self, data: bytes) -> str:
        """Head and claims under somebody else's signature."""
        head, _, claims = data.replace(b"KID", self.kid.encode()).partition(b"\n")
        return b".".join((base64url(head), base64url(claims), self.signature)).decode()

    def sign(self, claims: bytes) -> str:
        """Any claims, signed with the right key."""
        return jwt.PyJWS().encode(claims, self.key, "EdDSA", headers={"kid": self.kid})

    def verify(self, token: str) -> Identity | None:
        """Whom it speaks for, if anybody."""
        try:
            return verify_token(token, T0, self.ring, {"revoked"})
        except Refused as no:
            expect_unauthenticated(no)
            return None

    def check(self, who: Identity | None) -> None:
        """Nobody impossible came out of it."""
        if who is not None:
            assert is_principal_id(who.actor.principal)
            assert who.actor.kind is not Kind.SYSTEM
            assert who.claims.jti != "revoked"
            assert T0 - 60_000 <= who.expires_at
            assert not (who.actor.is_operator and who.actor.kind is Kind.AGENT)

    def check_headers(self, text: str) -> None:
        """A header's words, and what they are as a token."""
        authorization, _, offered = text.partition("\n")
        words: dict[str, Any] = {}
        if authorization:
            words["authorization"] = [authorization]
        try:
            token = bearer_token(subprotocols=[offered], **words)
        except Refused as no:
            expect_unauthenticated(no)
            return
        assert token is None or self.verify(token) is None


def expect_unauthenticated(no: Refused) -> None:
    """Refused for the one reason there is."""
    assert no.reason is Reason.UNAUTHENTICATED, no
    mark_reached(no.detail[:40])


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """The signature is not looked at."""
    usual = token_signing._JWS.decode

    def careless(token: str, key: Any, **more: Any) -> Any:
        more["options"] = {"verify_signature": False}
        return usual(token, key, **more)

    patch.setattr(token_signing._JWS, "decode", careless)
