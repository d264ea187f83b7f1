"""The desk where tokens and keys are looked after, over an engine in this process."""

import secrets
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import Request

from accord.core.kernel.actor import DEFAULT_WORKSPACE, Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.kernel.ulid import ulid
from accord.core.people.keys import KeyRotate, ensure_keeper
from accord.core.people.state import SKEW, Key, People, serves
from accord.core.people.tokens import TokenIssue, TokenRevoke
from accord.engine.ports import Clock, Codec, EventLog
from accord.transports.bridge.proof import attested
from accord.transports.bridge.reading import Source
from accord.transports.identity import (
    USUAL_LIFE,
    Identity,
    Issued,
    Keyring,
    PublicKey,
    bearer,
    issue,
    verify,
)
from accord.transports.keyring import public_key
from accord.transports.operator import Listed, Office, Wish

__all__ = [
    "SHELL",
    "STREAM",
    "USUAL_LIFE",
    "Issued",
    "Listed",
    "LocalDesk",
    "LocalOffice",
    "Office",
    "PublicKey",
    "Wish",
    "public_key",
]

STREAM = f"people/{DEFAULT_WORKSPACE}"

NOT_ISSUED = (
    "No token of that id was issued here, or it has expired: `accord token list` shows them, "
    "`accord token revoke --force` makes void what nobody here knows of"
)

# Whoever may read the private keys could sign anything: the files' mode is the permission.
SHELL = Actor(seat=f"{SYSTEM}:shell", kind=Kind.SYSTEM)


class Engine(Protocol):
    """What the desk asks of the engine."""

    async def handle(self, message: Message, actor: Actor, *, stream: str | None = None) -> object:
        """Decide the message and commit; raises Refused."""
        ...

    async def state(self, stream: str) -> Any:
        """The durable state of a stream."""
        ...

    @property
    def events(self) -> EventLog:
        """The log."""
        ...

    @property
    def codec(self) -> Codec:
        """How records are read."""
        ...


class LocalDesk:
    """Knows who shows a token, by the keys of this machine and the engine's log."""

    def __init__(self, engine: Engine, keyring: Keyring, clock: Clock) -> None:
        self.keyring = keyring
        self.clock = clock
        self._engine = engine

    @property
    def source(self) -> Source:
        """The log, for what is signed."""
        return self._engine

    async def identify(self, token: str) -> Identity:
        """Whom the token speaks for now."""
        people = await self.people()
        return verify(token, self.clock.now(), self.keyring, people.revoked)

    async def authenticate(self, request: Request) -> Actor:
        """Who is asking, by the token in the `Authorization` header."""
        token = bearer(request.headers.getlist("authorization"))
        if token is None:
            raise Refused(Why.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        return (await self.identify(token)).actor

    async def introduce(self) -> None:
        """Put the key that signs on the record, if it was made elsewhere; for a server's start."""
        active = next(key for key in self.keyring.list() if key.active)
        if active.kid != (await self.people()).active:
            await self.say(SHELL, KeyRotate(Key(active.kid, active.public)))

    def office(self, actor: Actor = SHELL) -> "LocalOffice":
        """The actor's own office."""
        return LocalOffice(self, actor)

    async def people(self) -> People:
        """What the log says of tokens and keys."""
        people: People = await self._engine.state(STREAM)
        return people

    async def say(self, actor: Actor, body: Body) -> None:
        """Put it on the record; raises Refused."""
        now = self.clock.now()
        id = ulid(now, secrets.token_bytes(10))
        message = Message(id, iso(now), DEFAULT_WORKSPACE, actor.seat, body)
        await self._engine.handle(message, actor, stream=STREAM)


class LocalOffice:
    """Signs with the keys of this machine and records on the engine's log, for one actor."""

    def __init__(self, desk: LocalDesk, actor: Actor) -> None:
        self._desk = desk
        self._actor = actor

    async def issue(self, wish: Wish) -> Issued:
        """A new token, on the record before it is handed out."""
        now = self._desk.clock.now()
        issued = issue(self._desk.keyring, now=now, **msgspec.structs.asdict(wish))
        await self._desk.say(self._actor, TokenIssue(issued.record()))
        return issued

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Make a token void, for good; `force` for one that nobody here knows of."""
        wish = revocation(jti, reason)
        if serves(self._actor) and not force:
            await self._ensure_known(jti)
        await self._desk.say(self._actor, wish)

    async def _ensure_known(self, jti: str) -> None:
        people = await self._desk.people()
        mine = (token.jti for token in people.visible_to(self._actor))
        if jti not in people.revoked and jti not in mine:
            raise Refused(Why.UNKNOWN, NOT_ISSUED)

    async def tokens(self) -> Sequence[Listed]:
        """The tokens that have not expired, as far as the actor looks after them."""
        people, now = await self._desk.people(), self._desk.clock.now()
        return [
            Listed(**msgspec.structs.asdict(token), revoked=token.jti in people.revoked)
            for token in people.visible_to(self._actor)
            if token.expires_at + SKEW > now
        ]

    async def keys(self) -> Sequence[PublicKey]:
        """The keys that verify, oldest first."""
        return self._desk.keyring.list()

    async def rotate(self) -> PublicKey:
        """The key that signs from now on."""
        ensure_keeper(self._actor)
        made = self._desk.keyring.rotate()
        await self._desk.say(self._actor, KeyRotate(Key(made.kid, made.public)))
        return made

    async def attest(self, repo: str, sha: str) -> str:
        """A signed statement of what the log has about a commit; for the house's operators."""
        ensure_keeper(self._actor)
        return await attested(self._desk.source, self._desk.keyring, repo, sha)


def revocation(jti: str, reason: str) -> TokenRevoke:
    """The wish, held to its own bounds although nothing decoded it."""
    try:
        return msgspec.convert({"jti": jti, "reason": reason}, TokenRevoke)
    except msgspec.ValidationError as no:
        raise Refused(Why.MALFORMED, f"That cannot be revoked: {no}") from None
