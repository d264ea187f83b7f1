"""Tokens: issued, revoked, and removed from the state once they have expired."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission

from .sign_in_codes import CodesExpired
from .state import (
    Id,
    People,
    Sentence,
    Token,
    administers,
    is_principal_id,
    known_key,
    swept_at,
)


class TokenIssue(Body, frozen=True, omit_defaults=True, gc=False):
    """Register a token that was issued; the token itself is never part of the message."""

    type = "token.issue"
    needs = Permission.SERVER_ONLY

    token: Token


class TokenRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Revoke a token."""

    type = "token.revoke"
    needs = Permission.SERVER_ONLY

    jti: Id
    reason: Sentence = ""


class TokenSweep(Body, frozen=True, omit_defaults=True, gc=False):
    """Remove expired tokens and codes; sent by the timer."""

    type = "token.sweep"
    needs = Permission.SERVER_ONLY


class TokenIssued(Event, frozen=True, kw_only=True, gc=False):
    """A token was issued."""

    name = "token.issued"

    token: Token


class TokenRevoked(Event, frozen=True, kw_only=True, gc=False):
    """A token was revoked; without `expires_at` the revocation is kept forever."""

    name = "token.revoked"

    jti: str
    reason: str = ""
    expires_at: Instant | None = None


class TokensExpired(Event, frozen=True, kw_only=True, gc=False):
    """These tokens expired."""

    name = "tokens.expired"

    jtis: tuple[str, ...]


def issue_token(people: People, command: Command, body: TokenIssue) -> Iterator[EventOrEffect]:
    """Idempotent: registering the same token again changes nothing."""
    token = body.token
    if not administers(command.actor, token.workspace):
        raise Refused(
            Reason.FORBIDDEN, f"You are not an operator of the workspace {token.workspace}"
        )
    if people.tokens.get(token.jti) == token:
        return
    if token.jti in people.tokens or token.jti in people.revoked:
        raise Refused(Reason.KEY_REUSED, f"The token id {token.jti} is already in use")
    if not is_principal_id(token.id) or token.kind is Kind.SYSTEM:
        raise Refused(Reason.MALFORMED, f"{token.id!r} is not a valid principal id for a token")
    if token.expires_at <= token.issued_at:
        raise Refused(Reason.MALFORMED, "A token must expire after it was issued")
    yield TokenIssued(token=token)


def revoke_token(people: People, command: Command, body: TokenRevoke) -> Iterator[EventOrEffect]:
    """Revokes unknown tokens too, because they may still be in use."""
    if body.jti in people.revoked:
        return
    token = people.tokens.get(body.jti)
    # Operators must not learn which tokens other workspaces have.
    if not administers(command.actor, token.workspace if token else ""):
        raise Refused(Reason.NOT_FOUND, f"There is no token {body.jti} that you could revoke")
    until = token.expires_at if token else None
    yield TokenRevoked(jti=body.jti, reason=body.reason, expires_at=until)


def sweep_tokens(people: People, command: Command, body: TokenSweep) -> Iterator[EventOrEffect]:
    """Drop all tokens that no longer count, revoked or not, and codes that were never used."""
    ends = {jti: token.expires_at for jti, token in people.tokens.items()}
    known = (*ends.items(), *people.revoked.items())
    expired = {jti for jti, end in known if end is not None and swept_at(end) <= command.at}
    if expired:
        yield TokensExpired(jtis=tuple(sorted(expired)))
    unused = [id for id, code in people.codes.items() if swept_at(code.expires_at) <= command.at]
    if unused:
        yield CodesExpired(ids=tuple(sorted(unused)))


def on_issued(people: People, event: TokenIssued, record: Record) -> People:
    token = event.token
    known = {**people.known, known_key(token.workspace, token.id): token.kind}
    return replace(people, tokens={**people.tokens, token.jti: token}, known=known)


def on_revoked(people: People, event: TokenRevoked, record: Record) -> People:
    return replace(people, revoked={**people.revoked, event.jti: event.expires_at})


def on_expired(people: People, event: TokensExpired, record: Record) -> People:
    expired = frozenset(event.jtis)
    tokens = {jti: token for jti, token in people.tokens.items() if jti not in expired}
    revoked = {jti: end for jti, end in people.revoked.items() if jti not in expired}
    return replace(people, tokens=tokens, revoked=revoked)


DECIDE: Deciders = {
    TokenIssue: issue_token,
    TokenSweep: sweep_tokens,
}
EVOLVE: Evolvers = {
    TokenIssued: on_issued,
    TokenRevoked: on_revoked,
    TokensExpired: on_expired,
}
