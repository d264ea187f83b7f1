"""The bridge's actions for a member of a session who is not on the server's machine.

Callers of the bridge own the data directory and may see everything. A caller over the network has
a token, and sees what its principal may see: sessions it is a member of, forks it may read. What it
may not see is answered as if it did not exist. Directories are never taken from it, because the
server would read them.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.provenance.notes.note import Note
from accord.core.room.state import Room
from accord.engine.engine import Engine
from accord.transports.bridge import actions
from accord.transports.bridge.handlers import BridgeHandlers
from accord.transports.bridge.pact_mirrors import PactMirrors
from accord.transports.bridge.queries import CommitLink, CommitScope

MEMBER_ACTIONS = frozenset(
    {
        "status",
        "commit-context",
        "commit-coverage",
        "commits",
        "extended-metadata",
        "commit-created",
        "session-started",
        "session-ended",
    }
)
WRITING_ACTIONS = frozenset({"commit-created", "session-started", "session-ended"})
OBSERVER_DETAIL = "Observers of a session do not record commits in it"
FOREIGN_REPOSITORY_DETAIL = (
    "Sessions that you are not a member of are bound to this repository; ask one of their members"
)
DIRECTORY_DETAIL = "A pact is followed only by a server on the same machine; leave out `directory`"

ContentRequestT = TypeVar("ContentRequestT", bound=actions.ContentRequest)


class MemberHandlers(BridgeHandlers):
    """Answers for one principal."""

    def __init__(
        self,
        engine: Engine,
        mirrors: PactMirrors,
        actor: Actor,
        is_stopping: Callable[[], bool] = lambda: False,
        *,
        writes: bool = False,
    ) -> None:
        super().__init__(engine, mirrors, is_stopping)
        self.actor = actor
        self.writes = writes

    async def room(self, id: str) -> Room:
        """The state of a session of which the caller is a member; otherwise there is none."""
        room = await super().room(id)
        member = room.members.get(self.actor.principal)
        if member is None or room.workspace != self.actor.workspace:
            raise Refused(Reason.NO_ROOM, f"There is no session {id}")
        if self.writes and Permission.PARTICIPATE not in member.may:
            raise Refused(Reason.FORBIDDEN, OBSERVER_DETAIL)
        return room

    def committer(self, claimed: str) -> str:
        """The person whose token it is, whatever git says; an agent names no person."""
        del claimed
        return self.actor.principal if self.actor.kind is Kind.HUMAN else ""

    async def commit_coverage(
        self, request: actions.CommitCoverageRequest
    ) -> actions.ActionResponse:
        """Which approvals cover the content; an agent is not believed about its own commit."""
        return await super().commit_coverage(self._believed(request))

    async def commit_created(self, request: actions.CommitCreatedRequest) -> actions.ActionResponse:
        """Link the commit; what an agent says of its content covers nothing."""
        return await super().commit_created(self._believed(request))

    def _believed(self, request: ContentRequestT) -> ContentRequestT:
        """The request without the content that an agent claims: approvals exist to check agents."""
        if self.actor.kind is Kind.HUMAN:
            return request
        return replace(request, changes=None, contents={}, root="", tree="")

    async def scope_of(
        self, repo: str, session: str | None, fork: str | None, branch: str = ""
    ) -> CommitScope:
        """As for the owner, in a fork that the caller may read."""
        scope = await super().scope_of(repo, session, fork, branch)
        self._check_fork(scope.room, scope.fork)
        return scope

    async def active_sessions(self, bound: Sequence[str]) -> Sequence[str]:
        """The open sessions of the caller."""
        return await super().active_sessions(await self._visible(bound))

    async def status(self, request: actions.StatusRequest) -> actions.ActionResponse:
        """The server's version, and those bound sessions that the caller is a member of."""
        known = await super().status(request)
        if "sessions" not in known:
            return known
        return {**known, "sessions": list(await self._visible(known["sessions"]))}

    async def note(self, link: CommitLink, repo: str) -> Note:
        """The note, if the caller may read the session and fork that it is from."""
        if not await self.may_read(link):
            raise Refused(Reason.NOT_FOUND, f"No decision is linked to {link.decision.git_sha}")
        return await super().note(link, repo)

    async def session_started(
        self, request: actions.SessionStartedRequest
    ) -> actions.ActionResponse:
        """Bind a session of the caller."""
        if request.directory:
            raise Refused(Reason.MALFORMED, DIRECTORY_DETAIL)
        await self.room(request.session)
        bound_before = await self.active_sessions_of_all(request.repo)
        if bound_before and not await self._visible(bound_before):
            raise Refused(Reason.FORBIDDEN, FOREIGN_REPOSITORY_DETAIL)
        bound = await super().session_started(request)
        return {**bound, "sessions": list(await self._visible(bound["sessions"]))}

    async def session_ended(self, request: actions.SessionEndedRequest) -> actions.ActionResponse:
        """Unbind a session of the caller."""
        await self.room(request.session)
        bound = await super().session_ended(request)
        return {**bound, "sessions": list(await self._visible(bound["sessions"]))}

    async def active_sessions_of_all(self, repo: str) -> Sequence[str]:
        """The open sessions that are bound to a repository."""
        bound = (await self.repo(repo)).bound
        ended = await self.ended_sessions(bound)
        return [session for session in bound if session not in ended]

    async def _visible(self, sessions: Sequence[str]) -> Sequence[str]:
        return [session for session in sessions if await self._is_mine(session)]

    async def _is_mine(self, session: str) -> bool:
        room: Room = await self.engine.state(f"room/{session}")
        mine = self.actor.principal in room.members
        return room.exists and mine and room.workspace == self.actor.workspace

    async def may_read(self, link: CommitLink) -> bool:
        """Whether it is of the caller's sessions, in a fork that the caller may read."""
        decision = link.decision
        if not await self._is_mine(decision.pvp_session):
            return False
        room: Room = await self.engine.state(f"room/{decision.pvp_session}")
        return not decision.fork or self.actor.principal in room.readers(decision.fork)

    def _check_fork(self, room: Room, fork: str | None) -> None:
        if fork is not None and self.actor.principal not in room.readers(fork):
            raise Refused(Reason.NOT_FOUND, f"There is no fork {fork} in {room.id}")
