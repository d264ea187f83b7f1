"""`POST /v1/<method>`: the MSG methods over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.dialects import msg
from accord.core.dialects.pvp import DECODE_ERRORS, describe_error
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import StoreError
from accord.engine.streams.stream_cache import unreadable_refusal
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.endpoint import Endpoint, Handler, routes_of
from accord.transports.http.messages.post import read_envelope
from accord.transports.http.messages.waiting_limits import BodyQuota
from accord.transports.http.responses import (
    JSON_HEADERS,
    method_refusal_response,
    new_request_id,
)
from accord.transports.msg.method_table import METHODS, Method, call_method
from accord.transports.msg.service import ThreadService

# What programs send on their own, whether or not their agent does anything.
HEARTBEATS = frozenset({"heartbeat_session", "take_wakes"})
_encode = msgspec.json.Encoder().encode
_DECODERS = {name: msgspec.json.Decoder(method.request).decode for name, method in METHODS.items()}


class MethodEndpoints:
    """What the method endpoints of one server need."""

    def __init__(self, authenticator: Authenticator, service: ThreadService) -> None:
        self.authenticator = authenticator
        self.service = service
        self.body_quota = BodyQuota(authenticator.intake.limits)

    def routes(self) -> list[Route]:
        """One route for each method."""

        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return handler

        return routes_of(METHOD_ENDPOINTS, serve)

    async def answer(self, request: Request, method: Method) -> Response:
        """The result as JSON, or the error envelope; both with the id of the request."""
        request_id = new_request_id()
        try:
            data = await self._run(request, method)
        except ClientDisconnect:
            return Response(status_code=400)  # the client is gone
        except Refused as refusal:
            return method_refusal_response(refusal, request_id)
        except StoreError as error:
            return method_refusal_response(unreadable_refusal(error), request_id)
        headers = {**JSON_HEADERS, msg.REQUEST_ID_HEADER: request_id}
        return Response(data, 200, headers, "application/json")

    async def _run(self, request: Request, method: Method) -> bytes:
        caller = self.authenticator.authenticate(request)
        with self.body_quota.reserve(caller.principal) as reserve:
            data = await read_envelope(request, self.authenticator.intake.limits, reserve)
        self.authenticator.ensure_still_valid(caller)
        self._charge(caller, len(data))
        if method.name not in HEARTBEATS:
            self.authenticator.intake.traffic.note(caller.actor)
        arguments = decode_arguments(method.name, data)
        return _encode(await call_method(self.service, caller, method.name, arguments))

    def _charge(self, caller: Caller, size: int) -> None:
        """Charge the request as every transport does."""
        bucket = self.authenticator.bucket_of(caller)
        if bucket is not None:
            bucket.charge_bytes(size, asyncio.get_running_loop().time())
            bucket.charge_message("", size)


def decode_arguments(name: str, data: bytes) -> msgspec.Struct:
    """The arguments of a method; raises Refused."""
    try:
        if not data.isascii():
            data.decode()  # msgspec does not check the encoding of fields that it skips
        arguments: msgspec.Struct = _DECODERS[name](data)
    except DECODE_ERRORS as error:
        detail = f"These are not the arguments of {name}: {describe_error(error)}"
        raise Refused(Reason.MALFORMED, detail) from None
    return arguments


def handler_of(method: Method) -> Handler:
    """The HTTP handler of a method."""

    async def handler(endpoints: MethodEndpoints, request: Request) -> Response:
        return await endpoints.answer(request, method)

    handler.__name__, handler.__doc__ = method.name, method.summary
    return handler


METHOD_ENDPOINTS: tuple[Endpoint, ...] = tuple(
    Endpoint("POST", f"{msg.ROOT}/{name}", handler_of(method), body="method")
    for name, method in METHODS.items()
)
