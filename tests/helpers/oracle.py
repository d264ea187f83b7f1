"""A room's log as its bytes tell it: who may read what, and who was stopped."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from accord.engine.ports import Row

ANNOUNCED = {"fork.created", "merge.proposed", "merge.executed"}
HALTING = {"stop", "emergency"}


class Heard(NamedTuple):
    """A record that has a form on the wire."""

    seq: int
    id: str
    version: int
    to: frozenset[str] | None
    fork: str | None


@dataclass
class Branch:
    """A fork and who may read it."""

    readers: set[str]
    merged: bool = False
    into: str | None = None


@dataclass
class Oracle:
    """The log as its bytes tell it, read without the code that wrote it."""

    version: int = 0
    members: set[str] = field(default_factory=set)
    lately: set[str] = field(default_factory=set)  # members at any time in the last step
    forks: dict[str, Branch] = field(default_factory=dict)
    merges: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    halted: set[str] = field(default_factory=set)
    tools: dict[str, str] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def read(self, row: Row) -> None:
        """The next row."""
        stored = json.loads(row.body)
        said, fact, kind = stored.get("said") or {}, stored.get("fact") or {}, stored["kind"]
        self.version = row.version
        actor = stored.get("actor") or said.get("sender", "")
        self._fold(kind, row.id, actor, said, fact)
        self.lately |= self.members
        if said:
            to = frozenset(stored["to"]) if "to" in stored else None
            fork = None if kind in ANNOUNCED else said.get("fork")
            self.heard.append(Heard(said["seq"], said["id"], row.version, to, fork))
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
                self.forks[said["fork"]] = Branch(set(fact["members"]))
            case "fork.switched" if fact["target"]:
                self.forks[fact["target"]].readers.add(fact["seat"])
            case "merge.proposed":
                self.merges[id] = (payload["source_fork"], fact["target"])
            case "merge.executed":
                self._merge(*self.merges[payload["merge_proposal"]])
            case "interrupt.raised" if payload["urgency"] in HALTING:
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
        """Who may read what is said there, as of now."""
        if fork is None:
            return self.lately
        branch = self.forks[fork]
        return branch.readers | (self.readers(branch.into) if branch.merged else set())

    def visible(self, heard: Heard, seat: str) -> bool:
        """Whether this is for that seat."""
        return (heard.to is None or seat in heard.to) and seat in self.readers(heard.fork)

    def story(self, seat: str, after: int = 0) -> list[int]:
        """The numbers of all that a seat may see behind a version."""
        return [h.seq for h in self.heard if h.version > after and self.visible(h, seat)]
