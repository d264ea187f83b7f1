"""Tokens, revocations, signing keys, sign-in codes and devices."""

from collections.abc import Iterator, Mapping
from typing import Annotated
from unicodedata import normalize

import msgspec
from msgspec import Meta

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.ids import SYSTEM, is_id
from accord.core.kernel.messages import Instant
from accord.core.kernel.role_permissions import Capabilities, Kind, Roles

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Sentence = Annotated[str, Meta(max_length=1024)]
PolicyText = Annotated[str, Meta(max_length=65_536)]

# OPEN-122: a token is accepted for this long before and after its own validity.
CLOCK_SKEW_MS = 60_000

# Expired entries may stay a while; sweeping at most once an hour keeps the log short.
SWEEP_INTERVAL_MS = 3_600_000


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The public claims of a token, not the token itself."""

    jti: Id
    id: Id
    kind: Kind
    roles: Roles
    issued_at: Instant
    expires_at: Instant
    key: Id
    workspace: Id = DEFAULT_WORKSPACE
    capabilities: Capabilities = frozenset()
    labels: frozenset[Id] = frozenset()
    name: str = ""
    device: str = ""  # the device that got it by signing in; empty for one that was issued


class SigningKey(msgspec.Struct, frozen=True):
    """The public half of a signing key; `public` is PEM."""

    kid: Id
    public: Annotated[str, Meta(max_length=4096)]


class SignInCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a one-time code grants to its user; the code itself is not stored.

    `digest` is the code's SHA-256 in hexadecimal. An invitation lasts longer than a plain code.
    """

    id: Id
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    principal: Id
    roles: Roles
    issued_at: Instant
    expires_at: Instant
    workspace: Id = DEFAULT_WORKSPACE
    name: Annotated[str, Meta(max_length=128)] = ""
    invitation: bool = False
    by: str = ""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A signed-in device: a person's program or an agent with a key, or a browser without one.

    `address` is the server's address as the device knows it; its proofs name it.
    """

    id: Id
    principal: Id
    roles: Roles
    added_at: Instant
    workspace: Id = DEFAULT_WORKSPACE
    name: str = ""
    public_key: Annotated[str, Meta(max_length=64)] = ""
    address: Annotated[str, Meta(max_length=512)] = ""
    kind: Kind = Kind.HUMAN
    by: str = ""  # the person who enrolled this agent; empty for a person's own device
    supervises: bool = False  # of the program that holds the agent's terminal


class Renewals(msgspec.Struct, frozen=True):
    """The token that a device has, since when, and the proofs that it may not use again."""

    jti: str
    given_at: Instant
    nonces: Mapping[str, Instant] = {}


class SignedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The newest policy that an operator signed for a repository."""

    repository: str
    digest: str
    text: str
    by: str
    at: Instant


class People(msgspec.Struct, frozen=True):
    """Current tokens, revocations, keys, codes and devices; what has expired is only on the log.

    `revoked` maps each revoked token to when it would have expired, None if unknown.
    """

    id: str
    tokens: Mapping[str, Token] = {}
    revoked: Mapping[str, Instant | None] = {}
    keys: Mapping[str, SigningKey] = {}
    active: str = ""
    known: Mapping[str, Kind] = {}  # all who ever had a token or invitation, by `known_key`
    codes: Mapping[str, SignInCode] = {}
    devices: Mapping[str, Device] = {}
    renewals: Mapping[str, Renewals] = {}
    policies: Mapping[str, SignedPolicy] = {}  # by `known_key` of workspace and repository
    enrolled: Mapping[str, str] = {}  # who enrolled an agent first, by `known_key` of the agent
    id_secret: str = ""  # from which ids of keyed messages are derived, so that none can be guessed

    @property
    def server_id(self) -> str:
        """The id of the server: that of its first key, which never changes."""
        return min(self.keys, default="")

    def live_tokens_of(self, device: str) -> Iterator[Token]:
        """The tokens of a device that are not revoked."""
        return (
            token
            for token in self.tokens.values()
            if token.device == device and token.jti not in self.revoked
        )

    def tokens_visible_to(self, actor: Actor) -> Iterator[Token]:
        """The tokens of the workspaces that this actor administers, oldest first."""
        return (token for token in self.tokens.values() if administers(actor, token.workspace))

    def policy_of(self, workspace: str, repository: str) -> SignedPolicy | None:
        """The newest policy that was signed for a repository."""
        return self.policies.get(known_key(workspace, repository))

    def kind_of(self, workspace: str, id: str) -> Kind | None:
        """The kind of a principal who ever had a token or an invitation; None if there was none."""
        return self.known.get(known_key(workspace, id))

    def has_credential(self, workspace: str, id: str, now: Instant) -> bool:
        """Whether this principal holds a device, or a token neither revoked nor expired."""
        has_device = any(
            (device.workspace, device.principal) == (workspace, id)
            for device in self.devices.values()
        )
        return has_device or any(
            (token.workspace, token.id) == (workspace, id)
            and token.jti not in self.revoked
            and token.expires_at + CLOCK_SKEW_MS > now
            for token in self.tokens.values()
        )


def known_key(workspace: str, id: str) -> str:
    """One key per workspace and principal; neither contains a line break."""
    return f"{workspace}\n{id}"


def administers(actor: Actor, workspace: str) -> bool:
    """Operators administer their own workspace; those of the default workspace, all of them."""
    return actor.kind is Kind.SYSTEM or actor.workspace in {DEFAULT_WORKSPACE, workspace}


def is_operator_or_system(actor: Actor) -> bool:
    """Whether the actor may manage tokens and keys at all."""
    return actor.is_operator or actor.kind is Kind.SYSTEM


def is_principal_id(text: str) -> bool:
    """Whether a principal may have this id; every spelling of `system` is reserved (UNI-3)."""
    name, _, _ = normalize("NFKC", text).casefold().partition(":")
    return is_id(text) and text == text.strip() and name.strip() != SYSTEM


def swept_at(expires_at: Instant) -> Instant:
    """The first sweep at which a token that expires then is no longer accepted anywhere."""
    return -(-(expires_at + CLOCK_SKEW_MS + 1) // SWEEP_INTERVAL_MS) * SWEEP_INTERVAL_MS
