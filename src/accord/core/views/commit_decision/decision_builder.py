"""Collects what a conversation decided, record by record."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import derive_ulid
from accord.core.provenance.commit_message.trailer_values import participant_for
from accord.core.provenance.coverage.recorded_run import RecordedRun
from accord.core.provenance.decision_commit import (
    Alternative,
    Approval,
    ConversationThread,
    DecisionCommit,
    ForkMerge,
    Metrics,
    Participant,
    StepVerdict,
    ToolExecution,
    Utterance,
)
from accord.core.provenance.waiting_runs import CarriedRun
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolProposed
from accord.core.room.approval.votes import GateApproved, GatePassed, GateRejected
from accord.core.room.decisions import decision_binding
from accord.core.room.forking.merges import MergeExecuted
from accord.core.room.state import Room

DECISION_ID_PREFIX = "dec_"


class CommitRange(NamedTuple):
    """The records of a room, in one fork or the trunk, whose `seq` is greater than `since`.

    `carried` are the runs of earlier ranges that the commit may contain, as well; `earlier_links`
    tells apart the decisions of commits that have nothing else.
    """

    room: Room
    repo: str
    fork: str | None = None
    since: int = 0
    carried: tuple[CarriedRun, ...] = ()
    earlier_links: int = 0

    @property
    def reads_from(self) -> int:
        """The `seq` after which records are needed."""
        return min((self.since, *(run.since for run in self.carried)))


def records_in_range(commit_range: CommitRange, records: Iterable[Record]) -> list[Record]:
    """The records that everyone in the fork or trunk received, after the last link.

    Records without a `seq` belong to the record before them.
    """
    selected: list[Record] = []
    seq = 0
    for record in records:
        seq = record.seq or seq
        if seq > commit_range.since and record.to is None and is_in_scope(commit_range, record):
            selected.append(record)
    return selected


def records_before_range(commit_range: CommitRange, records: Iterable[Record]) -> list[Record]:
    """The records up to the last link that everyone in the fork or trunk received."""
    selected: list[Record] = []
    seq = 0
    for record in records:
        seq = record.seq or seq
        if seq <= commit_range.since and record.to is None and is_in_scope(commit_range, record):
            selected.append(record)
    return selected


def is_in_scope(commit_range: CommitRange, record: Record) -> bool:
    """Whether the record belongs to the fork or trunk of the range."""
    announced = record.event.room_wide and commit_range.fork is None
    return record.fork == commit_range.fork or announced


def ids_cited_by(records: Iterable[Record]) -> frozenset[str]:
    """Ids of other records that are needed to interpret these."""
    return frozenset(name for record in records for name in _cites(record.event, record.ref))


def _cites(event: Event, ref: str | None) -> Iterator[str]:
    match event:
        case ToolCleared():
            yield event.said.tool_proposal
        case MergeExecuted():
            yield event.said.merge_proposal
        case GatePassed() | GateRejected():
            yield event.gate
        case GateOpened():
            yield event.said.action_ref
        case ToolProposed() if ref is not None:
            yield ref
        case _:
            pass


def decision_id(commit_range: CommitRange, last: Record) -> str:
    """Deterministic: asking twice for the same range gives the same decision."""
    cause = (
        commit_range.repo,
        commit_range.room.id,
        commit_range.fork or "",
        str(commit_range.since),
        *([f"links {commit_range.earlier_links}"] if commit_range.earlier_links else []),
    )
    return DECISION_ID_PREFIX + derive_ulid(last.at, "decision", *cause, last.id)


MAX_CHAIN_MESSAGES = 500
MAX_REPORTED_FILES = 500
SUCCESS, FAILURE, UNFINISHED = "success", "failure", "unfinished"
# The grant ended without a result, a member took it back, or it ran although it was taken back.
NOT_REPORTED, TAKEN_BACK, RAN_LATE = "not_reported", "taken_back", "ran_after_taken_back"
# Longer texts of a call are cut in the record, to less after so many characters; the log has all.
MAX_CALL_TEXT, MAX_LATER_CALL_TEXT, MAX_CALL_TEXTS = 4096, 256, 128 << 10


class ToolRun(NamedTuple):
    """A call that ran, exactly as approved: never written to a record without redaction.

    `outcome` is `success`, `failure`, `unfinished` (as of a commit call at its own commit), or says
    how the grant ended. Only success and, for a commit call, `unfinished` can cover content.
    """

    proposal: str
    tool_name: str
    arguments: Mapping[str, Any]
    approvers: tuple[Participant, ...] = ()
    outcome: str = UNFINISHED
    decided_by: tuple[Participant, ...] = ()  # the agent, and who prompted it
    assistant: str = ""  # `agent:model`
    max_text: int = MAX_CALL_TEXT  # longer texts of it are cut in the record
    recorded: RecordedRun | None = None  # what our executor says it did to its work tree

    @property
    def succeeded(self) -> bool:
        return self.outcome == SUCCESS

    @property
    def ended(self) -> bool:
        return self.outcome != UNFINISHED


class DecisionBuilder:
    """Filled by the event handlers of `draft_decision`, then built into a decision and a thread."""

    def __init__(self, commit_range: CommitRange, earlier: Mapping[str, Record]) -> None:
        self.commit_range, self.room = commit_range, commit_range.room
        self.carried_since = {run.id: run.since for run in commit_range.carried}
        self.records_by_id = {
            record.id: record
            for record in earlier.values()
            if record.to is None and is_in_scope(commit_range, record)
        }
        self.message_ids: dict[str, None] = {}
        self.decided_by: set[Participant] = set()
        self.names: dict[Participant, str] = {}
        self.asked = False  # whether anything was asked or done in this range
        self.amendments: dict[str, list[str]] = {}  # who amended each prompt
        self.runs: dict[str, ToolRun] = {}
        self.recorded_text = 0
        self.tools: dict[str, ToolExecution] = {}
        self.output_hashes: dict[str, Any] = {}
        self.votes: dict[tuple[str, str], Record] = {}
        self.approvals: list[Approval] = []
        self.alternatives: list[Alternative] = []
        self.merges: dict[str, ForkMerge] = {}
        # By the merge that was proposed instead, then by fork.
        self.reasons_against: dict[str, dict[str, str]] = {}
        self.rulings: dict[str, dict[str, Any]] = {}
        self.gate_rulings: dict[str, decision_binding.DecisionStanding | None] = {}
        self.verdicts: list[StepVerdict] = []
        self.utterances: dict[str, Utterance] = {}
        self.confidence: float | None = None
        self.metrics: dict[str, int] = {}
        self.has_late_report = False  # a tool that belongs to an earlier commit finished

    def add_message(self, id: str, *, by: str | None = None) -> None:
        """Add a message to the chain; `by` is the member whose decision it was, if any."""
        self.message_ids[id] = None
        if by is not None:
            self.asked = True
            self.decided_by.add(self.participant_of(by))

    @property
    def only_reports(self) -> bool:
        """Whether there are only results of an earlier commit's tools, which decide nothing new."""
        return self.has_late_report and not (self.asked or self.approvals)

    def add_run(
        self, run: ToolRun, agent: str, deciders: Iterable[str], declared: object = None
    ) -> None:
        """Add a call that may run, the agent that runs it, and who decided that it should.

        `declared` is the model that proposed it, which may be another one than when it joined.
        """
        self.asked = True
        model = declared or self.metadata_of(agent).get("model")
        assistant = f"{agent}:{model}" if isinstance(model, str) and model else agent
        decided_by = tuple(dict.fromkeys(map(self.participant_of, deciders)))
        self.runs[run.proposal] = run._replace(decided_by=decided_by, assistant=assistant)

    def arguments_for_record(self, proposal: str) -> dict[str, Any]:
        """The arguments of a call, cut so that all calls of a decision fit into a record."""
        is_full = self.recorded_text > MAX_CALL_TEXTS
        run = self.runs[proposal]
        run = run._replace(max_text=MAX_LATER_CALL_TEXT if is_full else MAX_CALL_TEXT)
        self.runs[proposal] = run
        cut: dict[str, Any] = shortened_call(dict(run.arguments), run.max_text)
        self.recorded_text += len(msgspec.json.encode(cut))
        return cut

    def finish_run(self, proposal: str, outcome: str, recorded: RecordedRun | None = None) -> None:
        """Note how it ended; the order of runs is that in which they ended."""
        run = self.runs.pop(proposal)
        self.runs[proposal] = run._replace(outcome=outcome, recorded=recorded)

    def end_grant(self, proposal: str, outcome: str) -> None:
        """Note that a call may no longer run, if it belongs to this range."""
        if proposal in self.tools:
            self.finish_run(proposal, outcome)
            self.tools[proposal] = msgspec.structs.replace(self.tools[proposal], outcome=outcome)

    def take_back_grant(self, proposal: str, outcome: str) -> None:
        """Note that a grant was taken back: those who approved the call no longer do."""
        if proposal in self.tools:
            self.end_grant(proposal, outcome)
            self.runs[proposal] = self.runs[proposal]._replace(approvers=())
            self.tools[proposal] = msgspec.structs.replace(self.tools[proposal], approved_by=())

    def add_utterance(self, record: Record, content: str) -> None:
        kind = record.said.type if record.said else ""
        sender, _, at = self.sender_and_time(record)
        self.utterances[record.id] = Utterance(record.id, kind, sender, content, at)

    def sender_and_time(self, record: Record) -> tuple[Participant, str, str]:
        """Sender, empty content and time, as the fields of an Utterance."""
        return self.participant_of(record.sender), "", to_iso(record.at)

    def participant_of(self, seat: str) -> Participant:
        """`human:`, `ai:` for an agent that declares a model, `agent:` for the rest (OPEN-64)."""
        member = self.room.members.get(seat) or self.room.former.get(seat)
        human = member is not None and member.kind is Kind.HUMAN
        metadata = self.metadata_of(seat)
        model = bool(metadata.get("model") or metadata.get("provider"))
        participant = str(participant_for(seat, human=human, model=model))
        if member is not None and member.name not in ("", seat):
            self.names[participant] = member.name
        return participant

    def metadata_of(self, seat: str) -> Mapping[str, Any]:
        """What a member declared when joining."""
        member = self.room.members.get(seat) or self.room.former.get(seat)
        return member.metadata if member else {}

    def action_of(self, gate: str) -> str:
        """The id of the proposal that a gate was about; empty if unknown."""
        opened = self.records_by_id.get(gate)
        event = opened.event if opened else None
        return event.said.action_ref if isinstance(event, GateOpened) else ""

    def add_approval(self, gate: str, seat: str) -> None:
        """Add an approval; time and comment only if the vote is in this range."""
        vote = self.votes.get((gate, seat))
        event = vote.event if vote else None
        if vote is None or not isinstance(event, GateApproved):
            approval = Approval(
                gate=gate, by=self.participant_of(seat), action=self.action_of(gate)
            )
        else:
            self.add_message(vote.id)
            approval = Approval(
                gate=gate,
                by=self.participant_of(seat),
                action=self.action_of(gate),
                at=to_iso(vote.at),
                comment=getattr(event.said, "comment", None) or "",
                self_approved=event.self_approved,
            )
        self.approvals.append(approval)

    def add_gate_ruling(self, gate: str) -> None:
        """Remember the ruling that the voters of a gate were shown."""
        opened = self.records_by_id.get(gate)
        event = opened.event if opened else None
        shown = event.said.decision if isinstance(event, GateOpened) else None
        self.gate_rulings[self.action_of(gate)] = shown

    def add_verdict_for(self, proposal: str, arguments: Mapping[str, Any]) -> None:
        """Add the kernel's verdict on a step, as it was when the step was allowed."""
        link = decision_binding.parse_decision_link(arguments)
        if link is None:
            return
        key = f"{decision_binding.DECISION_PREFIX}{link.batch}{decision_binding.SNAPSHOT_SUFFIX}"
        shown = self.gate_rulings.get(proposal)
        if key not in self.rulings and shown is not None:
            self.add_verdict(link, shown.verdict, shown.confidence, shown.sha256)
            return
        ruling = (
            self.rulings.get(key)
            or decision_binding.server_item_content(self.room, self.commit_range.fork, key)
            or {}
        )
        item = ruling.get("items", {}).get(link.item, {})
        self.add_verdict(
            link, item.get("verdict", ""), item.get("confidence", ""), ruling.get("sha256", "")
        )

    def add_verdict(
        self, link: decision_binding.DecisionLink, verdict: str, confidence: str, ruling: str
    ) -> None:
        self.verdicts.append(
            StepVerdict(
                batch=link.batch,
                item=link.item,
                step=link.step,
                verdict=verdict,
                confidence=confidence,
                snapshot=ruling,
            )
        )

    def set_confidence(self, metadata: Mapping[str, Any] | None) -> None:
        """Keep the last number that the agent stated; Accord never computes one (OPEN-60)."""
        match (metadata or {}).get("confidence"):
            case bool():
                pass
            case int() | float() as number if 0 <= number <= 1:
                self.confidence = float(number)
            case _:
                pass

    def hash_output(self, tool: str, value: Any) -> None:
        """Add output of a tool to its hash; the output itself is not part of a decision."""
        encoded = msgspec.json.encode(value, order="deterministic")
        self.output_hashes.setdefault(tool, sha256()).update(b"%d\n%b" % (len(encoded), encoded))

    def build_decision(self, last: Record) -> DecisionCommit:
        return DecisionCommit(
            id=decision_id(self.commit_range, last),
            pvp_session=self.room.id,
            pvp_messages=tuple(self.message_ids)[-MAX_CHAIN_MESSAGES:],
            confidence_score=self.confidence,
            alternatives_considered=tuple(self._rejected_alternatives()),
            tool_executions=tuple(map(self._with_output_hash, self.tools.values())),
            votes=tuple(self.approvals),
            assisted_by=tuple(sorted({run.assistant for run in self.runs.values()})),
            verdicts=tuple(self.verdicts),
            merges=tuple(self.merges.values()),
            session_name=self.room.name,
            fork=self.commit_range.fork or "",
            decided_by=tuple(sorted(self.decided_by.union(*self._deciders_of_runs()))),
            decided_at=to_iso(last.at),
            names=dict(sorted(self.names.items())),
            since=self.commit_range.since,
            until=last.seq,
            earlier_links=self.commit_range.earlier_links,
            metrics=Metrics(**self.metrics) if self.metrics else None,
        )

    def _deciders_of_runs(self) -> list[tuple[Participant, ...]]:
        return [run.decided_by for run in self.runs.values()]

    def _rejected_alternatives(self) -> Iterator[Alternative]:
        """Alternatives that were not done; a fork that was merged after all is not one."""
        merged = {merge.fork for merge in self.merges.values()}
        reasons: dict[str, str] = {}
        for merge in self.merges.values():
            reasons |= self.reasons_against[merge.id]
        for alternative in self.alternatives:
            if alternative.kind != "fork":
                yield alternative
            elif alternative.id not in merged:
                reason = reasons.get(alternative.id, alternative.reason)
                yield msgspec.structs.replace(alternative, reason=reason)

    def _with_output_hash(self, tool: ToolExecution) -> ToolExecution:
        digest = self.output_hashes.get(tool.id)
        if digest is None:
            return tool
        return msgspec.structs.replace(tool, output_hash=f"sha256:{digest.hexdigest()}")

    def build_thread(self) -> ConversationThread:
        name = (
            f"{self.room.id}/{self.commit_range.fork}" if self.commit_range.fork else self.room.id
        )
        return ConversationThread(name, tuple(self.utterances.values()))


def shortened_call(value: Any, max_text: int = MAX_CALL_TEXT) -> Any:
    """The arguments of a call with long texts cut."""
    match value:
        case str():
            return value if len(value) <= max_text else f"{value[: max_text - 1]}…"
        case dict():
            return {str(key): shortened_call(entry, max_text) for key, entry in value.items()}
        case list():
            return [shortened_call(entry, max_text) for entry in value]
        case _:
            return value


def reported_files(result: Any, metadata: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The files that an agent says it changed: `files` of a result or of its metadata."""
    named = [fields.get("files") for fields in (result, metadata) if isinstance(fields, dict)]
    files = [file for files in named if isinstance(files, list) for file in files]
    return tuple(file for file in files if isinstance(file, str) and file)[:MAX_REPORTED_FILES]
