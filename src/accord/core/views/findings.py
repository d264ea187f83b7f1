"""What has been found so far on the way from a conversation to a decision."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from accord.core.kernel.authority import Kind
from accord.core.kernel.log import Record
from accord.core.kernel.times import iso
from accord.core.provenance.decision import (
    Alternative,
    Approval,
    DecisionCommit,
    Merged,
    Metrics,
    Participant,
    ToolExecution,
    Verdict,
)
from accord.core.provenance.participants import participant
from accord.core.provenance.thread import ConversationThread, Utterance
from accord.core.room import waiting
from accord.core.room.gates import GateOpened
from accord.core.room.votes import Approved
from accord.core.views.stretch import Stretch, decision_id, here

MOST_MESSAGES = 500


class Findings:
    """Filled record by record, then read as a decision and as a conversation."""

    def __init__(self, stretch: Stretch, earlier: Mapping[str, Record]) -> None:
        self.stretch, self.room = stretch, stretch.room
        public = (one for one in earlier.values() if one.to is None and here(stretch, one))
        self.known = {record.id: record for record in public}
        self.chain: dict[str, None] = {}
        self.by: set[Participant] = set()
        self.tools: dict[str, ToolExecution] = {}
        self.seals: dict[str, Any] = {}
        self.votes: dict[tuple[str, str], Record] = {}
        self.approvals: list[Approval] = []
        self.others: list[Alternative] = []
        self.merges: dict[str, Merged] = {}
        self.rulings: dict[str, dict[str, Any]] = {}
        self.stood: dict[str, waiting.Standing | None] = {}
        self.verdicts: list[Verdict] = []
        self.said: dict[str, Utterance] = {}
        self.confidence: float | None = None
        self.cost: dict[str, int] = {}
        self.reported = False  # a tool that an earlier commit has came to its end

    def link(self, id: str, *, by: str | None = None) -> None:
        """This message is part of the chain; `by`: whose decision it was."""
        self.chain[id] = None
        if by is not None:
            self.by.add(self.called(by))

    @property
    def only_reports(self) -> bool:
        """An agent that has committed says so afterwards, which decides nothing for the next."""
        return self.reported and not (self.by or self.approvals)

    def say(self, record: Record, content: str) -> None:
        """One more line of the conversation."""
        kind = record.said.type if record.said else ""
        sender, _, at = self.by_and_at(record)
        self.said[record.id] = Utterance(record.id, kind, sender, content, at)

    def by_and_at(self, record: Record) -> tuple[Participant, str, str]:
        """Who said it, no words yet, and when."""
        return self.called(record.sender), "", iso(record.at)

    def called(self, seat: str) -> Participant:
        """`human:`, `ai:` for an agent that declares a model, `agent:` for the rest (OPEN-64)."""
        member = self.room.members.get(seat) or self.room.former.get(seat)
        human = member is not None and member.kind is Kind.HUMAN
        told = member.metadata if member else {}
        model = bool(told.get("model") or told.get("provider"))
        return str(participant(seat, human=human, model=model))

    def action(self, gate: str) -> str:
        """What a gate was about."""
        opened = self.known.get(gate)
        event = opened.event if opened else None
        return event.said.action_ref if isinstance(event, GateOpened) else ""

    def approve(self, gate: str, seat: str) -> None:
        """A person's yes; when and in which words only if it was said in this stretch."""
        vote = self.votes.get((gate, seat))
        event = vote.event if vote else None
        if vote is None or not isinstance(event, Approved):
            given = Approval(gate=gate, by=self.called(seat), action=self.action(gate))
        else:
            self.link(vote.id)
            given = Approval(
                gate=gate,
                by=self.called(seat),
                action=self.action(gate),
                at=iso(vote.at),
                comment=getattr(event.said, "comment", None) or "",
                self_approved=event.self_approved,
            )
        self.approvals.append(given)

    def ask(self, gate: str) -> None:
        """What those were told who voted at a gate."""
        opened = self.known.get(gate)
        event = opened.event if opened else None
        said = event.said.decision if isinstance(event, GateOpened) else None
        self.stood[self.action(gate)] = said

    def weigh(self, proposal: str, arguments: Mapping[str, Any]) -> None:
        """A step that a decision allowed: what the kernel said of it when it did."""
        link = waiting.linked(arguments)
        if link is None:
            return
        key = f"{waiting.PREFIX}{link.batch}{waiting.SNAPSHOT}"
        stood = self.stood.get(proposal)
        if key not in self.rulings and stood is not None:
            self.judge(link, stood.verdict, stood.confidence, stood.sha256)
            return
        said = self.rulings.get(key) or waiting.told(self.room, self.stretch.fork, key) or {}
        found = said.get("items", {}).get(link.item, {})
        told = (found.get("verdict", ""), found.get("confidence", ""), said.get("sha256", ""))
        self.judge(link, *told)

    def judge(self, link: waiting.Bound, verdict: str, confidence: str, ruling: str) -> None:
        """One more verdict."""
        self.verdicts.append(
            Verdict(
                batch=link.batch,
                item=link.item,
                step=link.step,
                verdict=verdict,
                confidence=confidence,
                snapshot=ruling,
            )
        )

    def be_sure(self, metadata: Mapping[str, Any] | None) -> None:
        """The agent's own number, the last it gave; never one of ours (OPEN-60)."""
        match (metadata or {}).get("confidence"):
            case bool():
                pass
            case int() | float() as number if 0 <= number <= 1:
                self.confidence = float(number)
            case _:
                pass

    def vouch(self, tool: str, value: Any) -> None:
        """Seal what a tool gave without telling it."""
        plain = msgspec.json.encode(value, order="deterministic")
        self.seals.setdefault(tool, sha256()).update(b"%d\n%b" % (len(plain), plain))

    def decision(self, last: Record) -> DecisionCommit:
        """All of it, as a draft."""
        return DecisionCommit(
            id=decision_id(self.stretch, last),
            pvp_session=self.room.id,
            pvp_messages=tuple(self.chain)[-MOST_MESSAGES:],
            confidence_score=self.confidence,
            alternatives_considered=tuple(self._lost()),
            tool_executions=tuple(map(self._sealed, self.tools.values())),
            approvals=tuple(self.approvals),
            verdicts=tuple(self.verdicts),
            merges=tuple(self.merges.values()),
            session_name=self.room.name,
            fork=self.stretch.fork or "",
            decided_by=tuple(sorted(self.by)),
            decided_at=iso(last.at),
            since=self.stretch.since,
            until=last.seq,
            metrics=Metrics(**self.cost) if self.cost else None,
        )

    def _lost(self) -> Iterator[Alternative]:
        """What was not done; a fork that comes back, or a merge that did after all, is not lost."""
        back = {each.fork for each in self.merges.values()}
        yield from (each for each in self.others if each.kind != "fork" or each.id not in back)

    def _sealed(self, tool: ToolExecution) -> ToolExecution:
        seal = self.seals.get(tool.id)
        if seal is None:
            return tool
        return msgspec.structs.replace(tool, output_hash=f"sha256:{seal.hexdigest()}")

    def thread(self) -> ConversationThread:
        """The conversation, in its order."""
        name = f"{self.room.id}/{self.stretch.fork}" if self.stretch.fork else self.room.id
        return ConversationThread(name, tuple(self.said.values()))
