"""`/sessions/{id}/standing-grants`: votes given beforehand, for which PVP has no message."""

import secrets
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api.policies import GivenStandingGrant, StandingGrantRequest
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import ulid
from accord.core.room.approval.standing_grants import StandingGrantCreate, StandingGrantEnd
from accord.transports.http.admin import REASON_QUERY, read_body
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.responses import JSON_HEADERS, json_response, with_refusals

PATH = "/sessions/{id}/standing-grants"


class StandingGrantEndpoints:
    """Gives and ends standing grants, with the rights of the caller in the session."""

    def __init__(self, callers: Authenticator) -> None:
        self._callers = callers

    async def give(self, request: Request) -> Response:
        """Votes yes beforehand on calls alike of one agent."""
        caller = self._callers.authenticate_counted(request)
        request.state.limits = self._callers.intake.limits
        data = await read_body(request)
        self._callers.ensure_still_valid(caller)
        try:
            wanted = msgspec.json.decode(data, type=StandingGrantRequest)
            body = msgspec.convert(msgspec.to_builtins(wanted), StandingGrantCreate)
        except (msgspec.DecodeError, RecursionError) as error:
            detail = f"The request body is not a standing grant: {error}"
            raise Refused(Reason.MALFORMED, detail) from None
        session = request.path_params["id"]
        id = await self._record(caller, session, body)
        return json_response(GivenStandingGrant(id=id, session=session), status=201)

    async def end(self, request: Request) -> Response:
        """Ends a standing grant; anyone who may approve can."""
        caller = self._callers.authenticate_counted(request)
        reason = request.query_params.get("reason") or None
        try:
            fields = {"standing_grant": request.path_params["grant"], "reason": reason}
            body = msgspec.convert(fields, StandingGrantEnd)
        except msgspec.ValidationError as error:
            raise Refused(Reason.MALFORMED, f"Invalid request: {error}") from None
        await self._record(caller, request.path_params["id"], body)
        return Response(status_code=204, headers=JSON_HEADERS)

    async def _record(self, caller: Caller, session: str, body: Body) -> str:
        engine = self._callers.intake.engine
        now = engine.clock.now()
        message = Message(
            id=ulid(now, secrets.token_bytes(10)),
            ts=to_iso(now),
            room=session,
            sender=caller.actor.principal,
            body=body,
        )
        await engine.handle(message, caller.actor, stream=f"room/{session}")
        return message.id

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""

        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(STANDING_GRANT_ENDPOINTS, serve)


STANDING_GRANT_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", PATH, StandingGrantEndpoints.give, body="standing_grant", responses={201: "json"}
    ),
    Endpoint(
        "DELETE",
        f"{PATH}/{{grant}}",
        StandingGrantEndpoints.end,
        query=(REASON_QUERY,),
        responses={204: "nothing"},
    ),
)
