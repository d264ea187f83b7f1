"""What the log's bytes tell of decisions: what they allowed when somebody was asked or began."""

from dataclasses import dataclass, field
from typing import Any

PREFIX = "decision:"
Place = tuple[str | None, str]
READS = {
    "fork.created": "_forked",
    "context.added": "_shelved",
    "context.updated": "_shelved",
    "context.removed": "_removed",
    "decision.ruled": "_ruled",
    "tool.proposed": "_proposed",
    "gate.opened": "_asked",
    "tool.cleared": "_cleared",
    "tool.started": "_started",
    "tool.finished": "_finished",
}


@dataclass
class Rulings:
    """Every ruling in force, read without the code that made it."""

    people: frozenset[str]
    items: dict[Place, dict[str, Any]] = field(default_factory=dict)
    divided: dict[Place, set[str]] = field(default_factory=dict)
    authors: dict[Place, str] = field(default_factory=dict)
    guarded: dict[Place, bool] = field(default_factory=dict)
    bound: dict[str, tuple[str | None, dict[str, str]]] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    copied: set[str] = field(default_factory=set)
    cause: tuple[str, str, Any] = ("", "", None)
    counts: dict[str, int] = field(default_factory=dict)

    def read(self, kind: str, id: str, actor: str, said: dict[str, Any]) -> None:
        """The next record."""
        payload, fork = said.get("payload", {}), said.get("fork")
        if kind in READS:
            getattr(self, READS[kind])(id, actor, payload, fork, said)

    def _forked(self, id: str, actor: str, payload: Any, fork: str, said: Any) -> None:
        self.copied.add(fork)

    def _shelved(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        name = payload["key"].removeprefix(PREFIX)
        if name != payload["key"]:
            content = payload.get("content") or payload.get("new_content")
            self.cause = ("said", actor, content)
            if "content" in payload and ":" not in name:
                self.authors.setdefault((fork, name), actor)

    def _removed(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        batch, _, part = payload["key"].removeprefix(PREFIX).partition("#")
        gone = {"snapshot": self.items, "convergence": self.divided}.get(part, self.authors)
        gone.pop((fork, batch), None)  # type: ignore[attr-defined]

    def _proposed(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        link = payload["arguments"].get("decision")
        if link is not None:
            assert set(link) == {"batch", "item", "step"}, "half a binding"
            self.bound[id] = (fork, link)

    def _asked(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        action = payload["action_ref"]
        assert ("decision" in payload) == (action in self.bound), "a remark that is not the rules'"
        if action in self.bound:
            self._check(action)
            self._count("asked")

    def _cleared(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        if payload["tool_proposal"] in self.bound:
            assert payload["approved_by"], "the kernel approved"
            assert self.people.issuperset(payload["approved_by"]), "no person approved"
            self._count("cleared")

    def _started(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        if payload["tool_proposal"] in self.bound:
            self._check(payload["tool_proposal"])

    def _finished(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        self.cause = ("ran", actor, payload)
        if payload["success"] and payload["tool_proposal"] in self.bound:
            self.runs.add(payload["tool_proposal"])
            self._count("ran")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _ruled(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        assert said["sender"] == "system", "somebody else ruled"
        content = payload["content"]
        batch, _, part = payload["key"].removeprefix(PREFIX).partition("#")
        place = (fork, batch)
        if part == "convergence":
            self.divided[place] = {row["item"] for row in content["items"] if row["holds"]}
            return
        before = self.items.get(place)
        self.items[place] = content["items"]
        guarded = self.guarded.get(place, False)
        self.guarded[place] = bool(content["guards"])
        self._count("ruled")
        if before is not None:
            self._believe(place, before, content["items"], guarded=guarded)

    def _believe(
        self, place: Place, before: dict[str, Any], now: dict[str, Any], *, guarded: bool
    ) -> None:
        """An agent's words alone close nothing that others rely on, and free nothing."""
        kind, actor, said = self.cause
        relied = guarded or self.authors.get(place, actor) != actor
        if kind == "ran" or actor in self.people or not relied or ":" in place[1]:
            return
        cited = said.get("evidence", ()) if isinstance(said, dict) else ()
        if cited:
            assert self.runs.issuperset(cited), "cited what did not run"
            self._count("cited")
            return
        for item, found in now.items():
            was = before.get(item, {})
            assert found["allowed"] in ("", was.get("allowed")), "an agent's word freed a step"
            assert (found["state"] == "CLOSED") <= (was.get("state") == "CLOSED"), "closed by word"

    def _check(self, tool: str) -> None:
        """What is asked about or begun, the rules allow now."""
        fork, link = self.bound[tool]
        place = (fork, link["batch"])
        if fork is not None and place not in self.items:
            assert fork in self.copied, "no ruling at all"
            return  # it came with the fork
        assert self.items[place][link["item"]]["allowed"] == link["step"], "not allowed"
        assert link["item"] not in self.divided.get(place, ()), "judged too differently"
