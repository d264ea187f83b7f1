"""Requests and responses of `/admin`: tokens, keys and signed statements."""

import msgspec

from accord.api.responses import ResponseObject
from accord.core.kernel.actor import DEFAULT_WORKSPACE
from accord.core.kernel.messages import Instant
from accord.core.kernel.role_permissions import Capabilities, Kind, Roles, ThreadRole
from accord.core.people.state import Token
from accord.core.people.token_claims import DEFAULT_TOKEN_LIFE_S, Claims


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request for a new token; `kind` is `type` in JSON, as on the command line."""

    id: str
    kind: Kind = msgspec.field(name="type")
    roles: Roles
    workspace: str = DEFAULT_WORKSPACE
    ttl_s: int = DEFAULT_TOKEN_LIFE_S
    labels: frozenset[str] = frozenset()
    capabilities: Capabilities = frozenset()
    name: str = ""
    role: ThreadRole | None = None


class IssuedToken(msgspec.Struct, frozen=True):
    """A new token for its holder only; `warnings` are for the issuer."""

    token: str
    claims: Claims
    key: str
    warnings: tuple[str, ...] = ()

    def public_record(self) -> Token:
        """What the log records of it: everything but the token."""
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


class ListedToken(Token, frozen=True, kw_only=True):
    """A token as operators see it."""

    revoked: bool = False


class PublicKey(msgspec.Struct, frozen=True):
    """A public key; `public` is PEM."""

    kid: str
    public: str
    created_at: Instant
    active: bool


class TokenList(ResponseObject, frozen=True):
    """Unexpired tokens."""

    tokens: tuple[ListedToken, ...]


class KeyList(ResponseObject, frozen=True):
    """Public keys, oldest first."""

    keys: tuple[PublicKey, ...]


class StatementSignature(ResponseObject, frozen=True):
    """A signature of the payload's DSSE encoding, in base64."""

    keyid: str
    sig: str


class SignedStatement(ResponseObject, frozen=True):
    """A DSSE envelope around an in-toto statement."""

    payloadType: str  # noqa: N815 - DSSE's name
    payload: str
    signatures: tuple[StatementSignature, ...]
