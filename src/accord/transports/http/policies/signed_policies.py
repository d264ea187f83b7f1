"""`/policies/{repository}`: the newest signed policy, for programs that class calls by it."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api.policies import PolicyRequest, SignedPolicyText
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.people.state import People
from accord.core.policy.policy_toml import PolicyError, parse_policy
from accord.transports.http.admin import TokenAdmin, admin_response
from accord.transports.http.auth import Authenticator
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.responses import json_response, with_refusals


class PolicyEndpoints:
    """Reads signed policies."""

    def __init__(self, callers: Authenticator, people: Callable[[], People]) -> None:
        self._callers = callers
        self._people = people

    async def read_policy(self, request: Request) -> Response:
        """The newest signed policy of a repository in the caller's workspace."""
        caller = self._callers.authenticate_counted(request)
        repository = request.path_params["repository"]
        signed = self._people().policy_of(caller.actor.workspace, repository)
        if signed is None:
            raise Refused(Reason.NOT_FOUND, f"No policy is signed for the repository {repository}")
        return json_response(
            SignedPolicyText(
                repository=signed.repository,
                digest=signed.digest,
                text=signed.text,
                by=signed.by,
                signed_at=to_iso(signed.at),
            )
        )

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""

        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(POLICY_ENDPOINTS, serve)


async def sign_policy(token_admin: TokenAdmin, request: Request) -> Response:
    """Makes a text the policy of a repository, in the name of the caller."""
    try:
        wanted = msgspec.json.decode(request.state.body, type=PolicyRequest)
        parse_policy(wanted.text)
    except (msgspec.DecodeError, RecursionError) as error:
        detail = f"The request body is not a policy to sign: {error}"
        raise Refused(Reason.MALFORMED, detail) from None
    except PolicyError as error:
        raise Refused(Reason.MALFORMED, f"This is not a policy: {error}") from None
    return admin_response(await token_admin.people.sign_policy(wanted), 201)


POLICY_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/policies/{repository}", PolicyEndpoints.read_policy),
)
ADMIN_POLICY_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "/admin/policies", sign_policy, body="policy", responses={201: "json"}),
)
