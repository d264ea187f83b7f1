"""Checks from the stored bytes that rulings allowed every step that was proposed or started."""

from dataclasses import dataclass, field
from typing import Any

DECISION_KEY_PREFIX = "decision:"
ForkAndBatch = tuple[str | None, str]
HANDLERS = {
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
class DecisionAudit:
    """Follows every ruling in force, independently of the code that made it."""

    people: frozenset[str]
    items: dict[ForkAndBatch, dict[str, Any]] = field(default_factory=dict)
    contested_items: dict[ForkAndBatch, set[str]] = field(default_factory=dict)
    authors: dict[ForkAndBatch, str] = field(default_factory=dict)
    guarded: dict[ForkAndBatch, bool] = field(default_factory=dict)
    bound_proposals: dict[str, tuple[str | None, dict[str, str]]] = field(default_factory=dict)
    successful_runs: set[str] = field(default_factory=set)
    copied_forks: set[str] = field(default_factory=set)
    cause: tuple[str, str, Any] = ("", "", None)
    counts: dict[str, int] = field(default_factory=dict)

    def read(self, kind: str, id: str, actor: str, said: dict[str, Any]) -> None:
        """Check the next record."""
        payload, fork = said.get("payload", {}), said.get("fork")
        if kind in HANDLERS:
            getattr(self, HANDLERS[kind])(id, actor, payload, fork, said)

    def _forked(self, id: str, actor: str, payload: Any, fork: str, said: Any) -> None:
        self.copied_forks.add(fork)

    def _shelved(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        name = payload["key"].removeprefix(DECISION_KEY_PREFIX)
        if name != payload["key"]:
            content = payload.get("content") or payload.get("new_content")
            self.cause = ("said", actor, content)
            if "content" in payload and ":" not in name:
                self.authors.setdefault((fork, name), actor)

    def _removed(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        batch, _, part = payload["key"].removeprefix(DECISION_KEY_PREFIX).partition("#")
        gone = {"snapshot": self.items, "convergence": self.contested_items}.get(part, self.authors)
        gone.pop((fork, batch), None)  # type: ignore[attr-defined]

    def _proposed(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        link = payload["arguments"].get("decision")
        if link is not None:
            assert set(link) == {"batch", "item", "step"}, "half a binding"
            self.bound_proposals[id] = (fork, link)

    def _asked(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        action = payload["action_ref"]
        assert ("decision" in payload) == (action in self.bound_proposals), (
            "a remark that is not the rules'"
        )
        if action in self.bound_proposals:
            self._check(action)
            self._count("asked")

    def _cleared(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        if payload["tool_proposal"] in self.bound_proposals:
            assert payload["approved_by"], "the kernel approved"
            assert self.people.issuperset(payload["approved_by"]), "no person approved"
            self._count("cleared")

    def _started(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        if payload["tool_proposal"] in self.bound_proposals:
            self._check(payload["tool_proposal"])

    def _finished(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        self.cause = ("ran", actor, payload)
        if payload["success"] and payload["tool_proposal"] in self.bound_proposals:
            self.successful_runs.add(payload["tool_proposal"])
            self._count("ran")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _ruled(self, id: str, actor: str, payload: Any, fork: str | None, said: Any) -> None:
        assert said["sender"] == "system", "somebody else ruled"
        content = payload["content"]
        batch, _, part = payload["key"].removeprefix(DECISION_KEY_PREFIX).partition("#")
        place = (fork, batch)
        if part == "convergence":
            self.contested_items[place] = {row["item"] for row in content["items"] if row["holds"]}
            return
        before = self.items.get(place)
        self.items[place] = content["items"]
        guarded = self.guarded.get(place, False)
        self.guarded[place] = bool(content["guards"])
        self._count("ruled")
        if before is not None:
            self._check_agent_claim(place, before, content["items"], guarded=guarded)

    def _check_agent_claim(
        self, place: ForkAndBatch, before: dict[str, Any], now: dict[str, Any], *, guarded: bool
    ) -> None:
        """An agent's own claim must neither close an item nor allow a step."""
        kind, actor, said = self.cause
        relied = guarded or self.authors.get(place, actor) != actor
        if kind == "ran" or actor in self.people or not relied or ":" in place[1]:
            return
        cited = said.get("evidence", ()) if isinstance(said, dict) else ()
        if cited:
            assert self.successful_runs.issuperset(cited), "cited what did not run"
            self._count("cited")
            return
        for item, found in now.items():
            was = before.get(item, {})
            assert found["allowed"] in ("", was.get("allowed")), "an agent's word freed a step"
            assert (found["state"] == "CLOSED") <= (was.get("state") == "CLOSED"), "closed by word"

    def _check(self, tool: str) -> None:
        """A step that is proposed or started must be allowed by the current ruling."""
        fork, link = self.bound_proposals[tool]
        place = (fork, link["batch"])
        if fork is not None and place not in self.items:
            assert fork in self.copied_forks, "no ruling at all"
            return  # the ruling was copied with the fork
        assert self.items[place][link["item"]]["allowed"] == link["step"], "not allowed"
        assert link["item"] not in self.contested_items.get(place, ()), "judged too differently"
