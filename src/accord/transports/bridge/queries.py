"""The bridge's queries: ranges of sessions, links of commits, and what is known about a commit.

The server has no copy of the repository. For coverage, it computes what a call makes of a content
that the hook sends and whose blob id it checks, and it records the blob ids, so that anybody with
the repository can check the rest.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from accord.core.kernel.messages import Instant
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.provenance.commit_links import CommitLinked, Repo, link_id
from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailer_values import (
    has_control_characters,
    participant_for,
)
from accord.core.provenance.coverage.coverage_extent import NONE
from accord.core.provenance.coverage.coverage_rule import CommitContent
from accord.core.provenance.coverage.file_states import ChangedFile
from accord.core.provenance.decision_commit import (
    DecisionCommit,
    LogPosition,
    with_checked_approvals,
)
from accord.core.provenance.waiting_runs import CarriedRun
from accord.core.room.state import Room
from accord.core.views.commit_decision.carried_runs import is_contained, records_of_runs
from accord.core.views.commit_decision.commit_coverage import coverage_needs, covered_commit
from accord.core.views.commit_decision.decision_builder import (
    CommitRange,
    decision_id,
    ids_cited_by,
    records_before_range,
    records_in_range,
)
from accord.core.views.commit_decision.draft_decision import DecisionDraft, draft_decision
from accord.engine.ports import Codec, EventLog, Row
from accord.engine.streams import verified_reads
from accord.engine.streams.verified_reads import read_rows, verified
from accord.transports.bridge.actions import CommitCreatedRequest, ContentRequest

# A longer range is not read for a hook; regular commits keep ranges short.
MAX_RANGE_ROWS = 50_000
MAX_CITATION_DEPTH = 3
# Repositories that are searched for a commit, newest ids first; each costs a lookup in an index.
MAX_REPOS_SEARCHED = 500


RunFilter = Callable[[CarriedRun, Record], bool]


class CommitLink(NamedTuple):
    """A commit with its decision, and its position in the log."""

    version: int
    at: Instant
    decision: DecisionCommit
    masked: Mapping[str, str] = {}


MayRead = Callable[[CommitLink], Awaitable[bool]]


class FoundLink(NamedTuple):
    """A link, and the repository in which the commit was reported."""

    repo: str
    link: CommitLink


class CommitScope(NamedTuple):
    """What a commit belongs to: repository, session, and fork or trunk."""

    repo: Repo
    room: Room
    fork: str | None

    @property
    def uncommitted(self) -> CommitRange:
        """The range of records that no commit covers yet, and the runs that none contains."""
        since = self.repo.since(self.room.id, self.fork)
        carried = self.repo.carried(self.room.id, self.fork)
        links = self.repo.earlier_links(self.room.id, self.fork) if carried else 0
        return CommitRange(self.room, self.repo.id, self.fork, since, carried, links)


class LogSource(Protocol):
    """A log and its codec."""

    @property
    def events(self) -> EventLog: ...

    @property
    def codec(self) -> Codec: ...


class BridgeQueries:
    """Reads everything from the log, verifying each row's hash."""

    def __init__(self, engine: LogSource) -> None:
        self.source = engine

    async def draft_decision(
        self,
        commit_range: CommitRange,
        wanted: str = "",
        made_at: Instant = 0,
        contains: RunFilter | None = None,
    ) -> DecisionDraft | None:
        """The decision behind a range.

        With `wanted`, the one with that id if it is in the range; with `made_at`, the one that
        ended then. `contains` says which of the carried runs the commit contains, by default all.
        """
        rows, records = await self.read_range(commit_range, made_at)
        before = records_before_range(commit_range, records) if commit_range.carried else []
        carried = await self.carried_records(commit_range, before, contains)
        in_range = records_in_range(commit_range, records)
        start = next((record for record in reversed(before) if record.seq), None)
        if wanted and not (start and decision_id(commit_range, start) == wanted):
            in_range = records_of_decision(commit_range, in_range, wanted)
            start = start if in_range else None
        elif wanted:
            in_range = []
        used = [*carried, *in_range]
        last = next((record for record in reversed(in_range) if record.seq), start)
        if last is None or not used:
            return None
        cited = await self.cited_records(commit_range.room.id, used)
        result = draft_decision(commit_range, used, cited, last)
        return result and with_chain_position(result, rows[(in_range or [last])[-1].id])

    async def read_range(
        self, commit_range: CommitRange, made_at: Instant
    ) -> tuple[dict[str, Row], list[Record]]:
        """The records of a range, and of those before it with runs that are carried on."""
        rows: dict[str, Row] = {}
        records: list[Record] = []
        in_range = 0
        async for row in self.rows(f"room/{commit_range.room.id}", commit_range.reads_from):
            record = self.decode_row(row)
            if made_at and record.at > made_at:
                break
            rows[row.id] = row
            records.append(record)
            in_range += row.version > commit_range.since
            if in_range > MAX_RANGE_ROWS:
                detail = "Too many messages since the last commit to form one decision"
                raise Refused(Reason.TOO_LARGE, detail)
        return rows, records

    async def carried_records(
        self, commit_range: CommitRange, before: Sequence[Record], contains: RunFilter | None
    ) -> list[Record]:
        """The records before a range about those carried runs that the commit contains."""
        runs = commit_range.carried
        proposals = {record.id: record for record in before}
        missing = sorted({run.id for run in runs} - proposals.keys())
        if missing:
            proposals |= await self.find_records(commit_range.room.id, missing)
        contained = {
            run.id: proposals[run.id]
            for run in runs
            if run.id in proposals and (contains is None or contains(run, proposals[run.id]))
        }
        return records_of_runs(before, contained) if contained else []

    async def cited_records(self, session: str, in_range: Sequence[Record]) -> Mapping[str, Record]:
        """Earlier records that these cite."""
        ids = {record.id for record in in_range}
        result: dict[str, Record] = {}
        latest: Sequence[Record] = in_range
        for _ in range(MAX_CITATION_DEPTH):
            missing = ids_cited_by(latest) - ids - result.keys()
            if not missing:
                break
            loaded = await self.find_records(session, sorted(missing))
            latest = list(loaded.values())
            result |= loaded
        return result

    async def find_records(self, session: str, ids: Sequence[str]) -> dict[str, Record]:
        """Records of a session by id."""
        rows = await verified_reads.find(self.source.events, f"room/{session}", ids)
        return {row.id: self.decode_row(row) for row in rows}

    async def link_of_commit(self, repo: str, sha: str) -> CommitLink | None:
        rows = await verified_reads.find(self.source.events, f"repo/{repo}", [link_id(sha)])
        return next(filter(None, map(self.link_in_row, rows)), None)

    async def links_of_commit(self, repo: str, sha: str) -> list[FoundLink]:
        """The links of a commit; each clone of a repository has its own id.

        Only that of this repository if there is one. Otherwise oldest first: the hook of the clone
        in which a commit is made reports it before anyone else has it.
        """
        if (own := await self.link_of_commit(repo, sha)) is not None:
            return [FoundLink(repo, own)]
        streams = await self.source.events.streams("repo/")
        others = sorted((name.partition("/")[2] for name in streams), reverse=True)
        found = [
            FoundLink(other, link)
            for other in others[:MAX_REPOS_SEARCHED]
            if (link := await self.link_of_commit(other, sha)) is not None
        ]
        return sorted(found, key=lambda each: each.link.at)

    async def link_of_decision(self, repo: str, decision: str) -> CommitLink | None:
        """The link of a decision, also of a commit that was rewritten since."""
        async for row in self.rows(f"repo/{repo}", 0):
            link = self.link_in_row(row)
            if link is not None and link.decision.id == decision:
                return link
        return None

    async def links_after(
        self,
        repo: str,
        after: int,
        limit: int,
        session: str | None = None,
        may_read: MayRead | None = None,
    ) -> list[CommitLink]:
        """Links after a version that the caller may read, oldest first."""
        result: list[CommitLink] = []
        async for row in self.rows(f"repo/{repo}", after):
            link = self.link_in_row(row)
            if link is None or session not in (None, link.decision.pvp_session):
                continue
            if may_read is None or await may_read(link):
                result.append(link)
            if len(result) == limit:
                break
        return result

    def link_in_row(self, row: Row) -> CommitLink | None:
        """The link in a row, if it is one."""
        record = self.decode_row(row)
        if not isinstance(event := record.event, CommitLinked):
            return None
        decision = with_checked_approvals(event.decision)
        return CommitLink(row.version, record.at, decision, event.masked or {})

    def decode_row(self, row: Row) -> Record:
        return self.source.codec.decode_record(row.stream, row.version, row.body).record

    async def rows(self, stream: str, after: int) -> AsyncIterator[Row]:
        """All rows after this version; a record's `seq` is never above its version."""
        if after and not (await self.source.events.streams(stream)).get(stream, 0) > after:
            return
        async for row in read_rows(verified(self.source.events), stream, after):
            yield row


class FactsNeededError(Exception):
    """Coverage cannot be decided before the hook sends more."""

    def __init__(self, needs: Mapping[str, Any]) -> None:
        super().__init__(str(needs))
        self.needs = needs


def records_of_decision(
    commit_range: CommitRange, in_range: list[Record], decision: str
) -> list[Record]:
    """Records up to the end of the decision with that id; empty if it is not among them."""
    for index, record in enumerate(in_range):
        if record.seq and decision_id(commit_range, record) == decision:
            after = in_range[index + 1 :]
            trailing = next((n for n, later in enumerate(after) if later.seq), len(after))
            return in_range[: index + 1 + trailing]
    return []


def with_chain_position(result: DecisionDraft, last: Row) -> DecisionDraft:
    """The draft with its position on the hash chain."""
    position = LogPosition(stream=last.stream, version=last.version, hash=last.hash.hex())
    return result._replace(decision=replace(result.decision, position=position))


def commit_content(request: ContentRequest) -> CommitContent:
    """The content of the commit that the hook describes."""
    contents, converted = request.contents, frozenset(request.line_endings)
    files = tuple(
        ChangedFile(
            facts.path,
            facts.before,
            facts.after,
            facts.old_mode,
            facts.mode,
            content=contents.get(facts.path),
            converts=facts.path in converted,
            by_hand=facts.by_hand,
        )
        for facts in request.changes or ()
    )
    return CommitContent(files, request.tree, request.parents)


def contained_in(request: ContentRequest) -> RunFilter:
    """Which carried runs the commit of this request contains; of unknown content none."""
    if request.changes is None:
        return lambda _run, _proposal: False
    content = commit_content(request)
    return lambda run, proposal: is_contained(run, proposal, content, request.root)


def range_of(decision: DecisionCommit, room: Room, repo: str) -> CommitRange:
    """The range of a decision that was linked."""
    carried = tuple(
        CarriedRun(tool.id, tool.since)
        for tool in decision.tool_executions
        if tool.since is not None
    )
    links = decision.earlier_links
    return CommitRange(room, repo, decision.fork or None, decision.since, carried, links)


def missing_facts(draft: DecisionDraft, request: ContentRequest) -> Mapping[str, Any]:
    """What the hook must send before coverage can be decided; empty if it has sent it."""
    if request.final or not request.changes:
        return {}
    needs = coverage_needs(draft, request.root)
    changed = {facts.path for facts in request.changes}
    existing = {facts.path for facts in request.changes if facts.before}
    missing = {
        "contents": [path for path in needs.contents if path in existing],
        "line_endings": [path for path in needs.line_endings if path in changed],
    }
    return missing if any(missing.values()) else {}


def with_further_runs(before: DecisionCommit, again: DecisionCommit) -> DecisionCommit:
    """The decision as it was linked, with the runs that its rewritten commit contains as well.

    The rest stays as it was redacted then.
    """
    known = {tool.id for tool in before.tool_executions}
    more = tuple(tool for tool in again.tool_executions if tool.id not in known)
    ids = {tool.id for tool in more}
    return replace(
        before,
        decided_by=tuple(sorted({*before.decided_by, *again.decided_by})),
        tool_executions=(*before.tool_executions, *more),
        votes=(*before.votes, *(vote for vote in again.votes if vote.action in ids)),
    )


def without_coverage(decision: DecisionCommit) -> DecisionCommit:
    """The decision of a commit whose content is not known, so that nothing covers it."""
    return replace(decision, covers=NONE, coverage=(), context=(), approvals=(), changes=())


def with_coverage(draft: DecisionDraft, request: ContentRequest) -> DecisionCommit:
    """The decision with what approvals cover of the commit."""
    if request.changes is None:
        return without_coverage(draft.decision)
    return covered_commit(draft, commit_content(request), request.root)


def covered(draft: DecisionDraft, request: ContentRequest) -> DecisionCommit:
    """The decision with its coverage; raises FactsNeededError."""
    if needs := missing_facts(draft, request):
        raise FactsNeededError(needs)
    return with_coverage(draft, request)


def with_git_facts(decision: DecisionCommit, request: CommitCreatedRequest) -> DecisionCommit:
    """Add what only git knows; a hook cannot change the decision itself."""
    return replace(
        decision,
        git_sha=request.sha,
        parents=request.parents,
        patch_id=request.patch_id,
        branch=request.branch,
        files_changed=request.files,
        decision_type=decision_type_of(request) or decision.decision_type,
    )


def with_committer(decision: DecisionCommit, room: Room, name: str) -> DecisionCommit:
    """The decision with the committer among those who made it, as the member with that name."""
    if not name or has_control_characters(name):
        return decision
    people = {
        member.id: member.name
        for member in (*room.former.values(), *room.members.values())
        if member.kind is Kind.HUMAN
    }
    known = [id for id in people if id.casefold() == name.casefold()] or [
        id for id, shown in people.items() if shown.casefold() == name.casefold()
    ]
    person = str(participant_for(known[0] if len(known) == 1 else name, human=True))
    return replace(decision, decided_by=tuple(sorted({*decision.decided_by, person})))


def decision_type_of(request: CommitCreatedRequest) -> str:
    """The decision type from the commit message, else the default for its type (OPEN-62)."""
    trailers = {key.lower(): value.strip() for key, value in request.message_trailers}
    word = trailers.get("pvp-type") or trailers.get("pvp-decision-type") or ""
    known = trailer_values.to_record_type(word) if word in trailer_values.DECISION_TYPES else ""
    resolved = (
        trailer_values.to_record_type(trailer_values.MERGE_RESOLUTION) if request.merges else ""
    )
    return (
        known or resolved or trailer_values.default_decision_type(request.type, request.scope) or ""
    )


def link_summary(link: CommitLink) -> dict[str, Any]:
    record = link.decision
    return {
        "sha": record.git_sha,
        "decision": record.id,
        "session": record.pvp_session,
        "fork": record.fork or None,
        "at": to_iso(link.at),
        "since": record.since,
        "until": record.until,
    }
