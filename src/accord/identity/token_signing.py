"""Signing and verifying tokens: the only place where a credential becomes an Actor."""

import ipaddress
import re
import secrets
from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Final, NamedTuple

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from accord.api.tokens import IssuedToken, PublicKey
from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor, CredentialRights, max_permissions_of
from accord.core.kernel.ids import is_id
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Kind, Role, ThreadRole, thread_role_of
from accord.core.kernel.ulid import ulid
from accord.core.people.state import CLOCK_SKEW_MS, Token, is_principal_id
from accord.core.people.thread_role import parse_role_claim
from accord.core.people.token_claims import DEFAULT_TOKEN_LIFE_S, Claims
from accord.identity.keyring import Keyring, KeyringError

__all__ = [
    "Claims",
    "Identity",
    "IssuedToken",
    "Keyring",
    "KeyringError",
    "PublicKey",
    "TokenVerifier",
    "bearer_token",
    "ensure_loopback",
    "issue_token",
    "sign_recorded",
    "trusted_actor",
    "verify_token",
]

ALGORITHM = "EdDSA"
MAX_VERIFIED_TOKENS = 4096
ISSUER: Final = "accord"
MAX_TOKEN_BYTES = 8192
MIN_TOKEN_LIFE_S = 60
MAX_TOKEN_LIFE_S = 365 * 86_400

BEARER_SCHEME = "bearer"
BEARER_SUBPROTOCOL_PREFIX = "bearer."

_JWS = jwt.PyJWS(algorithms=[ALGORITHM])
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
# The last character of 64 encoded bytes has four unused bits; only their zero form is accepted.
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{85}[AQgw]")
_ENCODER = msgspec.json.Encoder(order="deterministic")


class Identity(NamedTuple):
    """The actor a token proves; connections opened with it end at `expires_at`."""

    actor: Actor
    claims: Claims
    expires_at: Instant


def issue_token(  # noqa: PLR0913 - a credential says this much
    keyring: Keyring,
    *,
    id: str,
    kind: Kind,
    roles: Collection[Role],
    now: Instant,
    workspace: str = DEFAULT_WORKSPACE,
    ttl_s: int = DEFAULT_TOKEN_LIFE_S,
    labels: Collection[str] = (),
    capabilities: Collection[Capability] = (),
    name: str = "",
    role: ThreadRole | None = None,
) -> IssuedToken:
    """Sign a token; `role` overrides the MSG role derived from the roles."""
    role_set = frozenset(roles)
    claims = Claims(
        iss=ISSUER,
        agent_id=id,
        workspace_id=workspace,
        role=role or thread_role_of(kind, role_set, frozenset(capabilities)),
        session_id=_new_id(now),
        iat=now // 1000,
        exp=now // 1000 + ttl_s,
        jti=_new_id(now),
        kind=kind,
        roles=role_set,
        capabilities=frozenset(capabilities),
        labels=frozenset(labels),
        name=name,
    )
    if not MIN_TOKEN_LIFE_S <= ttl_s <= MAX_TOKEN_LIFE_S:
        raise Refused(
            Reason.MALFORMED, "A token's lifetime must be between one minute and 365 days"
        )
    if problem := next(_claim_errors(claims), None):
        raise Refused(Reason.MALFORMED, problem)
    return _sign(keyring, claims)


def sign_recorded(keyring: Keyring, record: Token) -> IssuedToken:
    """The token of a device as the log records it; signing it twice gives the same token.

    Raises Refused when another key signs by now.
    """
    if record.key != keyring.active:
        raise Refused(Reason.UNAVAILABLE, "The signing key has just changed; try again")
    return _sign(
        keyring,
        Claims(
            iss=ISSUER,
            agent_id=record.id,
            workspace_id=record.workspace,
            role=thread_role_of(record.kind, record.roles, record.capabilities),
            session_id=record.device,
            iat=record.issued_at // 1000,
            exp=record.expires_at // 1000,
            jti=record.jti,
            kind=record.kind,
            roles=record.roles,
            capabilities=record.capabilities,
            labels=record.labels,
            name=record.name,
        ),
    )


def verify_token(token: str, now: Instant, keyring: Keyring, revoked: Container[str]) -> Identity:
    """The identity this token proves at `now`.

    Raises Refused unless everything about it is valid.
    """
    claims = _decode_token(token, keyring)
    if problem := next(_claim_errors(claims), None):
        raise _unauthenticated(problem)
    if claims.iat * 1000 > now + CLOCK_SKEW_MS:
        raise _unauthenticated(
            "The token was issued in the future; check the clocks of both machines"
        )
    ensure_token_live(claims, now, revoked)
    rights = CredentialRights(claims.roles, claims.capabilities, claims.labels)
    max_permissions = max_permissions_of(claims.kind, rights)
    actor = Actor(
        claims.agent_id,
        claims.kind,
        claims.session_id,
        claims.workspace_id,
        rights,
        max_permissions,
        parse_role_claim(claims.role, claims.kind),
    )
    return Identity(actor, claims, claims.exp * 1000)


class TokenVerifier:
    """Verifies tokens, and the signature of each only once; the least recently used is forgotten.

    Checking a signature takes far longer than everything else that a short request does. Whether
    the token has expired or was revoked, and whether its key is still here, is checked every time.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._verified: OrderedDict[str, tuple[Identity, str, Ed25519PublicKey | None]]
        self._verified = OrderedDict()

    def verify(self, token: str, now: Instant, revoked: Container[str]) -> Identity:
        """Like `verify_token`; raises Refused."""
        known = self._verified.get(token)
        if known is not None:
            identity, kid, key = known
            if self._keyring.public_key(kid) is key:
                ensure_token_live(identity.claims, now, revoked)
                self._verified.move_to_end(token)
                return identity
        identity = verify_token(token, now, self._keyring, revoked)
        kid = str(_JWS.get_unverified_header(token)["kid"])
        self._verified[token] = (identity, kid, self._keyring.public_key(kid))
        if len(self._verified) > MAX_VERIFIED_TOKENS:
            self._verified.popitem(last=False)
        return identity


def ensure_token_live(claims: Claims, now: Instant, revoked: Container[str]) -> None:
    """Refuse a token that has expired or was revoked."""
    if now >= claims.exp * 1000 + CLOCK_SKEW_MS:
        raise _unauthenticated("The token has expired; ask an operator for a new one")
    if claims.jti in revoked:
        raise _unauthenticated("The token was revoked; ask an operator for a new one")


def bearer_token(authorization: Iterable[str] = (), subprotocols: Iterable[str] = ()) -> str | None:
    """The one token in these two headers.

    None when there is none, Refused when there are several.
    """
    tokens = {*_tokens_in_authorization(authorization), *_tokens_in_subprotocols(subprotocols)}
    if len(tokens) > 1:
        raise _unauthenticated("Send only one token")
    return next(iter(tokens), None)


def trusted_actor(id: str, kind: Kind, runtime: str = "") -> Actor:
    """The actor for a claimed name, on servers that do not require tokens (`--auth open`)."""
    if not is_principal_id(id) or kind is Kind.SYSTEM:
        raise _unauthenticated(f"{id!r} is not a valid name")
    return Actor(id, kind, runtime)


def ensure_loopback(host: str) -> None:
    """Refuse `--auth open` on an address that other machines can reach."""
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = host.lower() == "localhost"
    if not loopback:
        address = host or "every address"
        raise Refused(
            Reason.FORBIDDEN,
            f"--auth open works only on this machine's own address, not on {address}; "
            "use --host 127.0.0.1 or --auth token",
        )


def _new_id(now: Instant) -> str:
    return ulid(now, secrets.token_bytes(10))


def _unauthenticated(sentence: str) -> Refused:
    return Refused(Reason.UNAUTHENTICATED, sentence)


def _claim_errors(claims: Claims) -> Iterator[str]:
    if not is_principal_id(claims.agent_id) or claims.kind is Kind.SYSTEM:
        yield f"{claims.agent_id!r} is not a valid name"
    opaque = (claims.workspace_id, claims.session_id, claims.jti, *claims.labels)
    if not all(is_id(text) for text in opaque):
        yield "Workspaces and labels must have 1 to 128 printable characters"
    if claims.name and not is_id(claims.name):
        yield "A name may have up to 128 printable characters"
    if claims.role == ThreadRole.OPERATOR and claims.kind is not Kind.HUMAN:
        yield "Only a human can be an operator"


def _sign(keyring: Keyring, claims: Claims) -> IssuedToken:
    kid, key = keyring.signer()
    token = _JWS.encode(_ENCODER.encode(claims), key, ALGORITHM, headers={"kid": kid})
    if len(token) > MAX_TOKEN_BYTES:
        raise Refused(
            Reason.TOO_LARGE,
            f"The token would be larger than {MAX_TOKEN_BYTES} bytes; use fewer labels",
        )
    return IssuedToken(token, claims, kid, tuple(_warnings(claims)))


def _warnings(claims: Claims) -> Iterator[str]:
    unused = claims.roles & {Role.ADMIN, Role.APPROVER}
    if claims.kind is Kind.AGENT and unused:
        roles = " and ".join(sorted(unused))
        yield f"{claims.agent_id} is an agent, so its approvals as {roles} never count"


def _decode_token(token: str, keyring: Keyring) -> Claims:
    if len(token) > MAX_TOKEN_BYTES:
        raise _unauthenticated(f"The token is larger than {MAX_TOKEN_BYTES} bytes")
    if not _COMPACT.fullmatch(token):
        raise _unauthenticated("This is not a token")
    try:
        payload = _verified_payload(token, keyring)
        return msgspec.json.decode(payload, type=Claims)
    except jwt.InvalidSignatureError:
        raise _unauthenticated("The token's signature is invalid") from None
    except msgspec.ValidationError as error:
        raise _unauthenticated(f"The token's claims are invalid: {error}") from None
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise _unauthenticated("This is not a token") from None


def _verified_payload(token: str, keyring: Keyring) -> bytes:
    header = _JWS.get_unverified_header(token)
    if header.get("alg") != ALGORITHM:
        raise _unauthenticated(f"Tokens must be signed with {ALGORITHM}")
    kid = header.get("kid")
    key = keyring.public_key(kid) if isinstance(kid, str) else None
    if key is None:
        raise _unauthenticated(
            "The key that signed this token is unknown here; it may have been removed"
        )
    if not _SIGNATURE.fullmatch(token.rpartition(".")[2]):
        raise _unauthenticated("The token's signature is invalid")
    payload: bytes = _JWS.decode(token, key, algorithms=[ALGORITHM])
    return payload


def _tokens_in_authorization(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() != BEARER_SCHEME or not token.strip():
            raise _unauthenticated("Send `Authorization: Bearer` followed by a token")
        yield token.strip()


def _tokens_in_subprotocols(values: Iterable[str]) -> Iterator[str]:
    offers = (offer.strip() for value in values for offer in value.split(","))
    for offer in offers:
        if offer.startswith(BEARER_SUBPROTOCOL_PREFIX):
            yield offer.removeprefix(BEARER_SUBPROTOCOL_PREFIX)
