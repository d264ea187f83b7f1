"""Who is asking over HTTP."""

import asyncio
from typing import NamedTuple

from msgspec.structs import replace
from starlette.requests import Request

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.refusal import Refused, Why
from accord.transports.bucket import Bucket
from accord.transports.head import PRIVATE
from accord.transports.identity import Identity, bearer, open_actor
from accord.transports.reception import Reception

RUNTIME = "http"


class Caller(NamedTuple):
    """Somebody with a token, or on trust without one."""

    actor: Actor
    identity: Identity | None = None
    private: bool = False  # whether nobody can read along on the way

    @property
    def principal(self) -> tuple[str, str]:
        """Who it is, whichever token they use."""
        return self.actor.workspace, self.actor.seat

    def holds(self, jti: str) -> bool:
        """Whether that is the token they came with."""
        return self.identity is not None and self.identity.claims.jti == jti


class Callers:
    """From a request to whoever makes it."""

    def __init__(self, reception: Reception) -> None:
        self.reception = reception

    def who(self, request: Request) -> Caller:
        """A token, or on trust whoever `as` says; raises Refused."""
        token = bearer(request.headers.getlist("authorization"))
        private = getattr(request.state, PRIVATE, False)
        if token is None and self.reception.is_open and (name := request.query_params.get("as")):
            return Caller(open_actor(name, Kind.HUMAN, RUNTIME), private=private)
        if token is None:
            raise Refused(Why.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        identity = self.reception.identify(token)
        return Caller(replace(identity.actor, runtime=RUNTIME), identity, private)

    def asking(self, request: Request) -> Caller:
        """The same; asking counts like any message."""
        caller = self.who(request)
        self.count(caller.actor)
        return caller

    def still(self, caller: Caller) -> None:
        """They still may ask, however long it took them to; raises Refused."""
        if caller.identity is not None:
            self.reception.ensure_live(caller.identity)

    def count(self, actor: Actor) -> None:
        """One more thing that was asked; raises Refused when it is too many."""
        now = asyncio.get_running_loop().time()
        if (bucket := self.reception.buckets.of(actor, now)) is not None:
            bucket.weigh(0, now)
            bucket.count("", 0)

    async def identify(self, request: Request) -> Actor:
        """Whom the request speaks for."""
        return self.asking(request).actor

    def bucket(self, caller: Caller) -> Bucket | None:
        """What they may still send, over all transports."""
        return self.reception.buckets.of(caller.actor, asyncio.get_running_loop().time())
