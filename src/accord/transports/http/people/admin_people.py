"""`/admin`: people, devices and invitations, for operators."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.api.people import InvitationRequest
from accord.core.kernel.actor import DEFAULT_WORKSPACE
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http.admin import REASON_QUERY, TokenAdmin, admin_response
from accord.transports.http.endpoint import Endpoint, QueryParameter
from accord.transports.http.responses import JSON_HEADERS


async def invite(token_admin: TokenAdmin, request: Request) -> Response:
    """Makes an invitation, good once; the response is the only place where its code is shown."""
    try:
        wanted = msgspec.json.decode(request.state.body, type=InvitationRequest)
    except (msgspec.DecodeError, RecursionError) as error:
        detail = f"The request body is not a valid invitation: {error}"
        raise Refused(Reason.MALFORMED, detail) from None
    return admin_response(await token_admin.people.invite(wanted), 201)


async def list_invitations(token_admin: TokenAdmin, request: Request) -> Response:
    """Lists invitations and sign-in codes that were not used yet."""
    return admin_response({"invitations": await token_admin.people.invitations()})


async def revoke_invitation(token_admin: TokenAdmin, request: Request) -> Response:
    """Revokes an unused invitation."""
    id, reason = request.path_params["invitation"], request.query_params.get("reason", "")
    await token_admin.people.revoke_invitation(id, reason)
    return Response(status_code=204, headers=JSON_HEADERS)


async def list_devices(token_admin: TokenAdmin, request: Request) -> Response:
    """Lists signed-in devices."""
    return admin_response({"devices": await token_admin.people.devices()})


async def revoke_device(token_admin: TokenAdmin, request: Request) -> Response:
    """Revokes a device and its tokens; its connections end."""
    id, reason = request.path_params["device"], request.query_params.get("reason", "")
    await token_admin.people.revoke_device(id, reason)
    return Response(status_code=204, headers=JSON_HEADERS)


async def list_people(token_admin: TokenAdmin, request: Request) -> Response:
    """Lists everyone who has a token, a device or an invitation."""
    return admin_response({"people": await token_admin.people.people()})


async def remove_person(token_admin: TokenAdmin, request: Request) -> Response:
    """Removes a person: tokens, devices, invitations and memberships end."""
    query = request.query_params
    workspace = query.get("workspace", DEFAULT_WORKSPACE)
    id, reason = request.path_params["person"], query.get("reason", "")
    return admin_response(await token_admin.people.remove(id, workspace, reason))


WORKSPACE_QUERY = QueryParameter("workspace", "the person's workspace, if not the default one")

ADMIN_PEOPLE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "/admin/invitations", invite, body="invitation", responses={201: "json"}),
    Endpoint("GET", "/admin/invitations", list_invitations),
    Endpoint(
        "DELETE",
        "/admin/invitations/{invitation}",
        revoke_invitation,
        query=(REASON_QUERY,),
        responses={204: "nothing"},
    ),
    Endpoint("GET", "/admin/devices", list_devices),
    Endpoint(
        "DELETE",
        "/admin/devices/{device}",
        revoke_device,
        query=(REASON_QUERY,),
        responses={204: "nothing"},
    ),
    Endpoint("GET", "/admin/people", list_people),
    Endpoint(
        "DELETE", "/admin/people/{person}", remove_person, query=(WORKSPACE_QUERY, REASON_QUERY)
    ),
)
