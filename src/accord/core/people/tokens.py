"""Tokens: given out, made void, forgotten once they have expired."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.authority import Kind, May
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Instant, Record
from accord.core.kernel.refusal import Refused, Why

from .state import Id, People, Sentence, Token, gone_at, is_seat, looks_after


class TokenIssue(Body, frozen=True, omit_defaults=True, gc=False):
    """A token was signed for somebody; the token itself is never said here."""

    type = "token.issue"
    needs = May.SERVE

    token: Token


class TokenRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Make a token void from now on."""

    type = "token.revoke"
    needs = May.SERVE

    jti: Id
    reason: Sentence = ""


class TokenSweep(Body, frozen=True, omit_defaults=True, gc=False):
    """Time has passed: let go of what has expired."""

    type = "token.sweep"
    needs = May.SERVE


class TokenIssued(Event, frozen=True, kw_only=True, gc=False):
    """Somebody can show a token now."""

    name = "token.issued"

    token: Token


class TokenRevoked(Event, frozen=True, kw_only=True, gc=False):
    """A token is void; without `expires_at` nobody knows how long that must be remembered."""

    name = "token.revoked"

    jti: str
    reason: str = ""
    expires_at: Instant | None = None


class TokensExpired(Event, frozen=True, kw_only=True, gc=False):
    """These tokens have ended by themselves."""

    name = "tokens.expired"

    jtis: tuple[str, ...]


def issue(people: People, ask: Ask, body: TokenIssue) -> Iterator[Fact]:
    """Known from now on; saying the same again changes nothing."""
    token = body.token
    if not looks_after(ask.actor, token.workspace):
        raise Refused(Why.FORBIDDEN, f"You do not look after the workspace {token.workspace}")
    if people.tokens.get(token.jti) == token:
        return
    if token.jti in people.tokens or token.jti in people.revoked:
        raise Refused(Why.KEY_REUSED, f"There was a token {token.jti} before")
    if not is_seat(token.id) or token.kind is Kind.SYSTEM:
        raise Refused(Why.MALFORMED, f"{token.id!r} cannot hold a token")
    if token.expires_at <= token.issued_at:
        raise Refused(Why.MALFORMED, "A token ends after it begins")
    yield TokenIssued(token=token)


def revoke(people: People, ask: Ask, body: TokenRevoke) -> Iterator[Fact]:
    """A token nobody remembers may still be out there, so it is made void all the same."""
    if body.jti in people.revoked:
        return
    token = people.tokens.get(body.jti)
    # Of other workspaces one learns nothing, not even what they have.
    if not looks_after(ask.actor, token.workspace if token else ""):
        raise Refused(Why.UNKNOWN, f"There is no token {body.jti}")
    until = token.expires_at if token else None
    yield TokenRevoked(jti=body.jti, reason=body.reason, expires_at=until)


def sweep(people: People, ask: Ask, body: TokenSweep) -> Iterator[Fact]:
    """What has ended need not be remembered, revoked or not."""
    ends = {jti: token.expires_at for jti, token in people.tokens.items()}
    known = (*ends.items(), *people.revoked.items())
    past = {jti for jti, end in known if end is not None and gone_at(end) <= ask.at}
    if past:
        yield TokensExpired(jtis=tuple(sorted(past)))


def on_issued(people: People, event: TokenIssued, record: Record) -> People:
    return replace(people, tokens={**people.tokens, event.token.jti: event.token})


def on_revoked(people: People, event: TokenRevoked, record: Record) -> People:
    return replace(people, revoked={**people.revoked, event.jti: event.expires_at})


def on_expired(people: People, event: TokensExpired, record: Record) -> People:
    gone = frozenset(event.jtis)
    tokens = {jti: token for jti, token in people.tokens.items() if jti not in gone}
    revoked = {jti: end for jti, end in people.revoked.items() if jti not in gone}
    return replace(people, tokens=tokens, revoked=revoked)


DECIDE: Deciders = {
    TokenIssue: issue,
    TokenRevoke: revoke,
    TokenSweep: sweep,
}
EVOLVE: Evolvers = {
    TokenIssued: on_issued,
    TokenRevoked: on_revoked,
    TokensExpired: on_expired,
}
