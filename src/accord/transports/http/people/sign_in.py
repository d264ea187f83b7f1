"""`/sign-in`: codes become profiles or cookies, proofs become tokens, devices sign out."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api.people import (
    Account,
    AgentEnrolment,
    DeviceList,
    ListedDevice,
    RefreshedToken,
    RefreshRequest,
    SignedIn,
    SignInRequest,
)
from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused
from accord.core.people.devices import BROWSER_TOKEN_LIFE_S
from accord.identity.token_signing import Identity
from accord.transports.edge.origin import OWN_HOST_DETAIL
from accord.transports.http.auth import Authenticator, Caller
from accord.transports.http.body_limits import collect_body, read_within
from accord.transports.http.endpoint import Endpoint, routes_of
from accord.transports.http.people.sign_in_attempts import FailedAttempts
from accord.transports.http.people.sign_in_cookie import clear_cookie, ensure_own_origin, set_cookie
from accord.transports.http.responses import JSON_HEADERS, json_response, with_refusals

MAX_BODY_BYTES = 8 << 10
NO_TOKEN_DETAIL = "This server runs with --auth open; there is nothing to sign in to"  # noqa: S105 - a sentence
BodyType = TypeVar("BodyType")
ResultType = TypeVar("ResultType")
# Proofs cannot be guessed, and many processes of one device may race.
PROOF_BURST = 200.0


class SignInPort(Protocol):
    """What signing in needs of the server's log and keys."""

    async def sign_in(self, code: str, public_key: str | None, address: str) -> SignedIn:
        """Use the code; raises Refused."""
        ...

    async def enrol(self, identity: Identity, agent: AgentEnrolment, address: str) -> SignedIn:
        """Give an agent of this person a device; raises Refused."""
        ...

    async def renew(self, proof: RefreshRequest) -> RefreshedToken:
        """A token for the device that the proof proves; raises Refused."""
        ...

    async def sign_out(self, identity: Identity) -> None:
        """Revoke the device that this identity was proved with."""
        ...

    async def account(self, identity: Identity, address: str) -> Account:
        """Who this identity is."""
        ...


class DeviceAdmin(Protocol):
    """Lists and revokes devices for one actor."""

    async def devices(self) -> Sequence[ListedDevice]:
        """The devices that the actor may revoke."""
        ...

    async def revoke_device(self, id: str, reason: str = "") -> None:
        """Sign a device out."""
        ...


class SignInEndpoints:
    """What the sign-in endpoints of one server need."""

    def __init__(
        self,
        authenticator: Authenticator,
        service: SignInPort,
        devices_for: Callable[[Actor], DeviceAdmin],
        limits: Limits,
        is_own_host: Callable[[str], bool],
    ) -> None:
        self.authenticator = authenticator
        self.service = service
        self.devices_for = devices_for
        self.limits = limits
        self.is_own_host = is_own_host
        self.failed_codes = FailedAttempts()
        self.failed_proofs = FailedAttempts(PROOF_BURST)

    def routes(self) -> list[Route]:
        return routes_of(SIGN_IN_ENDPOINTS, self._serve)

    def _serve(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handler(request: Request) -> Response:
            # A device remembers the address it signed in at, and a page of a name that points here
            # would get our cookie.
            if not self.is_own_host(request.headers.get("host", "")):
                raise Refused(Reason.FORBIDDEN, OWN_HOST_DETAIL)
            try:
                return await endpoint.handler(self, request)
            except ClientDisconnect:
                return Response(status_code=400)  # the client has gone; this is never read

        return with_refusals(handler)

    async def read(self, request: Request, kind: type[BodyType]) -> BodyType:
        """The request's body; its content is in no refusal, because it is secret."""
        collected = collect_body(request, min(MAX_BODY_BYTES, self.limits.body))
        data = await read_within(collected, self.limits.body_seconds)
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            detail = f"The request body is not a valid {kind.__name__}: {error}"
            raise Refused(Reason.MALFORMED, detail) from None

    async def attempt(
        self, request: Request, failures: FailedAttempts, work: Callable[[], Awaitable[ResultType]]
    ) -> ResultType:
        """The result of an attempt to sign in; failures count against the caller's address."""
        address = request.client.host if request.client else ""
        failures.begin(address)
        try:
            result = await work()
        except Refused as refusal:
            if refusal.reason is not Reason.UNAUTHENTICATED:
                failures.forgive(address)
            raise
        failures.forgive(address)
        return result

    def caller(self, request: Request) -> tuple[Caller, Identity]:
        """The authenticated caller; raises Refused."""
        caller = self.authenticator.authenticate_counted(request)
        if caller.identity is None:
            raise Refused(Reason.WRONG_STATE, NO_TOKEN_DETAIL)
        return caller, caller.identity


async def sign_in(http: SignInEndpoints, request: Request) -> Response:
    """Uses a one-time code: with a public key for a profile, without one for a cookie."""
    body = await http.read(request, SignInRequest)
    origins, tls = request.headers.getlist("origin"), request.url.scheme == "https"
    if body.public_key is None:
        ensure_own_origin(origins, tls=tls)
    host = request.headers["host"].lower()
    work = partial(http.service.sign_in, body.code, body.public_key, host)
    done = await http.attempt(request, http.failed_codes, work)
    if body.public_key is not None:
        return json_response(done, 201)
    response = json_response(replace(done, token=None), 201)
    secure = tls or all(origin.startswith("https://") for origin in origins)
    response.headers["set-cookie"] = set_cookie(
        done.server, done.token or "", BROWSER_TOKEN_LIFE_S, secure=secure
    )
    return response


async def refresh(http: SignInEndpoints, request: Request) -> Response:
    """Gives a device a short token for a signed proof, which is good once."""
    body = await http.read(request, RefreshRequest)
    work = partial(http.service.renew, body)
    return json_response(await http.attempt(request, http.failed_proofs, work))


async def whoami(http: SignInEndpoints, request: Request) -> Response:
    """Who the caller is, and until when the credential is valid."""
    _, identity = http.caller(request)
    return json_response(await http.service.account(identity, request.headers["host"].lower()))


async def sign_out(http: SignInEndpoints, request: Request) -> Response:
    """Signs the caller's own device out; its connections end and its cookie is removed."""
    _, identity = http.caller(request)
    account = await http.service.account(identity, "")
    await http.service.sign_out(identity)
    cookie = {"set-cookie": clear_cookie(account.server)}
    return Response(status_code=204, headers=JSON_HEADERS | cookie)


async def enrol_agent(http: SignInEndpoints, request: Request) -> Response:
    """Gives an agent of the caller's a key of its own and a short token."""
    _, identity = http.caller(request)
    agent = await http.read(request, AgentEnrolment)
    host = request.headers["host"].lower()
    return json_response(await http.service.enrol(identity, agent, host), 201)


async def own_devices(http: SignInEndpoints, request: Request) -> Response:
    """Lists the caller's own devices, and those of the agents that the caller enrolled."""
    caller, _ = http.caller(request)
    devices = await http.devices_for(caller.actor).devices()
    own = tuple(
        each
        for each in devices
        if caller.principal in {(each.workspace, each.principal), (each.workspace, each.by)}
    )
    return json_response(DeviceList(devices=own))


async def revoke_own_device(http: SignInEndpoints, request: Request) -> Response:
    """Signs one of the caller's devices out; its connections end."""
    caller, _ = http.caller(request)
    await http.devices_for(caller.actor).revoke_device(request.path_params["device"])
    return Response(status_code=204, headers=JSON_HEADERS)


SIGN_IN_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "/sign-in", sign_in, body="sign_in", responses={201: "json"}, is_public=True),
    Endpoint("GET", "/sign-in", whoami),
    Endpoint("DELETE", "/sign-in", sign_out, responses={204: "nothing"}),
    Endpoint("POST", "/sign-in/refresh", refresh, body="proof", is_public=True),
    Endpoint("POST", "/sign-in/agents", enrol_agent, body="agent", responses={201: "json"}),
    Endpoint("GET", "/sign-in/devices", own_devices),
    Endpoint("DELETE", "/sign-in/devices/{device}", revoke_own_device, responses={204: "nothing"}),
)
