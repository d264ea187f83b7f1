"""An independent reading of a room's log: what may follow what, and who was entitled to it.

It knows the stored bytes and the rules as people say them, and nothing of the code that wrote
them. Whatever should not have happened fails an assertion where it is read.
"""

import json
from collections.abc import Callable
from typing import Any

from accord.core.kernel.chain import genesis, link
from accord.engine.ports import Row
from tests.helpers.audited import (
    APPROVING,
    Entry,
    Gate,
    Heard,
    Next,
    Person,
    Tool,
    enough,
    fits,
    leaves,
)

PROMPTING = {"driver", "adversary", "admin"}
ALWAYS_GATED = {"high", "critical"}
NEVER_SILENTLY = {"deploy", "database", "secret_access", "file_delete", "all"}
NEVER_SILENTLY_TYPES = {"deploy", "merge", "session_config"}
# Names that say what a tool is, whatever its proposer calls it.
KNOWN_TOOLS = {"bash": "shell_execute", "write_file": "file_write", "delete_file": "file_delete"}
AWAY = {"away", "disconnected"}
# What may be put on record while the room is paused.
WHILE_PAUSED = {
    "session.configured",
    "session.ended",
    "member.joined",
    "member.announced",
    "member.left",
    "member.roles_changed",
    "member.presence",
    "gate.approved",
    "gate.rejected",
    "gate.passed",
    "gate.timed_out",
    "tool.cleared",
    "tool.expired",
    "response.ended",
}


class Audit:
    """One room, record by record."""

    def __init__(self, stream: str, hints: dict[str, bool]) -> None:
        self.stream = stream
        self.hints = hints  # by proposal: whether the agent itself asked for approval
        self.config: dict[str, Any] = {}
        self.members: dict[str, Person] = {}
        self.former: dict[str, Person] = {}
        self.gates: dict[str, Gate] = {}
        self.tools: dict[str, Tool] = {}
        self.streams: dict[str, str] = {}
        self.dead: set[str] = set()
        self.paused: int | None = None
        self.ended = False
        self.slept = False  # whether nobody was there to watch the clock
        self.version, self.at, self.last = 0, 0, genesis(stream)
        self.ids: set[str] = set()
        self.heard: list[Heard] = []
        self.insiders: list[frozenset[str]] = [frozenset()]
        self.expected: list[Next] = []

    # Reading

    def read(self, row: Row) -> None:
        """The next row of the log."""
        stored = json.loads(row.body)
        said = stored.get("said") or {}
        self._check_place(row, stored, said)
        about = said.get("sender") or stored.get("actor", "")
        actor = stored.get("actor") or about
        kind: str = stored["kind"]
        assert not self.ended, f"{kind} after the end"
        self._check_expected(stored.get("cause") or row.id, kind)
        if not actor.startswith("system") and kind not in {"session.created", "member.joined"}:
            assert actor in self.members, f"{kind} by {actor}, who is not here"
        if self.paused is not None:
            assert kind in WHILE_PAUSED, f"{kind} while the room is paused"
        handler: Callable[[Entry], None] = getattr(self, "_" + kind.replace(".", "_"))
        handler(Entry(row.id, actor, stored, said, stored.get("fact") or {}))
        self.insiders.append(frozenset(self.members))

    def _check_place(self, row: Row, stored: dict[str, Any], said: dict[str, Any]) -> None:
        self.version += 1
        self.last = link(self.last, row.body)
        assert (row.version, row.hash) == (self.version, self.last)
        assert stored["at"] >= self.at, "time went back"
        self.at = stored["at"]
        assert row.id not in self.ids, f"{row.id} twice"
        self.ids.add(row.id)
        if said:
            assert said["id"] == row.id
            assert said["seq"] == len(self.heard) + 1
            assert said["session"] == self.stream.removeprefix("room/")
            leaves = stored["fact"]["seat"] if stored["kind"] == "member.left" else None
            to = frozenset(stored["to"]) if stored.get("to") is not None else None
            self.heard.append(Heard(row.id, row.version, to, leaves))

    def _check_expected(self, cause: str, kind: str) -> None:
        if self.expected:
            following = self.expected[0]
            assert (cause, kind) == (following.cause, following.kind)
        else:
            assert kind not in {"gate.passed", "tool.cleared"}, f"{kind} out of the blue"

    def _expect(self, entry: "Entry", kind: str, about: str) -> None:
        self.expected.append(Next(entry.cause, kind, about))

    def _met(self, about: str) -> None:
        assert self.expected.pop(0).about == about

    # Who hears what

    def visible(self, seq: int, seat: str) -> bool:
        """Whether this seat may ever see it."""
        to = self.heard[seq - 1].to
        return to is None or seat in to

    def next_visible(self, seq: int, seat: str) -> int | None:
        """The number of the next record after this one that the seat may see."""
        later = range(seq + 1, len(self.heard) + 1)
        return next((each for each in later if self.visible(each, seat)), None)

    def was_in(self, seat: str, since: int) -> bool:
        """Whether the seat was in the room at any time since that version."""
        return any(seat in inside for inside in self.insiders[since:])

    # The room and its people

    def _session_created(self, entry: "Entry") -> None:
        assert self.version == 1
        self.config = entry.payload["config"]
        fact = entry.fact
        self.members[entry.actor] = Person(fact["kind"], frozenset({"admin"}))

    def _session_configured(self, entry: "Entry") -> None:
        assert "admin" in self.members[entry.actor].roles
        self.config = {**self.config, **entry.payload["changes"]}
        self._pause_or_go_on()

    def _session_ended(self, entry: "Entry") -> None:
        assert self.members[entry.actor].may("end_session", {"admin"})
        assert not self.gates, "an open gate at the end"
        assert not self.streams, "an open stream at the end"
        self.dead |= self.tools.keys()
        self.tools.clear()
        self.ended = True

    def _member_joined(self, entry: "Entry") -> None:
        fact, seat = entry.fact, entry.actor
        assert entry.payload["participant"]["id"] == seat
        before = self.members.get(seat) or self.former.pop(seat, None)
        now = Person(
            fact["kind"],
            frozenset(fact["roles"]),
            frozenset(fact["capabilities"]),
            frozenset(fact["labels"]),
            settled=bool(before and before.settled),
        )
        assert not (before and before.kind == "agent" and now.kind == "human")
        if "admin" in now.roles:
            assert before, "admin for the asking"
            assert "admin" in before.roles or before.settled, "admin for the asking"
        if seat not in self.members:
            assert len(self.members) < self.config["max_participants"]
        self.members[seat] = now
        self._changed(seat, before, now)
        self._pause_or_go_on()

    def _member_announced(self, entry: "Entry") -> None:
        seat = entry.payload["id"]
        assert frozenset(entry.payload["roles"]) == self.members[seat].roles

    def _member_left(self, entry: "Entry") -> None:
        seat = entry.fact["seat"]
        assert entry.actor in {seat, "system:timer"}
        assert all(gate.initiator != seat for gate in self.gates.values())
        assert seat not in self.streams.values()
        person = self.members.pop(seat)
        self.former[seat] = person
        for gate in self.gates.values():
            if seat in gate.yes:
                gate.gone[seat] = person
            else:
                gate.roll -= {seat}
        abandoned = {id for id, tool in self.tools.items() if tool.agent == seat}
        self.dead |= abandoned
        for id in abandoned:
            del self.tools[id]
        self._pause_or_go_on()

    def _member_roles_changed(self, entry: "Entry") -> None:
        assert self.members[entry.actor].may("manage_participants", {"admin"})
        seat = entry.payload["participant"]
        before = self.members[seat]
        roles = frozenset(entry.payload["new_roles"]) or frozenset({"observer"})
        now = Person(before.kind, roles, frozenset(), before.labels, before.presence, settled=True)
        self.members[seat] = now
        assert any("admin" in person.roles for person in self.members.values()) or (
            "admin" not in before.roles
        )
        self._changed(seat, before, now)
        self._pause_or_go_on()

    def _member_presence(self, entry: "Entry") -> None:
        self.members[entry.payload["participant"]].presence = entry.payload["status"]
        self._pause_or_go_on()

    def _changed(self, seat: str, before: Person | None, now: Person) -> None:
        """OPEN-17: a demotion bites; who was not on the roll when it was fixed never is."""
        for gate in self.gates.values():
            gate.gone.pop(seat, None)
            if not now.approves:
                gate.yes.discard(seat)
                gate.roll -= {seat}
            elif before and any(
                fits(rule, before) and not fits(rule, now) for rule in leaves(gate.quorum)
            ):
                gate.yes.discard(seat)
            if not gate.enrolled:
                self._enrol(gate)

    def _enrol(self, gate: Gate) -> None:
        gate.roll = self.approvers() - gate.barred
        gate.enrolled = bool(gate.roll)

    def approvers(self) -> frozenset[str]:
        """The humans who may approve now."""
        return frozenset(seat for seat, person in self.members.items() if person.approves)

    def _pause_or_go_on(self) -> None:
        policy = self.config["on_participant_timeout"] == "pause_session"
        absent = any(p.presence in AWAY and p.takes_part for p in self.members.values())
        if policy and absent and self.paused is None:
            self.paused = self.at
        elif not (policy and absent) and self.paused is not None:
            pause, self.paused = self.at - self.paused, None
            for gate in self.gates.values():
                gate.expires = None if gate.expires is None else gate.expires + pause

    # Prompts and answers

    def _prompt_submitted(self, entry: "Entry") -> None:
        assert self.members[entry.actor].may("prompt", PROMPTING)
        assert self.members[entry.payload["target_agent"]].kind == "agent"

    def _response_started(self, entry: "Entry") -> None:
        assert self.members[entry.actor].kind == "agent"
        assert entry.payload["prompt_ref"] in self.ids
        self.streams[entry.id] = entry.actor

    def _response_chunked(self, entry: "Entry") -> None:
        assert self.streams[entry.said["ref"]] == entry.actor

    def _response_ended(self, entry: "Entry") -> None:
        agent = self.streams.pop(entry.said["ref"])
        assert entry.said["sender"] in {agent, "system"}

    # Tools

    def _tool_proposed(self, entry: "Entry") -> None:
        said = entry.payload
        assert self.members[entry.actor].kind == "agent"
        assert said["agent"] == entry.actor
        kinds = {said["category"], KNOWN_TOOLS.get(said["tool_name"], said["category"])}
        listed = set(self.config["require_approval_for"])
        gated = (
            "all" in listed | kinds
            or bool(listed & kinds)
            or said["risk_level"] in ALWAYS_GATED
            or self.hints[entry.id]
        )
        assert said["requires_approval"] is gated
        risky = said["risk_level"] in ALWAYS_GATED or bool(kinds & NEVER_SILENTLY)
        self.tools[entry.id] = Tool(entry.actor, risky)
        self._expect(entry, "gate.opened" if gated else "tool.cleared", entry.id)

    def _tool_cleared(self, entry: "Entry") -> None:
        proposal = entry.payload["tool_proposal"]
        self._met(proposal)
        assert entry.said["sender"] == "system"
        assert proposal not in self.dead, "what was rejected runs"
        tool = self.tools[proposal]
        assert tool.grant is None, "a second grant"
        tool.grant, tool.expires = entry.payload["grant"]["id"], entry.fact["expires_at"]

    def _granted(self, entry: "Entry") -> Tool:
        proposal = entry.payload["tool_proposal"]
        assert proposal not in self.dead
        tool = self.tools[proposal]
        assert tool.agent == entry.actor, "somebody else's tool"
        assert tool.grant is not None, "it runs without a grant"
        assert self.at < tool.expires, "its grant has expired"
        shown = entry.payload.get("grant")
        name = shown["id"] if isinstance(shown, dict) else shown
        assert name in {None, tool.grant}, "another grant"
        return tool

    def _tool_started(self, entry: "Entry") -> None:
        tool = self._granted(entry)
        assert not tool.started, "a grant is used once"
        tool.started = True

    def _tool_printed(self, entry: "Entry") -> None:
        self._granted(entry)

    def _tool_finished(self, entry: "Entry") -> None:
        self._granted(entry)
        self._over(entry.payload["tool_proposal"])

    def _tool_expired(self, entry: "Entry") -> None:
        assert self.tools[entry.fact["tool"]].expires <= self.at
        self._over(entry.fact["tool"])

    def _over(self, proposal: str) -> None:
        del self.tools[proposal]
        self.dead.add(proposal)

    # Gates

    def _gate_opened(self, entry: "Entry") -> None:
        said, fact = entry.payload, entry.fact
        action = said["action_ref"]
        if self.expected:
            self._met(action)
        assert action not in self.dead, "a gate on what is over"
        assert all(gate.action != action for gate in self.gates.values()), "two gates on one action"
        approvers = self.approvers()
        initiator = fact["initiator"]
        alone = approvers == {initiator}
        tool = self.tools.get(action)
        gate = Gate(
            action=action,
            initiator=initiator,
            quorum=said["quorum"],
            barred=frozenset() if alone else frozenset({initiator}),
            roll=frozenset(),
            expires=fact.get("expires_at"),
            policy=fact["on_timeout"],
            type=said["action_type"],
            risky=tool.risky if tool else said["action_type"] in NEVER_SILENTLY_TYPES,
        )
        self._enrol(gate)
        assert frozenset(fact["barred"]) == gate.barred
        assert frozenset(fact["roll"]) == gate.roll
        self.gates[entry.id] = gate

    def _gate_approved(self, entry: "Entry") -> None:
        seat, gate = entry.fact["seat"], self.gates[entry.fact["gate"]]
        assert entry.actor == seat
        assert entry.payload["approver"] == seat
        assert seat in self.approvers(), "not a human who may approve"
        assert seat not in gate.barred, "whoever proposes cannot approve"
        gate.yes.add(seat)
        if self.passes(gate):
            self._expect(entry, "gate.passed", entry.fact["gate"])

    def _gate_passed(self, entry: "Entry") -> None:
        self._met(entry.fact["gate"])
        gate = self.gates.pop(entry.fact["gate"])
        counted = set(entry.fact["approved_by"])
        assert counted <= gate.yes
        self.dead.add(entry.fact["gate"])
        if gate.action in self.tools:
            self._expect(entry, "tool.cleared", gate.action)

    def _gate_rejected(self, entry: "Entry") -> None:
        gate = self.gates[entry.fact["gate"]]
        if not entry.actor.startswith("system") and entry.said["sender"] != "system":
            vetoes = self.members[entry.actor].may("approve", APPROVING)
            assert vetoes or entry.actor == gate.initiator
        self._fail(entry.fact["gate"])

    def _gate_timed_out(self, entry: "Entry") -> None:
        name, resolution = entry.payload["gate"], entry.payload["resolution"]
        gate = self.gates[name]
        if entry.actor == "system:timer":
            assert gate.expires is not None
            assert gate.expires <= self.at, "too early"
            assert self.paused is None, "its clock stands still"
            assert resolution == "rejected" or not self.slept, "a restart opened a gate"
        if resolution == "rejected":
            self._fail(name)
        elif resolution == "auto_approved":
            assert entry.actor == "system:timer"
            assert gate.policy == "auto_approved"
            assert not gate.risky, "silence approved something risky"
            self._expect(entry, "gate.passed", name)
        else:
            assert gate.policy == "escalated"
            del self.gates[name]
            self.dead.add(name)
            self._expect(entry, "gate.opened", gate.action)

    def _fail(self, name: str) -> None:
        gate = self.gates.pop(name)
        self.dead |= {name, gate.action}
        self.tools.pop(gate.action, None)

    def passes(self, gate: Gate) -> bool:
        """Whether those who said yes, and still count, are enough."""
        people = {**gate.gone, **{seat: self.members[seat] for seat in self.approvers()}}
        able = {seat: person for seat, person in people.items() if seat not in gate.barred}
        yes = {seat for seat in gate.yes if seat in able}
        roll = gate.roll & able.keys()
        if self.config["on_participant_timeout"] == "skip":
            here = {s for s, p in self.members.items() if p.presence not in AWAY}
            roll = roll & (here | gate.yes) or roll
        return all(enough(rule, able, yes, roll) for rule in leaves(gate.quorum))
