"""`POST /git/{action}`: what a git hook asks, for callers who are not on the server's machine."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.bridge.actions import (
    ACTION_BY_NAME,
    MAX_REQUEST_BYTES,
    BridgeHandler,
    parse_object,
    run_action,
)
from accord.transports.bridge.member_handlers import MEMBER_ACTIONS, WRITING_ACTIONS
from accord.transports.http.auth import Authenticator
from accord.transports.http.body_limits import read_within
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.responses import json_response, with_refusals

HandlersFor = Callable[[Actor, bool], BridgeHandler]


class GitHookEndpoints:
    """The bridge's actions over the main port, each with the rights of its caller."""

    def __init__(self, callers: Authenticator, handlers_for: HandlersFor) -> None:
        self.callers = callers
        self.handlers_for = handlers_for

    async def run_git_action(self, request: Request) -> Response:
        """Answer a git hook: the context of a commit, or its record."""
        caller = self.callers.authenticate_counted(request)
        action = ACTION_BY_NAME.get(request.path_params["action"])
        if action is None or action.name not in MEMBER_ACTIONS:
            names = ", ".join(sorted(MEMBER_ACTIONS))
            raise Refused(Reason.NOT_FOUND, f"There is no such action; the actions are {names}")
        seconds = self.callers.intake.limits.body_seconds
        parameters = parse_object(await read_within(_read_body(request), seconds) or b"{}")
        self.callers.ensure_still_valid(caller)
        handlers = self.handlers_for(caller.actor, action.name in WRITING_ACTIONS)
        outcome = await run_action(handlers, action, parameters)
        if isinstance(outcome, Refused):
            raise outcome
        return json_response(outcome)

    def routes(self) -> list[Route]:
        """The routes of these endpoints."""

        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(GIT_ENDPOINTS, serve)


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            raise Refused(Reason.TOO_LARGE, f"The body is larger than {MAX_REQUEST_BYTES} bytes")
    return bytes(body)


GIT_ENDPOINTS = (
    Endpoint("POST", "/git/{action}", GitHookEndpoints.run_git_action, body="git_action"),
)
