"""The client: one principal, one connection, any number of sessions."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.log import Body
from accord.core.room.lifecycle import SessionCreate
from accord.core.room.members import VERSIONS, SessionJoin
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.state import SessionConfig

from .backoff import Retry
from .config import USUAL
from .envelope import Envelope, Links
from .hub import Hub, Stamp, fresh_id, fresh_stamp
from .identity import address, fresh_runtime, identity
from .outbox import Accepted
from .session import Session, announcement
from .web import USUAL_PAGE, Detail, Opened, Page, Summary, Web

if TYPE_CHECKING:
    from .link import Link, Watch

# Messages that may wait for their reader before reading from the connection stops.
USUAL_INBOX = 1024


class Client:
    """A participant's way into a server.

    Sessions are joined inside `async with`, on one connection that is opened again whenever it is
    lost, of which `watch` is told; what is only read over HTTP needs no connection. Where one
    session's messages are not read, the others wait with it: give each its own client, or join with
    `listen=False`.
    """

    def __init__(  # noqa: PLR0913 - who, where and how patiently
        self,
        url: str,
        *,
        token: str | None = None,
        id: str | None = None,
        kind: str | None = None,
        name: str | None = None,
        runtime: str | None = None,
        patient: bool = False,
        inbox: int = USUAL_INBOX,
        retry: Retry | None = None,
        watch: "Watch | None" = None,
        stamp: Callable[[], Stamp] = fresh_stamp,
    ) -> None:
        self.who = identity(token, id, kind, name)
        self.runtime = runtime or fresh_runtime()
        self._where = address(url)
        self._web = Web(self._where, self.who)
        self._patient = patient
        self._inbox = inbox
        self._stamp = stamp
        self._retry = retry or Retry()
        self._watch = watch
        self._hub: Hub | None = None
        self._link: Link | None = None

    @property
    def id(self) -> str:
        """Who one is."""
        return self.who.id

    @property
    def url(self) -> str:
        """The server's address over HTTP."""
        return self._where.base

    async def __aenter__(self) -> Self:
        """Connected; Unreachable where nobody answers, unless one is `patient`."""
        # The command line reads over HTTP more often than it connects.
        from .link import Link

        link = Link(self._where, self.who, self.runtime, self._retry, self._watch)
        hub = Hub(self.who, self._web, link.say, self._stamp)
        await link.open(hub, patient=self._patient)
        self._hub, self._link = hub, link
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Disconnected; one stays a member of every session that one has not left."""
        if self._link is not None:
            await self._link.close()

    # Sessions

    async def create(
        self,
        config: SessionConfig = USUAL,
        *,
        name: str | None = None,
        id: str | None = None,
        listen: bool = True,
    ) -> Session:
        """A new session with oneself as its admin."""
        session = id or f"ses_{fresh_id()}"
        back = announcement(self.who, None, (Role.ADMIN,), None, None)
        return await self._attend(
            session, back, SessionCreate(config=config, name=name), listen=listen
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
        """In a session, with what of the roles asked for is granted; the token's by default."""
        who = announcement(self.who, name, roles, capabilities, metadata, self.who.roles)
        here = self._inside.find(session)
        if here is None:
            return await self._attend(session, who, None, listen=listen)
        await here.say(SessionJoin(participant=who, supported_versions=VERSIONS))
        return Session(here, self.who)

    async def post(
        self, session: str, body: Body, ref: str | None = None, fork: str | None = None
    ) -> Accepted:
        """One message to a session one is a member of, without joining it; raises ServerRefused."""
        here = self._inside.find(session)
        links = Links(ref, fork=fork)
        return await (here.say(body, links) if here else self._inside.post(session, body, links))

    async def _attend(
        self,
        session: str,
        who: ParticipantAnnounce,
        create: SessionCreate | None,
        *,
        listen: bool,
    ) -> Session:
        if create is not None and (here := self._inside.find(session)):
            await here.say(create)
        join = SessionJoin(participant=who, supported_versions=VERSIONS)
        bound = self._inbox if listen else 0
        return Session(await self._inside.attend(session, join, create, bound), self.who)

    @property
    def _inside(self) -> Hub:
        if self._hub is None:
            raise RuntimeError("Use the client inside `async with`")
        return self._hub

    # Reading over HTTP

    async def sessions(self) -> tuple[Summary, ...]:
        """The sessions one is or was in, newest first."""
        return await self._web.sessions()

    async def session(self, id: str) -> Detail:
        """One session as it stands: members, open gates and tools, forks, context."""
        return await self._web.session(id)

    async def context(self, id: str, key: str, fork: str | None = None) -> Opened:
        """One item of a session's context, with what stands in it."""
        return await self._web.context(id, key, fork)

    async def transcript(self, id: str, after: int = 0, limit: int = USUAL_PAGE) -> Page:
        """A stretch of what was said in a session, behind place number `after`."""
        return await self._web.transcript(id, after, limit)

    def history(self, id: str, after: int = 0) -> AsyncIterator[Envelope]:
        """Everything that was said behind place number `after`."""
        return self._web.history(id, after)
