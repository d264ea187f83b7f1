"""The bridge's actions, answered from the log without state of their own."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from accord import __version__
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import SYSTEM, TRUNK_NAMES
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.redaction import redact_json, redactor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.commit_links import (
    MAX_LEDGERS,
    CommitRecord,
    LedgerPlace,
    LedgerRemove,
    Repo,
    SessionBind,
    SessionUnbind,
    link_id,
)
from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.decision_commit import (
    DecisionCommit,
    decision_note,
    masked_messages,
    reapply_masks,
)
from accord.core.provenance.notes.note import Note
from accord.core.room.forking.merge_approval import MAX_REPORTED_RUNS, CommitReport
from accord.core.room.state import Room
from accord.core.views.commit_decision.commit_coverage import (
    contained_runs,
    depends_on_content,
    with_recorded_calls,
)
from accord.core.views.commit_decision.draft_decision import DecisionDraft
from accord.engine.engine import Engine
from accord.transports.bridge import actions
from accord.transports.bridge.pact_mirrors import PactMirrors
from accord.transports.bridge.queries import (
    BridgeQueries,
    CommitLink,
    CommitScope,
    FactsNeededError,
    FoundLink,
    contained_in,
    covered,
    link_summary,
    missing_facts,
    range_of,
    with_committer,
    with_coverage,
    with_further_runs,
    with_git_facts,
    without_coverage,
)

BRIDGE_ACTOR = Actor(principal=f"{SYSTEM}:bridge", kind=Kind.SYSTEM)
PROTOCOL_VERSION = 1
MAX_LINK_ATTEMPTS = 5
NOTHING_TO_COMMIT = "Nothing was prompted, done or approved since the last commit"
SEVERAL_SESSIONS = (
    "Several sessions are bound to this repository; set ACCORD_SESSION to one of them"
)
NO_MERGE_REFUSAL = "No merge of {forks} was proposed or executed since the last commit"
NO_SESSION = "No session is bound to this repository; bind one or set ACCORD_SESSION"


class BridgeHandlers:
    """Handles every action; callers have been verified to own the data directory."""

    def __init__(
        self, engine: Engine, mirrors: PactMirrors, is_stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self.engine = engine
        self.mirrors = mirrors
        self.is_stopping = is_stopping
        self.queries = BridgeQueries(engine)

    def handler_of(self, name: str) -> Callable[[Any], Awaitable[actions.ActionResponse]]:
        """The method of this action."""
        if self.is_stopping():
            raise Refused(Reason.UNAVAILABLE, "The server is stopping; try again in a moment")
        draft: Callable[[Any], Awaitable[actions.ActionResponse]] = getattr(
            self, name.replace("-", "_")
        )
        return draft

    # Reading

    async def status(self, request: actions.StatusRequest) -> actions.ActionResponse:
        """Version of the server, and the sessions bound to a repository."""
        masked: dict[str, Any] = {
            "bridge": "accord",
            "version": __version__,
            "protocol": PROTOCOL_VERSION,
        }
        if request.repo is None:
            return masked
        repo = await self.repo(request.repo)
        return {**masked, "repo": repo.id, "sessions": list(repo.bound)}

    async def commit_context(self, request: actions.CommitContextRequest) -> actions.ActionResponse:
        """Values for the trailers; without `decision` there is nothing to record.

        Approvals are not among them: `commit-coverage` says which cover the content.
        """
        scope = await self.scope_of(request.repo, request.session, request.fork, request.branch)
        draft = await self.queries.draft_decision(scope.uncommitted)
        if draft is None:
            return {"session": scope.room.id, "messages": [], "reason": NOTHING_TO_COMMIT}
        record: dict[str, Any] = redact_json(
            decisions.trailer_context(
                with_committer(draft.decision, scope.room, self.committer(request.committer))
            ),
            self.redactor_of(scope.room.id),
        )
        has_only_carried = draft.decision.until == draft.decision.since
        return record | {
            "coverable": depends_on_content(draft, request.root),
            "only_carried": has_only_carried,
        }

    async def commit_coverage(
        self, request: actions.CommitCoverageRequest
    ) -> actions.ActionResponse:
        """Who approved all of the content and who decided on it; or what to send first."""
        scope = await self.scope_of(request.repo, request.session, request.fork, request.branch)
        draft = await self.queries.draft_decision(scope.uncommitted, contains=contained_in(request))
        if draft is None:
            return {"session": scope.room.id, "approved_by": [], "reason": NOTHING_TO_COMMIT}
        if needs := missing_facts(draft, request):
            return {"session": scope.room.id, "needs": needs}
        decision = with_committer(
            with_coverage(draft, request), scope.room, self.committer(request.committer)
        )
        covered: actions.ActionResponse = redact_json(
            {
                **decisions.trailer_context(decision),
                "covers": decision.covers,
            },
            self.redactor_of(scope.room.id),
        )
        return covered

    async def commits(self, request: actions.CommitsRequest) -> actions.ActionResponse:
        """A page of linked commits that the caller may read."""
        page = await self.queries.links_after(
            request.repo, request.after, request.limit, request.session, self.may_read
        )
        return {
            "commits": [link_summary(link) for link in page],
            "next": page[-1].version if page else request.after,
        }

    async def extended_metadata(
        self, request: actions.ExtendedMetadataRequest
    ) -> actions.ActionResponse:
        """The note of a commit that was linked in this clone or in another one."""
        links = await self.queries.links_of_commit(request.repo, request.sha)
        if not (found := await self.readable(links)):
            raise Refused(Reason.NOT_FOUND, f"No decision is linked to {request.sha}")
        repo, link = found[0]
        return {"decision": link.decision.id, "note": await self.note(link, repo)}

    async def message(self, request: actions.MessageKnownRequest) -> actions.ActionResponse:
        """Whether the message was recorded and visible to the whole session."""
        await self.room(request.session)
        record = (await self.queries.find_records(request.session, [request.id])).get(request.id)
        known = record is not None and record.to is None and record.said is not None
        return {"session": request.session, "id": request.id, "known": known}

    async def reset(self, request: actions.ResetRequest) -> actions.ActionResponse:
        """What the next decision would be; nothing changes."""
        scope = await self.scope_of(request.repo, request.session, request.fork)
        draft = await self.queries.draft_decision(scope.uncommitted)
        upcoming = {"decision": draft.decision.id, "until": draft.decision.until} if draft else {}
        return {
            "moved": False,
            "session": scope.room.id,
            "since": scope.uncommitted.since,
        } | upcoming

    # Recording

    async def session_started(
        self, request: actions.SessionStartedRequest
    ) -> actions.ActionResponse:
        """Bind an open session; sessions that have ended are unbound."""
        room = await self.room(request.session)
        if room.ended:
            raise Refused(Reason.ENDED, f"The session {room.id} has ended")
        for ended in await self.ended_sessions((await self.repo(request.repo)).bound):
            await self.record(request.repo, self.engine.new_id(), SessionUnbind(ended))
        if request.directory:
            await self.record_directory(request.repo, request.directory)
        await self.mirrors.guard_merges(await self.repo(request.repo), room.id)
        await self.record(request.repo, self.engine.new_id(), SessionBind(room.id))
        bound = await self.repo(request.repo)
        await self.mirrors.sync_briefly(bound)
        return {"repo": request.repo, "sessions": list(bound.bound)}

    async def session_ended(self, request: actions.SessionEndedRequest) -> actions.ActionResponse:
        """Unbind; not an error if it was not bound."""
        await self.mirrors.release_session(request.repo, request.session)
        await self.record(request.repo, self.engine.new_id(), SessionUnbind(request.session))
        return {"repo": request.repo, "sessions": list((await self.repo(request.repo)).bound)}

    async def pact_changed(self, request: actions.PactChangedRequest) -> actions.ActionResponse:
        """Record the directory, so that mirroring continues after a restart."""
        await self.record_directory(request.repo, request.directory)
        return await self.mirrors.sync_now(request.repo, request.directory)

    async def record_directory(self, repo: str, directory: str) -> None:
        """Record a directory of the pact; raises Refused if it cannot be one.

        When there are too many, directories that are gone and redundant are removed first.
        """
        self.mirrors.check_directory(repo, directory)
        known = await self.repo(repo)
        if directory not in known.ledgers and len(known.ledgers) >= MAX_LEDGERS:
            for item in await self.mirrors.removable_directories(known):
                await self.record(repo, self.engine.new_id(), LedgerRemove(item))
        await self.record(repo, self.engine.new_id(), LedgerPlace(directory))

    async def places(self, request: actions.PlacesRequest) -> actions.ActionResponse:
        """All directories with their problems."""
        repo = await self.repo(request.repo)
        return {"repo": repo.id, "places": list(await self.mirrors.ledger_statuses(repo))}

    async def place_removed(self, request: actions.PlaceRemovedRequest) -> actions.ActionResponse:
        """Forget a directory; refused while a session depends on what only it has."""
        repo = await self.repo(request.repo)
        if request.directory not in repo.ledgers:
            raise Refused(
                Reason.NOT_FOUND, f"{request.directory} is not a known directory of {repo.id}"
            )
        if not request.force and set(repo.bound) - set(await self.ended_sessions(repo.bound)):
            await self.mirrors.check_removable(repo, request.directory)
        await self.record(repo.id, self.engine.new_id(), LedgerRemove(request.directory))
        remaining = await self.repo(request.repo)
        return {"repo": repo.id, "places": list(remaining.ledgers)}

    async def commit_created(self, request: actions.CommitCreatedRequest) -> actions.ActionResponse:
        """Link the commit; idempotent."""
        link = await self.queries.link_of_commit(request.repo, request.sha)
        if link is None and request.made_at and not request.decision:
            scope = await self.scope_of(request.repo, request.session, request.fork, request.branch)
            if not await self.queries.draft_decision(
                scope.uncommitted, made_at=request.made_at, contains=contained_in(request)
            ):
                return {"session": scope.room.id, "reason": NOTHING_TO_COMMIT}
        for _ in range(MAX_LINK_ATTEMPTS):
            if link is not None:
                break
            try:
                record = await self.decision_of(request)
                made = record.decision
                await self.report_to_session(
                    request, made.pvp_session, made.fork or None, contained_runs(made)
                )
                await self.record(request.repo, link_id(request.sha), record)
            except FactsNeededError as more:
                return {"needs": more.needs}
            except Refused as no:
                if no.reason is not Reason.WRONG_STATE:
                    raise
                continue  # another commit linked the same range first
            link = await self.queries.link_of_commit(request.repo, request.sha)
        if link is None:
            raise Refused(Reason.UNAVAILABLE, "Too many commits at the same time; try again")
        return {"decision": link.decision.id, "note": await self.note(link, request.repo)}

    async def decision_of(self, request: actions.CommitCreatedRequest) -> CommitRecord:
        """The decision that the commit message names, or the next one."""
        if request.decision and (
            before := await self.queries.link_of_decision(request.repo, request.decision)
        ):
            again = await self.decision_again(before.decision, request)
            return CommitRecord(await self.completed(again, request), before.masked)
        scope = await self.scope_of(request.repo, request.session, request.fork, request.branch)
        draft = await self.queries.draft_decision(
            scope.uncommitted, request.decision, request.made_at, contained_in(request)
        )
        if draft is None and request.decision:
            raise Refused(
                Reason.NOT_FOUND, f"{request.decision} is not a decision of this repository"
            )
        if draft is None:
            await self.report_to_session(request, scope.room.id, scope.fork)
            raise Refused(Reason.NOT_FOUND, NOTHING_TO_COMMIT)
        merged = {item.fork for item in draft.decision.merges}
        if request.merges and not merged.intersection(request.merges):
            raise Refused(
                Reason.NOT_FOUND, NO_MERGE_REFUSAL.format(forks=" and ".join(request.merges))
            )
        clean = self.redactor_of(scope.room.id)
        masked = masked_messages(draft.thread, clean)
        draft = with_recorded_calls(draft, clean)
        return CommitRecord(await self.completed(covered(draft, request), request), masked)

    async def decision_again(
        self, before: DecisionCommit, request: actions.CommitCreatedRequest
    ) -> DecisionCommit:
        """A decision that a rewritten commit names again, with what covers that commit."""
        draft = await self.draft_again(before, request)
        if draft is None:
            known = without_coverage(before)
        else:
            draft = with_recorded_calls(draft, self.redactor_of(before.pvp_session))
            again = with_further_runs(before, draft.decision)
            fresh = covered(draft._replace(decision=again), request)
            known = replace(fresh, id=before.id, since=before.since, until=before.until)
        return replace(known, first_sha=before.first_sha or before.git_sha)

    async def completed(
        self, decision: DecisionCommit, request: actions.CommitCreatedRequest
    ) -> DecisionCommit:
        """The decision with git's facts, redacted before storing: later no secret is known."""
        room = await self.room(decision.pvp_session)
        known = with_committer(
            with_git_facts(decision, request), room, self.committer(request.committer)
        )
        redacted = redact_json(decisions.to_json(known), self.redactor_of(decision.pvp_session))
        return decisions.from_json(redacted)

    async def report_to_session(
        self,
        request: actions.CommitCreatedRequest,
        session: str,
        fork: str | None,
        runs: Sequence[str] = (),
    ) -> None:
        """Let the session know which of its runs are committed, before the commit is linked.

        If linking fails, it is reported again; a second report changes nothing. A commit of a fork
        is reported without any runs, too: it changes what a merge of the fork would bring back.
        """
        if not runs and fork is None:
            return
        body = CommitReport(request.repo, request.sha, fork, tuple(runs[-MAX_REPORTED_RUNS:]))
        now = to_iso(self.engine.clock.now())
        message = Message(self.engine.new_id(), now, session, BRIDGE_ACTOR.principal, body)
        await self.engine.handle(message, BRIDGE_ACTOR)

    # Helpers

    async def note(self, link: CommitLink, repo: str) -> Note:
        """The note: the decision as linked, with messages as the log has them."""
        draft = await self.draft_of(link.decision, repo)
        thread = reapply_masks(draft.thread, link.masked) if draft else None
        return decision_note(link.decision, thread, self.redactor_of(link.decision.pvp_session))

    async def draft_of(self, decision: DecisionCommit, repo: str) -> DecisionDraft | None:
        """The draft of a linked decision, from the same records."""
        room: Room = await self.engine.state(f"room/{decision.pvp_session}")
        return await self.queries.draft_decision(range_of(decision, room, repo), decision.id)

    async def draft_again(
        self, before: DecisionCommit, request: actions.CommitCreatedRequest
    ) -> DecisionDraft | None:
        """The draft of a linked decision for another commit, which may contain other runs."""
        room: Room = await self.engine.state(f"room/{before.pvp_session}")
        repo = await self.repo(request.repo)
        same = range_of(before, room, request.repo)
        known = {run.id for run in same.carried}
        more = tuple(
            run
            for run in repo.carried(before.pvp_session, before.fork or None)
            if run.id not in known and run.since < before.since
        )
        is_contained = contained_in(request)
        return await self.queries.draft_decision(
            same._replace(carried=(*same.carried, *more)),
            before.id,
            contains=lambda run, proposal: run.id in known or is_contained(run, proposal),
        )

    async def readable(self, links: Sequence[FoundLink]) -> Sequence[FoundLink]:
        """Those links that the caller may read."""
        return [found for found in links if await self.may_read(found.link)]

    async def may_read(self, link: CommitLink) -> bool:
        """Whether the caller may read a link: the owner every one."""
        del link
        return True

    def committer(self, claimed: str) -> str:
        """Who commits: a process of the data directory's owner is believed."""
        return claimed

    def redactor_of(self, session: str) -> Callable[[str], str]:
        """A redactor that knows the secrets currently shared in the session."""
        return redactor(self.engine.vault.values(f"room/{session}"))

    async def scope_of(
        self, repo: str, session: str | None, fork: str | None, branch: str = ""
    ) -> CommitScope:
        """Repository, session and fork of a commit; raises Refused when ambiguous."""
        known = await self.repo(repo)
        room = await self.room(session or single_session(await self.active_sessions(known.bound)))
        fork_name = fork if fork is not None else trailer_values.fork_of(branch, room.forks)
        fork_id = None if fork_name in TRUNK_NAMES else fork_name
        if fork_id is not None and fork_id not in room.forks:
            raise Refused(Reason.NOT_FOUND, f"There is no fork {fork_id} in {room.id}")
        return CommitScope(known, room, fork_id)

    async def active_sessions(self, bound: Sequence[str]) -> Sequence[str]:
        """Open sessions; if there is none, ended ones, whose last work may still be committed."""
        ended = await self.ended_sessions(bound)
        return [item for item in bound if item not in ended] or bound

    async def ended_sessions(self, bound: Sequence[str]) -> Sequence[str]:
        rooms = [await self.engine.state(f"room/{item}") for item in bound]
        return [room.id for room in rooms if room.ended]

    async def repo(self, id: str) -> Repo:
        """The state of a repository."""
        repo: Repo = await self.engine.state(f"repo/{id}")
        return repo

    async def room(self, id: str) -> Room:
        """The state of a session; raises Refused when there is none."""
        room: Room = await self.engine.state(f"room/{id}")
        if not room.exists:
            raise Refused(Reason.NO_ROOM, f"There is no session {id}")
        return room

    async def record(self, repo: str, id: str, body: Body) -> Sequence[Any]:
        """Record it; durable when this returns."""
        message = Message(id, to_iso(self.engine.clock.now()), repo, BRIDGE_ACTOR.principal, body)
        return await self.engine.handle(message, BRIDGE_ACTOR, stream=f"repo/{repo}")


def single_session(sessions: Sequence[str]) -> str:
    """The only session; raises Refused when there are several or none."""
    if not sessions:
        raise Refused(Reason.NOT_FOUND, NO_SESSION)
    if len(sessions) > 1:
        raise Refused(Reason.WRONG_STATE, SEVERAL_SESSIONS, {"sessions": list(sessions)})
    return sessions[0]
