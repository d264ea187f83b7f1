"""Derives from the stored bytes who may read what, and which agents were stopped."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from accord.engine.ports import Row

ROOM_WIDE_KINDS = {"fork.created", "merge.proposed", "merge.executed"}
HALTING_URGENCIES = {"stop", "emergency"}


class WireRecord(NamedTuple):
    """A record with a wire form."""

    seq: int
    id: str
    version: int
    to: frozenset[str] | None
    fork: str | None


@dataclass
class ForkReaders:
    """A fork and the members who may read it."""

    readers: set[str]
    merged: bool = False
    into: str | None = None


@dataclass
class VisibilityAudit:
    """Follows a room's log independently of the code that wrote it."""

    version: int = 0
    members: set[str] = field(default_factory=set)
    recent_members: set[str] = field(default_factory=set)  # members at any time in the last step
    forks: dict[str, ForkReaders] = field(default_factory=dict)
    merges: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    halted: set[str] = field(default_factory=set)
    tools: dict[str, str] = field(default_factory=dict)
    wire_records: list[WireRecord] = field(default_factory=list)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def read(self, row: Row) -> None:
        """Process the next row."""
        stored = json.loads(row.body)
        said, fact, kind = stored.get("said") or {}, stored.get("fact") or {}, stored["kind"]
        self.version = row.version
        actor = stored.get("actor") or said.get("sender", "")
        self._fold(kind, row.id, actor, said, fact)
        self.recent_members |= self.members
        if said:
            to = frozenset(stored["to"]) if "to" in stored else None
            fork = None if kind in ROOM_WIDE_KINDS else said.get("fork")
            self.wire_records.append(WireRecord(said["seq"], said["id"], row.version, to, fork))
            self.ids.setdefault(said["type"], []).append(said["id"])

    def _fold(self, kind: str, id: str, actor: str, said: Any, fact: Any) -> None:
        payload = said.get("payload", {})
        match kind:
            case "session.created":
                self.members.add(fact["creator"])
            case "member.joined":
                self.members.add(payload["participant"]["id"])
            case "member.left":
                self.members.discard(fact["seat"])
            case "fork.created":
                self.forks[said["fork"]] = ForkReaders(set(fact["members"]))
            case "fork.switched" if fact["target"]:
                self.forks[fact["target"]].readers.add(fact["seat"])
            case "merge.proposed":
                self.merges[id] = (payload["source_fork"], fact["target"])
            case "merge.executed":
                self._merge(*self.merges[payload["merge_proposal"]])
            case "interrupt.raised" if payload["urgency"] in HALTING_URGENCIES:
                self.halted |= set(fact["targets"])
            case "prompt.submitted" | "prompt.amended" if actor not in self.halted:
                self.halted.discard(payload.get("target_agent") or fact["agent"])
            case "tool.proposed":
                assert actor not in self.halted, "a stopped agent proposed"
                self.tools[id] = actor
            case "tool.cleared":
                agent = self.tools[payload["tool_proposal"]]
                assert agent not in self.halted, "a stopped agent was cleared"
            case _:
                pass

    def _merge(self, source: str, target: str | None) -> None:
        branch = self.forks[source]
        branch.merged, branch.into = True, target
        branch.readers |= self.members & self.readers(target)

    def readers(self, fork: str | None) -> set[str]:
        """The members who may read a fork now."""
        if fork is None:
            return self.recent_members
        branch = self.forks[fork]
        return branch.readers | (self.readers(branch.into) if branch.merged else set())

    def can_see(self, heard: WireRecord, seat: str) -> bool:
        """Whether the record is visible to the member."""
        return (heard.to is None or seat in heard.to) and seat in self.readers(heard.fork)

    def visible_seqs(self, seat: str, after: int = 0) -> list[int]:
        """The seqs of all records after a version that the member may see."""
        return [h.seq for h in self.wire_records if h.version > after and self.can_see(h, seat)]
