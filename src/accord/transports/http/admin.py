"""Managing tokens, keys and people over HTTP under `/admin`, for operators."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api.people import (
    InvitationRequest,
    IssuedInvitation,
    ListedDevice,
    ListedInvitation,
    Person,
    Removal,
)
from accord.api.policies import PolicyRequest, SignedPolicyText
from accord.api.tokens import IssuedToken, ListedToken, PublicKey, TokenRequest
from accord.core.dialects.refusals import JSON_HEADERS, CodeSet
from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http.body_limits import collect_body, read_within
from accord.transports.http.endpoint import Endpoint, QueryParameter, routes_of
from accord.transports.http.responses import raw_json_response, refusal_response

ADMIN_ROOT = "/admin"
ADMIN_CODES: CodeSet = "msg"
DEFAULT_LIMITS = Limits()

_ENCODER = msgspec.json.Encoder(order="deterministic")


class PeopleAdmin(Protocol):
    """Manages people for one actor; each method refuses what the actor may not do."""

    async def invite(
        self, request: InvitationRequest, *, invitation: bool = True
    ) -> IssuedInvitation:
        """A one-time code for a person; an invitation lasts longer than a plain code."""
        ...

    async def invitations(self) -> Sequence[ListedInvitation]:
        """Unused invitations and codes."""
        ...

    async def revoke_invitation(self, id: str, reason: str = "") -> None:
        """Make an unused invitation useless."""
        ...

    async def devices(self) -> Sequence[ListedDevice]:
        """The devices that the actor may revoke."""
        ...

    async def revoke_device(self, id: str, reason: str = "") -> None:
        """Sign a device out; its connections end."""
        ...

    async def people(self) -> Sequence[Person]:
        """Everyone who has a token, a device or an invitation, by id."""
        ...

    async def sign_policy(self, request: PolicyRequest) -> SignedPolicyText:
        """Make a text the policy of a repository; returns what was recorded."""
        ...

    async def remove(self, id: str, workspace: str, reason: str = "") -> Removal:
        """Revoke everything that lets a principal in, and end all its memberships."""
        ...


class TokenAdmin(Protocol):
    """Manages tokens and keys for one actor; each method refuses what the actor may not do."""

    @property
    def people(self) -> PeopleAdmin:
        """People, their devices and invitations."""
        ...

    async def issue(self, token_request: TokenRequest) -> IssuedToken:
        """Issue a token, recorded before it is returned."""
        ...

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Revoke a token for good; `force` accepts an id that was not issued here."""
        ...

    async def tokens(self) -> Sequence[ListedToken]:
        """Unexpired tokens that the actor may see."""
        ...

    async def keys(self) -> Sequence[PublicKey]:
        """Keys that verify tokens, oldest first."""
        ...

    async def rotate(self) -> PublicKey:
        """Make a new key sign from now on."""
        ...

    async def attest(self, repo: str, sha: str) -> str:
        """A signed statement of what the log records about a commit."""
        ...


class AdminAccess(Protocol):
    """Authenticates requests and gives operators access to token management."""

    async def authenticate(self, request: Request) -> Actor:
        """The actor of a valid token; raises Refused."""
        ...

    def admin_for(self, actor: Actor) -> TokenAdmin:
        """Token management on behalf of this actor."""
        ...


ChargeRequest = Callable[[Actor], None]


def no_charge(actor: Actor) -> None:
    """No rate limit."""


def routes(
    endpoints: Iterable[Endpoint],
    access: AdminAccess,
    charge: ChargeRequest = no_charge,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Route]:
    """The routes of these admin endpoints; `charge` applies the rate limit."""

    def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """The handler behind authentication, authorization and uniform refusals."""

        async def handler(request: Request) -> Response:
            request.state.limits = limits
            try:
                token_admin = await authorize(access, charge, request)
                if endpoint.body:
                    request.state.body = await read_body(request)
                    await access.authenticate(request)  # it may have expired meanwhile
                return await endpoint.handler(token_admin, request)
            except ClientDisconnect:
                return Response(status_code=400)  # the client has gone; this is never read
            except Refused as refusal:
                return admin_refusal(refusal)

        return handler

    return routes_of(endpoints, serve)


async def authorize(access: AdminAccess, charge: ChargeRequest, request: Request) -> TokenAdmin:
    """Token management for the caller if it is an operator; failed attempts are charged too."""
    actor = await access.authenticate(request)
    charge(actor)
    if not actor.is_operator:
        raise Refused(Reason.FORBIDDEN, "Only operators may manage people, tokens and keys")
    return access.admin_for(actor)


def admin_refusal(refusal: Refused) -> Response:
    """A refusal in the codes of MSG (UNI-26)."""
    return refusal_response(refusal, ADMIN_CODES)


def admin_response(content: Any, status: int = 200) -> Response:
    """JSON with sorted keys."""
    return raw_json_response(_ENCODER.encode(content), status)


async def issue_token(token_admin: TokenAdmin, request: Request) -> Response:
    """Issues a token; the response is the only place where it is shown."""
    try:
        token_request = msgspec.json.decode(request.state.body, type=TokenRequest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(
            Reason.MALFORMED, f"The request body is not a valid token request: {error}"
        ) from None
    return admin_response(await token_admin.issue(token_request), 201)


async def list_tokens(token_admin: TokenAdmin, request: Request) -> Response:
    """Lists unexpired tokens."""
    return admin_response({"tokens": await token_admin.tokens()})


async def revoke_token(token_admin: TokenAdmin, request: Request) -> Response:
    """Revokes a token; 204 also if it was revoked before, 404 if it was not issued here."""
    query = request.query_params
    force = query.get("force") == "true"
    await token_admin.revoke(request.path_params["jti"], query.get("reason", ""), force=force)
    return Response(status_code=204, headers=JSON_HEADERS)


async def list_keys(token_admin: TokenAdmin, request: Request) -> Response:
    """Lists public keys."""
    return admin_response({"keys": await token_admin.keys()})


async def rotate_key(token_admin: TokenAdmin, request: Request) -> Response:
    """Creates a new signing key and returns its public half."""
    return admin_response(await token_admin.rotate(), 201)


async def attest_commit(token_admin: TokenAdmin, request: Request) -> Response:
    """Returns an in-toto statement in a DSSE envelope."""
    path = request.path_params
    return raw_json_response(await token_admin.attest(path["repo"], path["sha"]))


async def read_body(request: Request) -> bytes:
    """The body, within the limits of time and size; raises Refused."""
    limits: Limits = request.state.limits
    return await read_within(collect_body(request, limits.body), limits.body_seconds)


REASON_QUERY = QueryParameter("reason", "the reason, recorded in the log")
FORCE_QUERY = QueryParameter("force", "`true` to revoke an id that was not issued here")

ADMIN_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "/admin/tokens", issue_token, body="token", responses={201: "json"}),
    Endpoint("GET", "/admin/tokens", list_tokens),
    Endpoint(
        "DELETE",
        "/admin/tokens/{jti}",
        revoke_token,
        query=(REASON_QUERY, FORCE_QUERY),
        responses={204: "nothing"},
    ),
    Endpoint("GET", "/admin/repos/{repo}/commits/{sha}/statement", attest_commit),
    Endpoint("GET", "/admin/keys", list_keys),
    Endpoint("POST", "/admin/keys", rotate_key, responses={201: "json"}),
)
