"""Who was given a credential, which of them are void, and which key signs."""

from collections.abc import Iterator, Mapping
from typing import Annotated
from unicodedata import normalize

import msgspec
from msgspec import Meta

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.authority import Capabilities, Kind, Roles
from accord.core.kernel.ids import SYSTEM, is_id
from accord.core.kernel.log import Instant

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Sentence = Annotated[str, Meta(max_length=1024)]

# OPEN-122: a token counts for this long on either side of its own times.
SKEW = 60_000

# Nobody minds what lingers a little; a tick an hour at most keeps the log short.
SWEEP = 3_600_000


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one may know of a token without holding it."""

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


class Key(msgspec.Struct, frozen=True):
    """A signing key as everybody may see it; `public` is PEM."""

    kid: Id
    public: Annotated[str, Meta(max_length=4096)]


class People(msgspec.Struct, frozen=True):
    """Everything that is still of use; what has expired is on the log alone.

    `revoked` says until when each void token would have counted; None where nobody knows.
    """

    id: str
    tokens: Mapping[str, Token] = {}
    revoked: Mapping[str, Instant | None] = {}
    keys: Mapping[str, Key] = {}
    active: str = ""

    def visible_to(self, actor: Actor) -> Iterator[Token]:
        """The tokens this operator looks after, oldest first."""
        return (token for token in self.tokens.values() if looks_after(actor, token.workspace))


def looks_after(actor: Actor, workspace: str) -> bool:
    """Operators serve their own workspace, those of the default one the whole house."""
    return actor.kind is Kind.SYSTEM or actor.workspace in {DEFAULT_WORKSPACE, workspace}


def serves(actor: Actor) -> bool:
    """Operators and the server itself; nobody else has a say here."""
    return actor.is_operator or actor.kind is Kind.SYSTEM


def is_seat(text: str) -> bool:
    """Whether somebody may be called this; `system`, however written, is the server (UNI-3)."""
    name, _, _ = normalize("NFKC", text).casefold().partition(":")
    return is_id(text) and text == text.strip() and name.strip() != SYSTEM


def gone_at(expires_at: Instant) -> Instant:
    """The first sweep at which a token that ends then counts nowhere any more."""
    return -(-(expires_at + SKEW + 1) // SWEEP) * SWEEP
