"""`GET /decisions`: why a commit, a path or a line is there, from the records of the server."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.api import decisions as api
from accord.core.kernel.actor import Actor
from accord.core.kernel.redaction import redact
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.decision_commit import (
    ConversationThread,
    DecisionCommit,
    decision_note,
    decisions_of,
    thread_of,
)
from accord.core.views.commit_decision.decision_search import (
    DecisionQuery,
    is_match,
    parse_query,
    searchable_text,
    shown_approvals,
    title_of,
)
from accord.transports.bridge.handlers import BridgeHandlers
from accord.transports.bridge.queries import BridgeQueries, CommitLink
from accord.transports.http.auth import Authenticator
from accord.transports.http.endpoint import Endpoint, QueryParameter, routes_of
from accord.transports.http.responses import json_response, with_refusals

DEFAULT_FOUND, MAX_FOUND = 30, 100
# Of each repository, the newest decisions are kept in memory to be searched.
MAX_KEPT = 10_000

ReaderFor = Callable[[Actor], BridgeHandlers]


class KnownDecision(NamedTuple):
    """A link, and its words without secrets."""

    repo: str
    link: CommitLink
    words: str


class DecisionIndex:
    """The decisions on the log; each search reads only what is new since the last one."""

    def __init__(self, queries: BridgeQueries) -> None:
        self.queries = queries
        self.read_up_to: dict[str, int] = {}
        self.known: dict[str, dict[str, KnownDecision]] = {}

    async def newest(self) -> list[KnownDecision]:
        """All kept decisions, newest first; a rewritten commit counts once."""
        await self._read_new()
        found = [each for repo in self.known.values() for each in repo.values()]
        return sorted(found, key=lambda each: each.link.at, reverse=True)

    async def _read_new(self) -> None:
        streams = await self.queries.source.events.streams("repo/")
        for stream, version in streams.items():
            repo = stream.partition("/")[2]
            after = self.read_up_to.get(repo, 0)
            if version <= after:
                continue
            async for row in self.queries.rows(stream, after):
                after = row.version
                if (link := self.queries.link_in_row(row)) is not None:
                    self._keep(repo, link)
            self.read_up_to[repo] = after

    def _keep(self, repo: str, link: CommitLink) -> None:
        known = self.known.setdefault(repo, {})
        known.pop(link.decision.id, None)
        known[link.decision.id] = KnownDecision(repo, link, redact(searchable_text(link.decision)))
        if len(known) > MAX_KEPT:
            del known[next(iter(known))]


class DecisionEndpoints:
    """What these endpoints of one server need."""

    def __init__(
        self, callers: Authenticator, queries: BridgeQueries, reader_for: ReaderFor
    ) -> None:
        self.callers = callers
        self.index = DecisionIndex(queries)
        self.reader_for = reader_for

    def routes(self) -> list[Route]:
        def serve(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
            async def handler(request: Request) -> Response:
                return await endpoint.handler(self, request)

            return with_refusals(handler)

        return routes_of(DECISION_ENDPOINTS, serve)

    def reader_of(self, request: Request) -> BridgeHandlers:
        """What the caller may read."""
        return self.reader_for(self.callers.authenticate_counted(request).actor)

    async def find(
        self, reader: BridgeHandlers, query: DecisionQuery, most: int
    ) -> list[KnownDecision]:
        """Those that match and that the caller may read, and one more if there are more."""
        readable: dict[tuple[str, str], bool] = {}
        found: list[KnownDecision] = []
        for known in await self.index.newest():
            decision = known.link.decision
            if not is_match(query, decision, known.words):
                continue
            place = (decision.pvp_session, decision.fork)
            if place not in readable:
                readable[place] = await reader.may_read(known.link)
            if readable[place]:
                found.append(known)
            if len(found) > most:
                break
        return found


async def list_decisions(endpoints: DecisionEndpoints, request: Request) -> Response:
    """Decisions behind commits of your sessions: by path, commit, decision or words."""
    reader = endpoints.reader_of(request)
    most = LIMIT_QUERY.parse_int(request)
    query = parse_query(AT_QUERY.get_text(request) or "")
    found = await endpoints.find(reader, query, most)
    if not found and query.kind in {"path", "commit"}:
        # A file name without its folder, or letters that only look like a commit.
        words = DecisionQuery("words", query.text)
        if found := await endpoints.find(reader, words, most):
            query = words._replace(line=query.line)
    return json_response(
        api.DecisionList(
            kind=query.kind,
            path=query.text if query.kind == "path" else "",
            line=query.line,
            decisions=tuple(entry_of(reader, known) for known in found[:most]),
            has_more=len(found) > most,
        )
    )


async def read_decision(endpoints: DecisionEndpoints, request: Request) -> Response:
    """One decision: approvals with what they cover, alternatives, calls and conversation."""
    reader = endpoints.reader_of(request)
    id = request.path_params["decision"]
    found = await endpoints.find(reader, DecisionQuery("decision", id), 1)
    if not found:
        raise Refused(Reason.NOT_FOUND, f"There is no decision {id} that you may read")
    note = await reader.note(found[0].link, found[0].repo)
    decision = next(iter(decisions_of(note)), None)
    if decision is None:
        # A note that is too long for git is shortened; the record itself is not.
        decision = clean(reader, found[0].link.decision)
    return json_response(detail_of(found[0].repo, decision, thread_of(note)))


def clean(reader: BridgeHandlers, decision: DecisionCommit) -> DecisionCommit:
    """The decision without secrets (UNI-29)."""
    note = decision_note(decision, None, reader.redactor_of(decision.pvp_session))
    return next(iter(decisions_of(note)), DecisionCommit(id=decision.id, pvp_session=""))


def entry_of(reader: BridgeHandlers, known: KnownDecision) -> api.DecisionEntry:
    return api.DecisionEntry(**entry_fields(known.repo, clean(reader, known.link.decision)))


def entry_fields(repo: str, decision: DecisionCommit) -> dict[str, Any]:
    return {
        "id": decision.id,
        "repo": repo,
        "sha": decision.git_sha,
        "title": title_of(decision),
        "session": decision.pvp_session,
        "session_name": decision.session_name,
        "fork": decision.fork or None,
        "branch": decision.branch,
        "decision_type": decision.decision_type,
        "decided_at": decision.decided_at,
        "decided_by": decision.decided_by,
        "approved_by": decision.approved_by,
        "covers": decision.covers,
        "files": decision.files_changed,
    }


def detail_of(
    repo: str, decision: DecisionCommit, thread: ConversationThread
) -> api.DecisionDetail:
    position = decision.position
    return api.DecisionDetail(
        **entry_fields(repo, decision),
        names=decision.names,
        approvals=tuple(
            api.DecisionApproval(
                by=shown.approval.by,
                gate=shown.approval.gate,
                action=shown.approval.action,
                comment=shown.approval.comment,
                at=shown.approval.at,
                self_approved=shown.approval.self_approved,
                extent=shown.extent,
                paths=shown.paths,
                together=shown.together,
            )
            for shown in shown_approvals(decision)
        ),
        alternatives=tuple(
            api.DecisionAlternative(
                kind=option.kind,
                id=option.id,
                description=option.description,
                reason=option.reason,
                by=option.by,
                branch=option.branch,
            )
            for option in decision.alternatives_considered
        ),
        tools=tuple(
            api.DecisionTool(
                id=tool.id,
                name=tool.name,
                agent=tool.agent,
                category=tool.category,
                risk=tool.risk,
                description=tool.description,
                outcome=tool.outcome,
                approved_by=tool.approved_by,
                paths=tool.paths,
            )
            for tool in decision.tool_executions
        ),
        conversation=tuple(api.DecisionMessage(**said._asdict()) for said in thread.messages),
        parents=decision.parents,
        first_sha=decision.first_sha,
        since=decision.since,
        until=decision.until,
        stream=position.stream if position else "",
        version=position.version if position else 0,
        hash=position.hash if position else "",
    )


AT_QUERY = QueryParameter(
    "at", "a path, `path:line`, a commit, a decision's id, or words; empty: the newest"
)
LIMIT_QUERY = QueryParameter("limit", "maximum number of decisions", DEFAULT_FOUND, 1, MAX_FOUND)
DECISION_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/decisions", list_decisions, query=(AT_QUERY, LIMIT_QUERY)),
    Endpoint("GET", "/decisions/{decision}", read_decision),
)
