"""Tokens that were issued, and tokens that were forged."""

import base64
import json
from collections.abc import Container
from enum import Enum
from typing import Any

import pytest

from accord.api.tokens import IssuedToken
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_signing import Identity, Keyring, issue_token, verify_token

T0 = 1_750_000_000_000
NOW = T0 // 1000


class Gone(Enum):
    """In the place of a claim that is not made; its name is the same in every process."""

    GONE = "gone"


GONE = Gone.GONE


def issued(ring: Keyring, **wish: Any) -> IssuedToken:
    usual = {"id": "alice", "kind": Kind.HUMAN, "roles": {Role.DRIVER}, "ttl_s": 3600}
    return issue_token(ring, **{"now": T0, **usual, **wish})


def check(ring: Keyring, token: str, at: int = T0, revoked: Container[str] = ()) -> Identity:
    return verify_token(token, at, ring, revoked)


def refusal(ring: Keyring, token: str, at: int = T0, revoked: Container[str] = ()) -> str:
    """The sentence with which the token is refused."""
    with pytest.raises(Refused) as no:
        check(ring, token, at, revoked)
    assert no.value.reason is Reason.UNAUTHENTICATED
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
    kid = ring.public_keys()[-1].kid
    head = {"alg": "EdDSA", "typ": "JWT", "kid": kid, **header}
    parts = (head, claims() if payload is None else payload)
    text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
    return f"{text}.{encoded(ring.sign(text.encode())[1])}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
