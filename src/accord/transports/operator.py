"""For operators over HTTP: tokens and keys under `/admin`, for whoever shows an admin's token."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.dialects.codes import CODES
from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.authority import Capabilities, Kind, Roles
from accord.core.kernel.limits import Limits, reached
from accord.core.kernel.refusal import Refused, Why
from accord.core.people.standing import Standing
from accord.core.people.state import Token

from .bodies import in_time
from .endpoint import Endpoint, Query, mounted
from .identity import USUAL_LIFE, Issued, PublicKey
from .replies import HEADERS, advised, raw

ROOT = "/admin"
USUAL = Limits()

_ENCODER = msgspec.json.Encoder(order="deterministic")


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token somebody should get; on the wire `kind` is `type`, as on the command line."""

    id: str
    kind: Kind = msgspec.field(name="type")
    roles: Roles
    workspace: str = DEFAULT_WORKSPACE
    ttl_s: int = USUAL_LIFE
    labels: frozenset[str] = frozenset()
    capabilities: Capabilities = frozenset()
    name: str = ""
    role: Standing | None = None


class Listed(Token, frozen=True, kw_only=True):
    """A token as operators see it."""

    revoked: bool = False


class Office(Protocol):
    """Where one actor looks after tokens and keys; each method refuses what the actor may not."""

    async def issue(self, wish: Wish) -> Issued:
        """A new token, on the record before it is handed out."""
        ...

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Make a token void, for good; one that nobody knows of only with `force`."""
        ...

    async def tokens(self) -> Sequence[Listed]:
        """The tokens that have not expired, as far as the actor looks after them."""
        ...

    async def keys(self) -> Sequence[PublicKey]:
        """The keys that verify, oldest first."""
        ...

    async def rotate(self) -> PublicKey:
        """The key that signs from now on."""
        ...

    async def attest(self, repo: str, sha: str) -> str:
        """A signed statement of what the log has about a commit."""
        ...


class Desk(Protocol):
    """Who comes in over HTTP is known here, and is let into an office."""

    async def authenticate(self, request: Request) -> Actor:
        """Who is asking, by a token that is wholly in order."""
        ...

    def office(self, actor: Actor) -> Office:
        """The actor's own office."""
        ...


Count = Callable[[Actor], None]


def uncounted(actor: Actor) -> None:
    """Nobody counts."""


def routes(desk: Desk, count: Count = uncounted, limits: Limits = USUAL) -> list[Route]:
    """Everything an operator may ask over HTTP; `count` refuses whoever asks too much."""

    def served(row: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """The handler behind the one door: a token, an operator, and refusals in one shape."""

        async def answer(request: Request) -> Response:
            request.state.limits = limits
            try:
                office = await enter(desk, count, request)
                if row.body:
                    request.state.body = await read(request)
                    await desk.authenticate(request)  # still, however long it took
                return await row.handler(office, request)
            except ClientDisconnect:
                return Response(status_code=400)  # for nobody
            except Refused as no:
                return refusal(no)

        return answer

    return mounted(TABLE, served)


async def enter(desk: Desk, count: Count, request: Request) -> Office:
    """The office of whoever asks, if it is an operator; asking counts, also in vain."""
    actor = await desk.authenticate(request)
    count(actor)
    if not actor.is_operator:
        raise Refused(Why.FORBIDDEN, "Only operators look after tokens and keys")
    return desk.office(actor)


def refusal(no: Refused) -> Response:
    """A refusal as HTTP says it (UNI-26)."""
    codes = CODES[no.why]
    problem = {"code": codes.msg, "message": no.detail, "details": no.details or {}}
    response = advised(reply({"error": problem}, codes.http), no)
    if no.why is Why.LATE:
        response.headers["connection"] = "close"
    return response


def reply(content: Any, status: int = 200) -> Response:
    """JSON that nobody keeps."""
    return raw(_ENCODER.encode(content), status)


async def issue_token(office: Office, request: Request) -> Response:
    """201 with the token, which is shown this once."""
    try:
        wish = msgspec.json.decode(request.state.body, type=Wish)
    except (msgspec.DecodeError, RecursionError) as no:
        raise Refused(Why.MALFORMED, f"That is no wish for a token: {no}") from None
    return reply(await office.issue(wish), 201)


async def list_tokens(office: Office, request: Request) -> Response:
    """200 with what is known of each."""
    return reply({"tokens": await office.tokens()})


async def revoke_token(office: Office, request: Request) -> Response:
    """204, also for one that was revoked before; 404 for one that was not issued here."""
    said = request.query_params
    force = said.get("force") == "true"
    await office.revoke(request.path_params["jti"], said.get("reason", ""), force=force)
    return Response(status_code=204, headers=HEADERS)


async def list_keys(office: Office, request: Request) -> Response:
    """200 with the public halves."""
    return reply({"keys": await office.keys()})


async def rotate_key(office: Office, request: Request) -> Response:
    """201 with the new key's public half."""
    return reply(await office.rotate(), 201)


async def attest_commit(office: Office, request: Request) -> Response:
    """200 with an in-toto statement in a DSSE envelope."""
    named = request.path_params
    return raw(await office.attest(named["repo"], named["sha"]))


async def read(request: Request) -> bytes:
    """The body, in time and never more of it than there should be."""
    limits: Limits = request.state.limits
    return await in_time(whole(request, limits.body), limits.body_seconds)


async def whole(request: Request, most: int) -> bytes:
    """All of it; raises Refused past so many bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise reached("body", most, f"The body has more than {most} bytes")
    return bytes(body)


REASON = Query("reason", "why, for the record")
FORCE = Query("force", "`true` for a token that was not issued here")

TABLE: tuple[Endpoint, ...] = (
    Endpoint("POST", "/admin/tokens", issue_token, body="token", answers={201: "json"}),
    Endpoint("GET", "/admin/tokens", list_tokens),
    Endpoint(
        "DELETE",
        "/admin/tokens/{jti}",
        revoke_token,
        query=(REASON, FORCE),
        answers={204: "nothing"},
    ),
    Endpoint("GET", "/admin/repos/{repo}/commits/{sha}/statement", attest_commit),
    Endpoint("GET", "/admin/keys", list_keys),
    Endpoint("POST", "/admin/keys", rotate_key, answers={201: "json"}),
)
