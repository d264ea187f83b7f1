"""From a credential to an Actor: tokens are signed and checked here, and nowhere else."""

import ipaddress
import re
import secrets
from collections.abc import Collection, Container, Iterable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

import jwt
import msgspec
from msgspec import Meta

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor, Grant, ceiling
from accord.core.kernel.authority import Capabilities, Capability, Kind, Role, Roles
from accord.core.kernel.ids import is_id
from accord.core.kernel.log import Instant
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.ulid import ulid
from accord.core.people.standing import Standing, standing
from accord.core.people.state import SKEW, Token, is_seat

from .keyring import Keyring, KeyringError, PublicKey

__all__ = [
    "Claims",
    "Identity",
    "Issued",
    "Keyring",
    "KeyringError",
    "PublicKey",
    "bearer",
    "ensure_loopback",
    "issue",
    "open_actor",
    "verify",
]

ALGORITHM = "EdDSA"
ISSUER: Final = "accord"
LONGEST_TOKEN = 8192
SHORTEST_LIFE = 60
LONGEST_LIFE = 365 * 86_400
USUAL_LIFE = 12 * 3600

SCHEME = "bearer"
SUBPROTOCOL = "bearer."

_JWS = jwt.PyJWS(algorithms=[ALGORITHM])
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
# 64 bytes end in a letter whose last four bits say nothing; only their zero form is a signature.
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{85}[AQgw]")
_ENCODER = msgspec.json.Encoder(order="deterministic")

Seconds = Annotated[int, Meta(ge=0, le=2**40)]


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """MSG 1.1's seven claims, and ours: what kind of actor this is and what it may ask for."""

    iss: Literal["accord"]
    agent_id: str
    workspace_id: str
    role: str
    session_id: str
    iat: Seconds
    exp: Seconds
    jti: str
    kind: Kind
    roles: Roles
    capabilities: Capabilities = frozenset()
    labels: frozenset[str] = frozenset()
    name: str = ""


class Issued(msgspec.Struct, frozen=True):
    """A token just made, for its holder alone; `warnings` are for who asked."""

    token: str
    claims: Claims
    key: str
    warnings: tuple[str, ...] = ()

    def record(self) -> Token:
        """What everybody may know of it."""
        claims = self.claims
        return Token(
            jti=claims.jti,
            id=claims.agent_id,
            kind=claims.kind,
            roles=claims.roles,
            issued_at=claims.iat * 1000,
            expires_at=claims.exp * 1000,
            key=self.key,
            workspace=claims.workspace_id,
            capabilities=claims.capabilities,
            labels=claims.labels,
            name=claims.name,
        )


class Identity(NamedTuple):
    """Who a token speaks for; what was opened with it ends at `expires_at`."""

    actor: Actor
    claims: Claims
    expires_at: Instant


def issue(  # noqa: PLR0913 - a credential says this much
    keyring: Keyring,
    *,
    id: str,
    kind: Kind,
    roles: Collection[Role],
    now: Instant,
    workspace: str = DEFAULT_WORKSPACE,
    ttl_s: int = USUAL_LIFE,
    labels: Collection[str] = (),
    capabilities: Collection[Capability] = (),
    name: str = "",
    role: Standing | None = None,
) -> Issued:
    """A signed token for somebody; `role` overrides what MSG would call these roles."""
    held = frozenset(roles)
    claims = Claims(
        iss=ISSUER,
        agent_id=id,
        workspace_id=workspace,
        role=role or standing(kind, held),
        session_id=_fresh(now),
        iat=now // 1000,
        exp=now // 1000 + ttl_s,
        jti=_fresh(now),
        kind=kind,
        roles=held,
        capabilities=frozenset(capabilities),
        labels=frozenset(labels),
        name=name,
    )
    if not SHORTEST_LIFE <= ttl_s <= LONGEST_LIFE:
        raise Refused(Why.MALFORMED, "A token lives between one minute and 365 days")
    if wrong := next(_flaws(claims), None):
        raise Refused(Why.MALFORMED, wrong)
    return _signed(keyring, claims)


def verify(token: str, now: Instant, keyring: Keyring, revoked: Container[str]) -> Identity:
    """Whom this token speaks for at `now`; refuses whatever is not wholly in order."""
    claims = _read(token, keyring)
    if wrong := next(_flaws(claims), None):
        raise _no(wrong)
    if claims.iat * 1000 > now + SKEW:
        raise _no("The token is from the future; check the clocks")
    ensure_live(claims, now, revoked)
    grant = Grant(claims.roles, claims.capabilities, claims.labels)
    most = ceiling(claims.kind, grant)
    actor = Actor(claims.agent_id, claims.kind, claims.session_id, claims.workspace_id, grant, most)
    return Identity(actor, claims, claims.exp * 1000)


def ensure_live(claims: Claims, now: Instant, revoked: Container[str]) -> None:
    """Neither over nor taken back at `now`; raises Refused."""
    if now >= claims.exp * 1000 + SKEW:
        raise _no("The token has expired; ask an operator for a new one")
    if claims.jti in revoked:
        raise _no("The token was revoked; ask an operator for a new one")


def bearer(authorization: Iterable[str] = (), subprotocols: Iterable[str] = ()) -> str | None:
    """The one token among all values of these two headers, or None when there is none."""
    tokens = {*_authorized(authorization), *_offered(subprotocols)}
    if len(tokens) > 1:
        raise _no("There is more than one token; send one")
    return next(iter(tokens), None)


def open_actor(id: str, kind: Kind, runtime: str = "") -> Actor:
    """Whoever says so, for servers that take identities on trust (`--auth open`)."""
    if not is_seat(id) or kind is Kind.SYSTEM:
        raise _no(f"Nobody can be called {id!r} here")
    return Actor(id, kind, runtime)


def ensure_loopback(host: str) -> None:
    """Refuse to take identities on trust where other machines could send them."""
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = host.lower() == "localhost"
    if not loopback:
        where = host or "every address"
        raise Refused(
            Why.FORBIDDEN,
            f"--auth open is for this machine alone, not for {where}; "
            "use --host 127.0.0.1 or --auth token",
        )


def _fresh(now: Instant) -> str:
    return ulid(now, secrets.token_bytes(10))


def _no(sentence: str) -> Refused:
    return Refused(Why.UNAUTHENTICATED, sentence)


def _flaws(claims: Claims) -> Iterator[str]:
    if not is_seat(claims.agent_id) or claims.kind is Kind.SYSTEM:
        yield f"Nobody can be called {claims.agent_id!r} here"
    opaque = (claims.workspace_id, claims.session_id, claims.jti, *claims.labels)
    if not all(is_id(text) for text in opaque):
        yield "Workspaces and labels are 1 to 128 printable characters"
    if claims.name and not is_id(claims.name):
        yield "A name is up to 128 printable characters"
    if claims.role == Standing.OPERATOR and claims.kind is not Kind.HUMAN:
        yield "Only a human can be an operator"


def _signed(keyring: Keyring, claims: Claims) -> Issued:
    kid, key = keyring.signer()
    token = _JWS.encode(_ENCODER.encode(claims), key, ALGORITHM, headers={"kid": kid})
    if len(token) > LONGEST_TOKEN:
        raise Refused(Why.TOO_LARGE, f"The token would have more than {LONGEST_TOKEN} bytes")
    return Issued(token, claims, kid, tuple(_warnings(claims)))


def _warnings(claims: Claims) -> Iterator[str]:
    unused = claims.roles & {Role.ADMIN, Role.APPROVER}
    if claims.kind is Kind.AGENT and unused:
        roles = " and ".join(sorted(unused))
        yield f"{claims.agent_id} is an agent: as {roles} its approvals never count"


def _read(token: str, keyring: Keyring) -> Claims:
    if len(token) > LONGEST_TOKEN:
        raise _no(f"The token has more than {LONGEST_TOKEN} bytes")
    if not _COMPACT.fullmatch(token):
        raise _no("That is not a token")
    try:
        payload = _payload(token, keyring)
        return msgspec.json.decode(payload, type=Claims)
    except jwt.InvalidSignatureError:
        raise _no("The token's signature is wrong") from None
    except msgspec.ValidationError as no:
        raise _no(f"The token's claims are not in order: {no}") from None
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise _no("That is not a token") from None


def _payload(token: str, keyring: Keyring) -> bytes:
    header = _JWS.get_unverified_header(token)
    if header.get("alg") != ALGORITHM:
        raise _no(f"Tokens are signed with {ALGORITHM} and nothing else")
    kid = header.get("kid")
    key = keyring.public(kid) if isinstance(kid, str) else None
    if key is None:
        raise _no("No key here has signed this token; it may have been forgotten")
    if not _SIGNATURE.fullmatch(token.rpartition(".")[2]):
        raise _no("The token's signature is wrong")
    payload: bytes = _JWS.decode(token, key, algorithms=[ALGORITHM])
    return payload


def _authorized(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() != SCHEME or not token.strip():
            raise _no("Authorization is `Bearer` and a token")
        yield token.strip()


def _offered(values: Iterable[str]) -> Iterator[str]:
    offers = (offer.strip() for value in values for offer in value.split(","))
    for offer in offers:
        if offer.startswith(SUBPROTOCOL):
            yield offer.removeprefix(SUBPROTOCOL)
