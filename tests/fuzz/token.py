"""A credential is what was signed here, whole and in time; whatever else it is, it is refused."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.people.state import is_seat
from accord.transports import identity
from accord.transports.identity import Identity, Keyring, bearer, issue, verify
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

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
HEADS = ({"alg": "EdDSA"}, {"alg": "none"}, {"alg": "HS256"}, {"alg": "EdDSA", "jwk": {}})


def seeds() -> Iterator[bytes]:
    """Claims to be signed; heads and claims that nobody signed; and plain nonsense."""
    yield json.dumps(CLAIMS).encode()
    for head in HEADS:
        yield (
            b"\x01"
            + json.dumps(head | {"kid": "KID"}).encode()
            + b"\n"
            + json.dumps(CLAIMS).encode()
        )
    yield b"\x02a.b.c"
    yield b"\x02Bearer a.b.c\npvp.v1, bearer.a.b.c"


def trial(place: Path) -> Trial:
    """One ring for all of them."""
    ring = Keyring.open(place / "keys", lambda: T0)
    good = issue(ring, id="alice", kind=Kind.HUMAN, roles=[Role.ADMIN], now=T0).token
    return Desk(ring, good).look


def encoded(data: bytes) -> bytes:
    """A part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Desk:
    """Where credentials are shown."""

    def __init__(self, ring: Keyring, good: str) -> None:
        self.ring = ring
        self.kid, self.key = ring.signer()
        self.signature = good.rpartition(".")[2].encode()

    def look(self, data: bytes) -> None:
        """By the first byte: claims that we sign, parts that we do not, or any text."""
        if data[:1] == b"\x01":
            assert self.verified(self.unsigned(data[1:])) is None, "accepted unsigned"
        elif data[:1] == b"\x02":
            self.found(data[1:].decode("latin-1"))
        else:
            self.check(self.verified(self.signed(data)))

    def unsigned(self, data: bytes) -> str:
        """Head and claims under somebody else's signature."""
        head, _, claims = data.replace(b"KID", self.kid.encode()).partition(b"\n")
        return b".".join((encoded(head), encoded(claims), self.signature)).decode()

    def signed(self, claims: bytes) -> str:
        """Any claims, signed with the right key."""
        return jwt.PyJWS().encode(claims, self.key, "EdDSA", headers={"kid": self.kid})

    def verified(self, token: str) -> Identity | None:
        """Whom it speaks for, if anybody."""
        try:
            return verify(token, T0, self.ring, {"revoked"})
        except Refused as no:
            expect_nobody(no)
            return None

    def check(self, who: Identity | None) -> None:
        """Nobody impossible came out of it."""
        if who is not None:
            assert is_seat(who.actor.seat)
            assert who.actor.kind is not Kind.SYSTEM
            assert who.claims.jti != "revoked"
            assert T0 - 60_000 <= who.expires_at
            assert not (who.actor.is_operator and who.actor.kind is Kind.AGENT)

    def found(self, text: str) -> None:
        """A header's words, and what they are as a token."""
        authorization, _, offered = text.partition("\n")
        words: dict[str, Any] = {}
        if authorization:
            words["authorization"] = [authorization]
        try:
            token = bearer(subprotocols=[offered], **words)
        except Refused as no:
            expect_nobody(no)
            return
        assert token is None or self.verified(token) is None


def expect_nobody(no: Refused) -> None:
    """Refused for the one reason there is."""
    assert no.why is Why.UNAUTHENTICATED, no
    reached(no.detail[:40])


def plant(patch: pytest.MonkeyPatch) -> None:
    """The signature is not looked at."""
    usual = identity._JWS.decode

    def careless(token: str, key: Any, **more: Any) -> Any:
        more["options"] = {"verify_signature": False}
        return usual(token, key, **more)

    patch.setattr(identity._JWS, "decode", careless)
