"""Authenticating HTTP requests."""

import asyncio
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.identity.token_signing import Identity, trusted_actor
from accord.transports.edge.http_protocol import SECURE_STATE_KEY
from accord.transports.http.people.sign_in_cookie import token_of_request
from accord.transports.intake import Intake
from accord.transports.rate_limit import Bucket

HTTP_RUNTIME = "http"


class Caller(NamedTuple):
    """An authenticated caller, or one that only claims a name on a server without tokens."""

    actor: Actor
    identity: Identity | None = None
    secure: bool = False  # whether third parties cannot read the connection

    @property
    def principal(self) -> tuple[str, str]:
        """The caller's identity across tokens."""
        return self.actor.workspace, self.actor.principal

    def uses_token(self, jti: str) -> bool:
        """Whether this is the token the request came with."""
        return self.identity is not None and self.identity.claims.jti == jti


@lru_cache(1024)
def claimed_actor(query: bytes) -> Actor | None:
    """The actor that `as` in a query names, for servers without tokens; raises Refused."""
    name = QueryParams(query).get("as")
    return trusted_actor(name, Kind.HUMAN, HTTP_RUNTIME) if name else None


class Authenticator:
    def __init__(self, reception: Intake) -> None:
        self.intake = reception

    def authenticate(self, request: Request) -> Caller:
        """Verify the token or cookie, or without tokens accept the name in `as`; raises Refused."""
        token = token_of_request(request, self.intake.auth.server_id())
        private = getattr(request.state, SECURE_STATE_KEY, False)
        if token is None and self.intake.is_open:
            actor = claimed_actor(request.scope["query_string"])
            if actor is not None:
                return Caller(actor, secure=private)
        if token is None:
            raise Refused(Reason.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        identity = self.intake.identify(token)
        return Caller(replace(identity.actor, runtime=HTTP_RUNTIME), identity, private)

    def authenticate_counted(self, request: Request) -> Caller:
        """Authenticate, and charge the request against the rate limit."""
        caller = self.authenticate(request)
        self.intake.traffic.note(caller.actor)
        self.charge_request(caller.actor)
        return caller

    def ensure_still_valid(self, caller: Caller) -> None:
        """Refuse if the token expired or was revoked since the request began."""
        if caller.identity is not None:
            self.intake.ensure_token_live(caller.identity)

    def charge_request(self, actor: Actor) -> None:
        """Charge one request; raises Refused over the limit."""
        if self.intake.buckets.rate is None:
            return
        now = asyncio.get_running_loop().time()
        if (bucket := self.intake.buckets.bucket_of(actor, now)) is not None:
            bucket.charge_bytes(0, now)
            bucket.charge_message("", 0)

    async def actor_of(self, request: Request) -> Actor:
        """Authenticate and charge; only the actor."""
        return self.authenticate_counted(request).actor

    def bucket_of(self, caller: Caller) -> Bucket | None:
        """The caller's rate limit, shared with its other transports."""
        return self.intake.buckets.bucket_of(caller.actor, asyncio.get_running_loop().time())
