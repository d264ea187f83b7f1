"""One-time codes for signing in: issued by operators, found once, used up, revoked or expired."""

from collections.abc import Iterator
from hmac import compare_digest

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission

from .state import Id, People, Sentence, SignInCode, administers, is_principal_id, known_key

CODE_LIFE_MS = 15 * 60_000
INVITATION_LIFE_MS = 7 * 86_400_000
MAX_OPEN_CODES = 1000

BAD_CODE_DETAIL = (
    "This sign-in code is not valid: it was used, has expired or was revoked; ask for a new link"
)


class CodeIssue(Body, frozen=True, omit_defaults=True, gc=False):
    """Register a one-time code; the code itself is never part of the message."""

    type = "code.issue"
    needs = Permission.SERVER_ONLY

    code: SignInCode


class CodeRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Make an invitation or a code useless."""

    type = "code.revoke"
    needs = Permission.SERVER_ONLY

    id: Id
    reason: Sentence = ""


class CodeIssued(Event, frozen=True, kw_only=True, gc=False):
    """A one-time code for signing in was issued; only its hash is known."""

    name = "code.issued"

    code: SignInCode


class CodeUsed(Event, frozen=True, kw_only=True, gc=False):
    """A one-time code was used, and can never be used again."""

    name = "code.used"

    id: str


class CodeRevoked(Event, frozen=True, kw_only=True, gc=False):
    """A one-time code was revoked before it was used."""

    name = "code.revoked"

    id: str
    reason: str = ""


class CodesExpired(Event, frozen=True, kw_only=True, gc=False):
    """These one-time codes expired unused."""

    name = "codes.expired"

    ids: tuple[str, ...]


def issue_code(people: People, command: Command, body: CodeIssue) -> Iterator[EventOrEffect]:
    """Only operators get here, and a human admin's token allows every role (OPEN-8).

    So whatever roles the code grants, they are at most the issuer's own.
    """
    code = body.code
    if not administers(command.actor, code.workspace):
        detail = f"You are not an operator of the workspace {code.workspace}"
        raise Refused(Reason.FORBIDDEN, detail)
    if not is_principal_id(code.principal):
        raise Refused(Reason.MALFORMED, f"{code.principal!r} is not a valid id for a person")
    if not code.roles:
        raise Refused(Reason.MALFORMED, "Name at least one role")
    longest = INVITATION_LIFE_MS if code.invitation else CODE_LIFE_MS
    if not 0 < code.expires_at - code.issued_at <= longest:
        raise Refused(Reason.MALFORMED, f"Such a code lasts at most {longest // 60_000} minutes")
    if code.id in people.codes or any(code.digest == known.digest for known in _codes(people)):
        raise Refused(Reason.KEY_REUSED, f"The code id {code.id} is already in use")
    if len(people.codes) >= MAX_OPEN_CODES:
        detail = f"There are {MAX_OPEN_CODES} unused codes and invitations; revoke some first"
        raise Refused(Reason.TOO_MANY, detail)
    yield CodeIssued(code=replace(code, by=command.actor.principal))


def find_code(people: People, digest: str, now: Instant) -> SignInCode:
    """The code with this hash, if it can still be used; raises Refused."""
    for code in people.codes.values():
        if compare_digest(code.digest, digest) and now < code.expires_at:
            return code
    raise Refused(Reason.UNAUTHENTICATED, BAD_CODE_DETAIL)


def revoke_code(people: People, command: Command, body: CodeRevoke) -> Iterator[EventOrEffect]:
    """A code that was used or has expired is unknown."""
    code = people.codes.get(body.id)
    if code is None or not administers(command.actor, code.workspace):
        raise Refused(Reason.NOT_FOUND, f"There is no unused invitation {body.id}")
    yield CodeRevoked(id=body.id, reason=body.reason)


def _codes(people: People) -> Iterator[SignInCode]:
    return iter(people.codes.values())


def on_issued(people: People, event: CodeIssued, record: Record) -> People:
    code = event.code
    known = {**people.known, known_key(code.workspace, code.principal): Kind.HUMAN}
    return replace(people, codes={**people.codes, code.id: code}, known={**known, **people.known})


def on_gone(people: People, event: CodeUsed | CodeRevoked, record: Record) -> People:
    return without_codes(people, event.id)


def on_expired(people: People, event: CodesExpired, record: Record) -> People:
    return without_codes(people, *event.ids)


def without_codes(people: People, *ids: str) -> People:
    """The state without these codes."""
    return replace(
        people, codes={id: code for id, code in people.codes.items() if id not in frozenset(ids)}
    )


DECIDE: Deciders = {
    CodeIssue: issue_code,
    CodeRevoke: revoke_code,
}
EVOLVE: Evolvers = {
    CodeIssued: on_issued,
    CodeUsed: on_gone,
    CodeRevoked: on_gone,
    CodesExpired: on_expired,
}
