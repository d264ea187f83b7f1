"""The client: one principal, one connection, any number of sessions."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from accord.api.home import Home
from accord.api.responses import ContextItemDetail, SessionDetail, SessionSummary
from accord.client.connection.backoff import RetryPolicy
from accord.client.connection.outbox import AcceptedMessage
from accord.client.connection.router import MessageStamp, SessionRouter, new_id, new_message_stamp
from accord.client.errors import ServerRefused
from accord.client.http_reader import DEFAULT_PAGE_SIZE, HttpReader, TranscriptPage
from accord.client.session_defaults import DEFAULT_CONFIG, gate_time_metadata
from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SUPPORTED_VERSIONS, SessionJoin
from accord.core.room.room_settings import SessionConfig
from accord.core.room.session_lifecycle import SessionCreate

from .envelope import Envelope, MessageRefs, build_message
from .identity import Token, new_runtime_id, parse_address, resolve_identity
from .session import Session, build_announcement

if TYPE_CHECKING:
    from accord.api.policies import GivenStandingGrant, SignedPolicyText, StandingGrantRequest
    from accord.client.connection.reconnect import ConnectionObserver, ReconnectingConnection
    from accord.client.threads import Threads

# Unread messages per session before the client stops reading from the connection.
DEFAULT_INBOX_SIZE = 1024


class Client:
    """Connects one principal to a server.

    Sessions are joined inside `async with`, over one connection that reconnects after each loss and
    reports this to `watch`. Methods that read over HTTP need no connection. An unread session
    holds up the others on the same connection: use one client per session, or join with
    `listen=False`.
    """

    def __init__(  # noqa: PLR0913 - identity, address and connection options
        self,
        url: str,
        *,
        token: Token | None = None,
        id: str | None = None,
        kind: str | None = None,
        name: str | None = None,
        runtime: str | None = None,
        patient: bool = False,
        inbox: int = DEFAULT_INBOX_SIZE,
        retry: RetryPolicy | None = None,
        watch: "ConnectionObserver | None" = None,
        stamp: Callable[[], MessageStamp] = new_message_stamp,
    ) -> None:
        self.identity = resolve_identity(token, id, kind, name)
        self.runtime = runtime or new_runtime_id()
        self._address = parse_address(url)
        self._http_reader = HttpReader(self._address, self.identity)
        self._patient = patient
        self._inbox = inbox
        self._stamp = stamp
        self._retry = retry or RetryPolicy()
        self._watch = watch
        self._router: SessionRouter | None = None
        self._connection: ReconnectingConnection | None = None

    @classmethod
    def from_profile(cls, url: str | None = None, **options: Any) -> Self:
        """A client for the profile that `accord login` made, whose token renews itself.

        `ACCORD_PROFILE` names the profile, otherwise it is that of the last login; with an address
        it is the one for that server. Raises ProfileError if there is none.
        """
        from accord.client.sign_in.profile_token import ProfileToken
        from accord.settings.profiles import ProfileError, select_profile

        profile = select_profile(os.environ, url)
        if profile is None:
            where = f" for {url}" if url else ""
            raise ProfileError(f"There is no profile{where}; `accord login LINK` makes one")
        return cls(profile.url, token=ProfileToken(profile), **options)

    @property
    def id(self) -> str:
        """The id of the principal this client speaks for."""
        return self.identity.id

    @property
    def url(self) -> str:
        return self._address.base_url

    @property
    def threads(self) -> "Threads":
        """The threads of the principal, over HTTP; they need no connection."""
        from accord.client.threads import Threads  # most programs use sessions only

        return Threads(self._address, self.identity, self._retry)

    async def __aenter__(self) -> Self:
        """Connect; raises Unreachable if the server does not respond, unless `patient` is set."""
        # Most CLI commands only read over HTTP: they should not pay for importing websockets.
        from accord.client.connection.reconnect import ReconnectingConnection, ReconnectLoop

        loop = ReconnectLoop(self._address, self.identity, self.runtime, self._retry, self._watch)
        connection = ReconnectingConnection(loop)
        router = SessionRouter(self.identity, self._http_reader, connection.enqueue, self._stamp)
        await connection.open(router, patient=self._patient)
        self._router, self._connection = router, connection
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnect; the principal stays a member of every session it has not left."""
        if self._connection is not None:
            await self._connection.close()

    # Sessions

    async def create(
        self,
        config: SessionConfig = DEFAULT_CONFIG,
        *,
        name: str | None = None,
        id: str | None = None,
        gate_timeout: int | None = None,
        listen: bool = True,
    ) -> Session:
        """Create a session and join it as its admin; `gate_timeout` in seconds, 0 is never."""
        session = id or f"ses_{new_id()}"
        announcement = build_announcement(self.identity, None, (Role.ADMIN,), None, None)
        return await self._join_session(
            session,
            announcement,
            SessionCreate(config=config, name=name, metadata=gate_time_metadata(gate_timeout)),
            listen=listen,
        )

    async def join(
        self,
        session: str,
        *,
        roles: Iterable[Role | str] | None = None,
        name: str | None = None,
        capabilities: Iterable[Capability | str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        listen: bool = True,
    ) -> Session:
        """Join with as many of the requested roles as are granted; by default the token's roles."""
        announcement = build_announcement(
            self.identity, name, roles, capabilities, metadata, self.identity.roles
        )
        link = self._require_router.find(session)
        if link is None:
            return await self._join_session(session, announcement, None, listen=listen)
        await link.submit(
            SessionJoin(participant=announcement, supported_versions=SUPPORTED_VERSIONS)
        )
        return Session(link, self.identity)

    async def post(
        self, session: str, body: Body, ref: str | None = None, fork: str | None = None
    ) -> AcceptedMessage:
        """Send one message to a session without joining it; the principal must be a member.

        Over HTTP, unless the client is connected. Raises ServerRefused.
        """
        refs = MessageRefs(ref, fork=fork)
        if self._router is None:
            from accord.client.connection.http_sender import (
                HttpSender,  # not needed on a connection
            )

            sender = HttpSender(self._address, self.identity, self._retry)
            return await sender.post(build_message(*self._stamp(), session, self.id, body, refs))
        link = self._require_router.find(session)
        return await (
            link.submit(body, refs) if link else self._require_router.post(session, body, refs)
        )

    async def _join_session(
        self,
        session: str,
        announcement: ParticipantAnnounce,
        create: SessionCreate | None,
        *,
        listen: bool,
    ) -> Session:
        if create is not None and self._require_router.find(session):
            # The server would repeat its echo of the first one, which answers no new message.
            detail = f"The session id {session} is taken: this client is in it; choose another"
            raise ServerRefused("INVALID_STATE", detail, recoverable=False)
        join = SessionJoin(participant=announcement, supported_versions=SUPPORTED_VERSIONS)
        max_unread = self._inbox if listen else 0
        return Session(
            await self._require_router.join_session(session, join, create, max_unread),
            self.identity,
        )

    @property
    def _require_router(self) -> SessionRouter:
        if self._router is None:
            raise RuntimeError("Open the client first: `async with Client(...) as client:`")
        return self._router

    # Reading over HTTP

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions the principal is or was a member of, newest first."""
        return await self._http_reader.sessions()

    async def signed_policy(self, repository: str) -> "SignedPolicyText":
        """The newest signed policy of a repository; raises ServerRefused if there is none."""
        return await self._http_reader.signed_policy(repository)

    async def give_standing_grant(
        self, session: str, request: "StandingGrantRequest"
    ) -> "GivenStandingGrant":
        """Vote yes beforehand on calls alike of one agent; raises ServerRefused."""
        return await self._http_reader.give_standing_grant(session, request)

    async def end_standing_grant(self, session: str, id: str, reason: str = "") -> None:
        """End a standing grant; raises ServerRefused."""
        await self._http_reader.end_standing_grant(session, id, reason)

    async def home(self) -> Home:
        """What concerns the principal in all its sessions: gates, stalls, gates that ended."""
        return await self._http_reader.home()

    def home_events(self) -> AsyncIterator[Home]:
        """The home, then a `SessionHome` for each session that changes, until it is lost."""
        return self._http_reader.home_events()

    async def session(self, id: str) -> SessionDetail:
        """The current state of a session: members, open gates and proposals, forks, context."""
        return await self._http_reader.session(id)

    async def context(self, id: str, key: str, fork: str | None = None) -> ContextItemDetail:
        """One item of a session's context, including its content."""
        return await self._http_reader.context(id, key, fork)

    async def transcript(
        self, id: str, after: int = 0, limit: int = DEFAULT_PAGE_SIZE
    ) -> TranscriptPage:
        """One page of the messages of a session after `seq` `after`."""
        return await self._http_reader.transcript(id, after, limit)

    def history(self, id: str, after: int = 0) -> AsyncIterator[Envelope]:
        """All messages of a session after `seq` `after`, page by page."""
        return self._http_reader.history(id, after)
