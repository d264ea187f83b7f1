"""Issuing and revoking tokens and keys, on an engine in this process."""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import Request

from accord.api.tokens import IssuedToken, ListedToken, PublicKey, TokenRequest
from accord.core.kernel.actor import DEFAULT_WORKSPACE, POLICY_ACTOR, Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import ulid
from accord.core.people.signing_keys import IdSecretChoose, KeyRotate, ensure_key_operator
from accord.core.people.state import CLOCK_SKEW_MS, People, SigningKey, is_operator_or_system
from accord.core.people.tokens import TokenIssue, TokenRevoke
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Room
from accord.engine.ports import Clock, Codec, EventLog
from accord.identity.keyring import load_public_key
from accord.identity.people_admin import LocalPeopleAdmin
from accord.identity.token_signing import (
    Identity,
    Keyring,
    issue_token,
    verify_token,
)
from accord.transports.bridge.commit_attestation import attest_commit
from accord.transports.bridge.queries import LogSource
from accord.transports.http.admin import TokenAdmin
from accord.transports.http.people.sign_in_cookie import token_of_request

__all__ = [
    "PEOPLE_STREAM",
    "SHELL_ACTOR",
    "LocalTokenAdmin",
    "TokenAdmin",
    "TokenService",
    "load_public_key",
]

PEOPLE_STREAM = f"people/{DEFAULT_WORKSPACE}"

UNKNOWN_JTI_TEXT = (
    "No token with this id was issued here, or it has expired. `accord token list` shows all; "
    "`accord token revoke --force` revokes an id that is not listed"
)

# Read access to the private key files already allows signing anything, so it is the permission.
SHELL_ACTOR = Actor(principal=f"{SYSTEM}:shell", kind=Kind.SYSTEM)


# The streams of the sessions that a principal is or was in.
SessionsOf = Callable[[Actor], Awaitable[Iterable[str]]]
REVOKED_DETAIL = "The last token was revoked"


class EnginePort(Protocol):
    """What the token service needs of the engine."""

    async def handle(self, message: Message, actor: Actor, *, stream: str | None = None) -> object:
        """Decide the message and commit; raises Refused."""
        ...

    async def state(self, stream: str) -> Any:
        """The durable state of a stream."""
        ...

    @property
    def events(self) -> EventLog: ...

    @property
    def codec(self) -> Codec: ...


class TokenService:
    """Authenticates tokens with this machine's keys and the log's revocations."""

    def __init__(
        self, engine: EnginePort, keyring: Keyring, clock: Clock, sessions_of: SessionsOf
    ) -> None:
        self.keyring = keyring
        self.clock = clock
        self._engine = engine
        self._sessions_of = sessions_of

    @property
    def log_source(self) -> LogSource:
        """The log that attestations are made from."""
        return self._engine

    async def identify(self, token: str) -> Identity:
        """The identity that the token proves now; raises Refused."""
        people = await self.people()
        return verify_token(token, self.clock.now(), self.keyring, people.revoked)

    async def authenticate(self, request: Request) -> Actor:
        """The actor of the request's token or cookie; raises Refused."""
        token = token_of_request(request, (await self.people()).server_id)
        if token is None:
            raise Refused(Reason.UNAUTHENTICATED, "Send a token as `Authorization: Bearer …`")
        return (await self.identify(token)).actor

    async def record_active_key(self) -> None:
        """At startup, record the signing key if it was created outside the server."""
        active = next(key for key in self.keyring.public_keys() if key.active)
        if active.kid != (await self.people()).active:
            await self.record(SHELL_ACTOR, KeyRotate(SigningKey(active.kid, active.public)))

    async def choose_id_secret(self) -> None:
        """At the first startup, choose the secret from which ids of keyed messages are derived."""
        if not (await self.people()).id_secret:
            await self.record(SHELL_ACTOR, IdSecretChoose(secrets.token_hex(32)))

    def admin_for(self, actor: Actor = SHELL_ACTOR) -> "LocalTokenAdmin":
        """Token management on behalf of this actor."""
        return LocalTokenAdmin(self, actor)

    async def people(self) -> People:
        """Tokens and keys as the log records them."""
        people: People = await self._engine.state(PEOPLE_STREAM)
        return people

    async def record(self, actor: Actor, body: Body) -> None:
        """Record it; raises Refused."""
        message = self._message(DEFAULT_WORKSPACE, actor.principal, body)
        await self._engine.handle(message, actor, stream=PEOPLE_STREAM)

    async def end_memberships(self, workspace: str, principal: str) -> None:
        """Leave every session in the name of a principal whose last token and device are revoked.

        Doing it again after an interruption ends what is left.
        """
        if (await self.people()).has_credential(workspace, principal, self.clock.now()):
            return
        holder = Actor(principal, Kind.HUMAN, workspace=workspace)
        for stream in await self._sessions_of(holder):
            room: Room = await self._engine.state(stream)
            if principal in room.members and not room.ended:
                message = self._message(room.id, SYSTEM, SessionLeave(REVOKED_DETAIL, principal))
                await self._engine.handle(message, POLICY_ACTOR, stream=stream)

    async def sessions_with(self, workspace: str, principal: str) -> int:
        """In how many open sessions this principal is a member."""
        holder = Actor(principal, Kind.HUMAN, workspace=workspace)
        rooms = [await self._engine.state(stream) for stream in await self._sessions_of(holder)]
        return sum(principal in room.members and not room.ended for room in rooms)

    def _message(self, room: str, sender: str, body: Body) -> Message:
        now = self.clock.now()
        return Message(ulid(now, secrets.token_bytes(10)), to_iso(now), room, sender, body)


class LocalTokenAdmin:
    """Manages tokens and keys for one actor, on this machine's keys and the engine's log."""

    def __init__(self, service: TokenService, actor: Actor) -> None:
        self._service = service
        self._actor = actor

    @property
    def people(self) -> LocalPeopleAdmin:
        """People, their devices and invitations."""
        return LocalPeopleAdmin(self._service, self._actor)

    async def issue(self, token_request: TokenRequest) -> IssuedToken:
        """Issue a token, recorded before it is returned."""
        now = self._service.clock.now()
        issued = issue_token(
            self._service.keyring, now=now, **msgspec.structs.asdict(token_request)
        )
        await self._service.record(self._actor, TokenIssue(issued.public_record()))
        return issued

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Revoke a token for good; `force` accepts an id that was not issued here.

        With their last token, principals leave every session; an expiry ends no membership.
        """
        token_request = revocation(jti, reason)
        if is_operator_or_system(self._actor) and not force:
            await self._ensure_known(jti)
        await self._service.record(self._actor, token_request)
        token = (await self._service.people()).tokens.get(jti)
        if token is not None:
            await self._service.end_memberships(token.workspace, token.id)

    async def _ensure_known(self, jti: str) -> None:
        people = await self._service.people()
        visible = (token.jti for token in people.tokens_visible_to(self._actor))
        if jti not in people.revoked and jti not in visible:
            raise Refused(Reason.NOT_FOUND, UNKNOWN_JTI_TEXT)

    async def tokens(self) -> Sequence[ListedToken]:
        """Unexpired tokens that the actor may see."""
        people, now = await self._service.people(), self._service.clock.now()
        return [
            ListedToken(**msgspec.structs.asdict(token), revoked=token.jti in people.revoked)
            for token in people.tokens_visible_to(self._actor)
            if token.expires_at + CLOCK_SKEW_MS > now
        ]

    async def keys(self) -> Sequence[PublicKey]:
        """Keys that verify tokens, oldest first."""
        return self._service.keyring.public_keys()

    async def rotate(self) -> PublicKey:
        """Make a new key sign from now on; operators only."""
        ensure_key_operator(self._actor)
        key = self._service.keyring.rotate()
        await self._service.record(self._actor, KeyRotate(SigningKey(key.kid, key.public)))
        return key

    async def attest(self, repo: str, sha: str) -> str:
        """A signed statement of what the log records about a commit; operators only."""
        ensure_key_operator(self._actor)
        return await attest_commit(self._service.log_source, self._service.keyring, repo, sha)


def revocation(jti: str, reason: str) -> TokenRevoke:
    """The validated message body; raises Refused."""
    try:
        return msgspec.convert({"jti": jti, "reason": reason}, TokenRevoke)
    except msgspec.ValidationError as error:
        raise Refused(Reason.MALFORMED, f"Invalid revocation: {error}") from None
