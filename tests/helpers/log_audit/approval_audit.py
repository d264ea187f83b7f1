"""Checks a room's log independently: what may follow what, and who was entitled to it.

It uses only the stored bytes and its own statement of the rules, not the code that wrote them.
A violation fails an assertion at the record where it is found.
"""

import json
from collections.abc import Callable
from typing import Any

from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.engine.ports import Row
from tests.helpers.log_audit.audit_model import (
    APPROVING_ROLES,
    AuditedGate,
    AuditedMember,
    AuditedRecord,
    AuditedTool,
    ExpectedRecord,
    WireRecord,
    leaf_rules,
    rule_matches,
    rule_satisfied,
)

PROMPTING_ROLES = {"driver", "adversary", "admin"}
ALWAYS_GATED_RISKS = {"high", "critical"}
NEVER_AUTO_APPROVED = {"deploy", "database", "secret_access", "file_delete", "all"}
NEVER_AUTO_APPROVED_TYPES = {"deploy", "merge", "session_config"}
# Tools with these names have these categories, whatever the proposal says.
TOOL_CATEGORIES = {
    "bash": "shell_execute",
    "write_file": "file_write",
    "delete_file": "file_delete",
}
ABSENT_PRESENCES = {"away", "disconnected"}
# The kinds of records that may be stored while the room is paused.
ALLOWED_WHILE_PAUSED = {
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
    "tool.grant_ended",
    "tool.taken_back",
    "response.ended",
}


class ApprovalAudit:
    """Audits one room, record by record."""

    def __init__(self, stream: str, hints: dict[str, bool]) -> None:
        self.stream = stream
        self.approval_hints = hints  # by proposal: whether the agent asked for approval itself
        self.config: dict[str, Any] = {}
        self.members: dict[str, AuditedMember] = {}
        self.former_members: dict[str, AuditedMember] = {}
        self.removed: set[str] = set()
        self.removing: tuple[str, str] | None = None  # who removes whom in this decision
        self.gates: dict[str, AuditedGate] = {}
        self.tools: dict[str, AuditedTool] = {}
        self.taken_back: dict[str, str] = {}
        self.streams: dict[str, str] = {}
        self.closed_ids: set[str] = set()
        self.paused_at: int | None = None
        self.ended = False
        self.was_restarted = False  # whether the server was down, so timeouts may be late
        self.version, self.at, self.last_hash = 0, 0, genesis_hash(stream)
        self.ids: set[str] = set()
        self.wire_records: list[WireRecord] = []
        self.members_by_version: list[frozenset[str]] = [frozenset()]
        self.expected: list[ExpectedRecord] = []

    # Reading

    def read(self, row: Row) -> None:
        """Check the next row of the log."""
        stored = json.loads(row.body)
        said = stored.get("said") or {}
        self._check_place(row, stored, said)
        about = said.get("sender") or stored.get("actor", "")
        actor = stored.get("actor") or about
        kind: str = stored["kind"]
        assert not self.ended, f"{kind} after the end"
        self._check_expected(stored.get("cause") or row.id, kind)
        leaves = kind == "member.presence" and said.get("sender") == "system"
        if not actor.startswith("system") and kind not in {"session.created", "member.joined"}:
            assert leaves or actor in self.members, f"{kind} by {actor}, who is not here"
        if self.paused_at is not None:
            assert kind in ALLOWED_WHILE_PAUSED, f"{kind} while the room is paused"
        handler: Callable[[AuditedRecord], None] = getattr(self, "_" + kind.replace(".", "_"))
        handler(AuditedRecord(row.id, actor, stored, said, stored.get("fact") or {}))
        self.members_by_version.append(frozenset(self.members))

    def _check_place(self, row: Row, stored: dict[str, Any], said: dict[str, Any]) -> None:
        self.version += 1
        self.last_hash = link_hash(self.last_hash, row.body)
        assert (row.version, row.hash) == (self.version, self.last_hash)
        assert stored["at"] >= self.at, "time went back"
        self.at = stored["at"]
        assert row.id not in self.ids, f"{row.id} twice"
        self.ids.add(row.id)
        if said:
            assert said["id"] == row.id
            assert said["seq"] == len(self.wire_records) + 1
            assert said["session"] == self.stream.removeprefix("room/")
            leaves = stored["fact"]["seat"] if stored["kind"] == "member.left" else None
            to = frozenset(stored["to"]) if stored.get("to") is not None else None
            self.wire_records.append(WireRecord(row.id, row.version, to, leaves))

    def _check_expected(self, cause: str, kind: str) -> None:
        if self.expected:
            following = self.expected[0]
            assert (cause, kind) == (following.cause, following.kind)
        else:
            assert kind not in {"gate.passed", "tool.cleared"}, f"{kind} out of the blue"

    def _expect(self, entry: "AuditedRecord", kind: str, about: str) -> None:
        self.expected.append(ExpectedRecord(entry.cause, kind, about))

    def _meet_expectation(self, about: str) -> None:
        assert self.expected.pop(0).about == about

    # Visibility

    def can_see(self, seq: int, seat: str) -> bool:
        """Whether this member may ever see the record."""
        to = self.wire_records[seq - 1].to
        return to is None or seat in to

    def next_visible(self, seq: int, seat: str) -> int | None:
        """The seq of the next record that the member may see."""
        later = range(seq + 1, len(self.wire_records) + 1)
        return next((each for each in later if self.can_see(each, seat)), None)

    def was_member_since(self, seat: str, since: int) -> bool:
        """Whether the member was in the room at any time since that version."""
        return any(seat in inside for inside in self.members_by_version[since:])

    # The session and its members

    def _session_created(self, entry: "AuditedRecord") -> None:
        assert self.version == 1
        self.config = entry.payload["config"]
        fact = entry.fact
        self.members[entry.actor] = AuditedMember(fact["kind"], frozenset({"admin"}))

    def _session_configured(self, entry: "AuditedRecord") -> None:
        assert "admin" in self.members[entry.actor].roles
        self.config = {**self.config, **entry.payload["changes"]}
        self._pause_or_go_on()

    def _session_ended(self, entry: "AuditedRecord") -> None:
        assert self.members[entry.actor].has_right("end_session", {"admin"})
        assert not self.gates, "an open gate at the end"
        assert not self.streams, "an open stream at the end"
        self.closed_ids |= self.tools.keys()
        self.tools.clear()
        self.ended = True

    def _member_joined(self, entry: "AuditedRecord") -> None:
        fact, seat = entry.fact, entry.actor
        assert entry.payload["participant"]["id"] == seat
        assert seat not in self.removed, "a removed member came back by joining"
        before = self.members.get(seat) or self.former_members.pop(seat, None)
        now = AuditedMember(
            fact["kind"],
            frozenset(fact["roles"]),
            frozenset(fact["capabilities"]),
            frozenset(fact["labels"]),
            role_changed=bool(before and before.role_changed),
        )
        assert not (before and before.kind == "agent" and now.kind == "human")
        if "admin" in now.roles:
            assert before, "admin for the asking"
            assert "admin" in before.roles or before.role_changed, "admin for the asking"
        if seat not in self.members:
            assert len(self.members) < self.config["max_participants"]
        self.members[seat] = now
        self._changed(seat, before, now)
        self._pause_or_go_on()

    def _member_announced(self, entry: "AuditedRecord") -> None:
        seat = entry.payload["id"]
        assert frozenset(entry.payload["roles"]) == self.members[seat].roles

    def _member_left(self, entry: "AuditedRecord") -> None:
        seat = entry.fact["seat"]
        removed_by = entry.fact.get("removed_by") or ""
        assert entry.actor in {removed_by or seat, "system:timer"}
        if removed_by:
            assert entry.said["sender"] == "system"
            assert self.removing == (removed_by, seat), "removed without a role change"
            assert all(seat not in gate.yes for gate in self.gates.values())
        assert all(gate.initiator != seat for gate in self.gates.values())
        assert seat not in self.streams.values()
        assert not any(
            tool.agent == seat and tool.grant is not None and not tool.started
            for tool in self.tools.values()
        ), "an unused grant of a leaver"
        self.removing = None
        person = self.members.pop(seat)
        self.former_members[seat] = person
        if removed_by:
            self.removed.add(seat)
        for gate in self.gates.values():
            if seat in gate.yes:
                gate.departed_voters[seat] = person
            else:
                gate.electorate -= {seat}
        abandoned = {id for id, tool in self.tools.items() if tool.agent == seat}
        self.closed_ids |= abandoned
        for id in abandoned:
            del self.tools[id]
        self._pause_or_go_on()

    def _member_roles_changed(self, entry: "AuditedRecord") -> None:
        assert self.members[entry.actor].has_right("manage_participants", {"admin"})
        seat = entry.payload["participant"]
        if seat in self.removed:
            assert (entry.payload["old_roles"], bool(entry.payload["new_roles"])) == ([], True)
            self.removed.discard(seat)
            former = self.former_members[seat]
            former.roles, former.role_changed = frozenset(entry.payload["new_roles"]), True
            former.capabilities = frozenset()
            return
        if not entry.payload["new_roles"]:
            by, target = self.members[entry.actor], self.members[seat]
            assert by.kind == "human" or target.kind == "agent", "an agent removed a person"
            self.removing = (entry.actor, seat)
        before = self.members[seat]
        roles = frozenset(entry.payload["new_roles"]) or frozenset({"observer"})
        now = AuditedMember(
            before.kind, roles, frozenset(), before.labels, before.presence, role_changed=True
        )
        self.members[seat] = now
        assert any("admin" in person.roles for person in self.members.values()) or (
            "admin" not in before.roles
        )
        self._changed(seat, before, now)
        self._pause_or_go_on()

    def _member_presence(self, entry: "AuditedRecord") -> None:
        if entry.payload["participant"] not in self.members:  # behind a leave
            assert entry.payload["participant"] in self.former_members
            assert entry.payload["status"] == "disconnected"
            return
        self.members[entry.payload["participant"]].presence = entry.payload["status"]
        self._pause_or_go_on()

    def _changed(self, seat: str, before: AuditedMember | None, now: AuditedMember) -> None:
        """OPEN-17: a demotion removes a vote; a member outside the electorate never joins it."""
        for gate in self.gates.values():
            gate.departed_voters.pop(seat, None)
            if not now.can_approve:
                gate.yes.discard(seat)
                gate.electorate -= {seat}
            elif before and any(
                rule_matches(rule, before) and not rule_matches(rule, now)
                for rule in leaf_rules(gate.quorum)
            ):
                gate.yes.discard(seat)
            if not gate.enrolled:
                self._enrol(gate)

    def _enrol(self, gate: AuditedGate) -> None:
        gate.electorate = self.approvers() - gate.barred
        gate.enrolled = bool(gate.electorate)

    def approvers(self) -> frozenset[str]:
        """The people who may approve now."""
        return frozenset(seat for seat, person in self.members.items() if person.can_approve)

    def _pause_or_go_on(self) -> None:
        policy = self.config["on_participant_timeout"] == "pause_session"
        absent = any(
            p.presence in ABSENT_PRESENCES and p.participates for p in self.members.values()
        )
        if policy and absent and self.paused_at is None:
            self.paused_at = self.at
        elif not (policy and absent) and self.paused_at is not None:
            pause, self.paused_at = self.at - self.paused_at, None
            for gate in self.gates.values():
                gate.expires = None if gate.expires is None else gate.expires + pause

    # Prompts and responses

    def _prompt_submitted(self, entry: "AuditedRecord") -> None:
        assert self.members[entry.actor].has_right("prompt", PROMPTING_ROLES)
        assert self.members[entry.payload["target_agent"]].kind == "agent"

    def _response_started(self, entry: "AuditedRecord") -> None:
        assert self.members[entry.actor].kind == "agent"
        assert entry.payload["prompt_ref"] in self.ids
        self.streams[entry.id] = entry.actor

    def _response_chunked(self, entry: "AuditedRecord") -> None:
        assert self.streams[entry.said["ref"]] == entry.actor

    def _response_ended(self, entry: "AuditedRecord") -> None:
        agent = self.streams.pop(entry.said["ref"])
        assert entry.said["sender"] in {agent, "system"}

    # Tools

    def _tool_proposed(self, entry: "AuditedRecord") -> None:
        said = entry.payload
        assert self.members[entry.actor].kind == "agent"
        assert said["agent"] == entry.actor
        kinds = {said["category"], TOOL_CATEGORIES.get(said["tool_name"], said["category"])}
        listed = set(self.config["require_approval_for"])
        gated = (
            "all" in listed | kinds
            or bool(listed & kinds)
            or said["risk_level"] in ALWAYS_GATED_RISKS
            or self.approval_hints[entry.id]
        )
        assert said["requires_approval"] is gated
        risky = said["risk_level"] in ALWAYS_GATED_RISKS or bool(kinds & NEVER_AUTO_APPROVED)
        self.tools[entry.id] = AuditedTool(entry.actor, risky)
        self._expect(entry, "gate.opened" if gated else "tool.cleared", entry.id)

    def _tool_cleared(self, entry: "AuditedRecord") -> None:
        proposal = entry.payload["tool_proposal"]
        self._meet_expectation(proposal)
        assert entry.said["sender"] == "system"
        assert proposal not in self.closed_ids, "what was rejected runs"
        tool = self.tools[proposal]
        assert tool.grant is None, "a second grant"
        tool.grant, tool.expires = entry.payload["grant"]["id"], entry.fact["expires_at"]

    def _granted(self, entry: "AuditedRecord") -> AuditedTool:
        proposal = entry.payload["tool_proposal"]
        assert proposal not in self.closed_ids
        tool = self.tools[proposal]
        assert tool.agent == entry.actor, "somebody else's tool"
        assert tool.grant is not None, "it runs without a grant"
        assert self.at < tool.expires, "its grant has expired"
        shown = entry.payload.get("grant")
        name = shown["id"] if isinstance(shown, dict) else shown
        assert name in {None, tool.grant}, "another grant"
        return tool

    def _tool_started(self, entry: "AuditedRecord") -> None:
        tool = self._granted(entry)
        assert not tool.started, "a grant is used once"
        tool.started = True

    def _tool_printed(self, entry: "AuditedRecord") -> None:
        self._granted(entry).started = True

    def _tool_grant_ended(self, entry: "AuditedRecord") -> None:
        tool = self.tools[entry.fact["tool"]]
        assert tool.grant is not None
        assert not tool.started, "a used grant was ended"
        self._close_tool(entry.fact["tool"])

    def _tool_taken_back(self, entry: "AuditedRecord") -> None:
        assert self.members[entry.actor].has_right("approve", APPROVING_ROLES)
        tool = self.tools[entry.payload["tool_proposal"]]
        assert tool.grant is not None
        assert not tool.started, "a used grant was taken back"
        self.taken_back[entry.payload["tool_proposal"]] = tool.agent
        self._close_tool(entry.payload["tool_proposal"])

    def _tool_ran_late(self, entry: "AuditedRecord") -> None:
        assert self.taken_back.pop(entry.payload["tool_proposal"]) == entry.actor

    def _tool_finished(self, entry: "AuditedRecord") -> None:
        self._granted(entry)
        self._close_tool(entry.payload["tool_proposal"])

    def _tool_expired(self, entry: "AuditedRecord") -> None:
        assert self.tools[entry.fact["tool"]].expires <= self.at
        self._close_tool(entry.fact["tool"])

    def _close_tool(self, proposal: str) -> None:
        del self.tools[proposal]
        self.closed_ids.add(proposal)

    # Gates

    def _gate_opened(self, entry: "AuditedRecord") -> None:
        said, fact = entry.payload, entry.fact
        action = said["action_ref"]
        if self.expected:
            self._meet_expectation(action)
        assert action not in self.closed_ids, "a gate on what is over"
        assert all(gate.action != action for gate in self.gates.values()), "two gates on one action"
        approvers = self.approvers()
        initiator = fact["initiator"]
        alone = approvers == {initiator}
        tool = self.tools.get(action)
        gate = AuditedGate(
            action=action,
            initiator=initiator,
            quorum=said["quorum"],
            barred=frozenset() if alone else frozenset({initiator}),
            electorate=frozenset(),
            expires=fact.get("expires_at"),
            policy=fact["on_timeout"],
            type=said["action_type"],
            risky=tool.risky if tool else said["action_type"] in NEVER_AUTO_APPROVED_TYPES,
        )
        self._enrol(gate)
        assert frozenset(fact["barred"]) == gate.barred
        assert frozenset(fact["roll"]) == gate.electorate
        self.gates[entry.id] = gate

    def _gate_approved(self, entry: "AuditedRecord") -> None:
        seat, gate = entry.fact["seat"], self.gates[entry.fact["gate"]]
        assert entry.actor == seat
        assert entry.payload["approver"] == seat
        assert seat in self.approvers(), "not a human who may approve"
        assert seat not in gate.barred, "whoever proposes cannot approve"
        gate.yes.add(seat)
        if self.passes(gate):
            self._expect(entry, "gate.passed", entry.fact["gate"])

    def _gate_passed(self, entry: "AuditedRecord") -> None:
        self._meet_expectation(entry.fact["gate"])
        gate = self.gates.pop(entry.fact["gate"])
        counted = set(entry.fact["approved_by"])
        assert counted <= gate.yes
        self.closed_ids.add(entry.fact["gate"])
        if gate.action in self.tools:
            self._expect(entry, "tool.cleared", gate.action)

    def _gate_rejected(self, entry: "AuditedRecord") -> None:
        gate = self.gates[entry.fact["gate"]]
        if not entry.actor.startswith("system") and entry.said["sender"] != "system":
            vetoes = self.members[entry.actor].has_right("approve", APPROVING_ROLES)
            assert vetoes or entry.actor == gate.initiator
        self._fail(entry.fact["gate"])

    def _gate_timed_out(self, entry: "AuditedRecord") -> None:
        name, resolution = entry.payload["gate"], entry.payload["resolution"]
        gate = self.gates[name]
        if entry.actor == "system:timer":
            assert gate.expires is not None
            assert gate.expires <= self.at, "too early"
            assert self.paused_at is None, "its clock stands still"
            assert resolution == "rejected" or not self.was_restarted, "a restart opened a gate"
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
            self.closed_ids.add(name)
            self._expect(entry, "gate.opened", gate.action)

    def _fail(self, name: str) -> None:
        gate = self.gates.pop(name)
        self.closed_ids |= {name, gate.action}
        self.tools.pop(gate.action, None)

    def passes(self, gate: AuditedGate) -> bool:
        """Whether the votes that still count are enough."""
        people = {**gate.departed_voters, **{seat: self.members[seat] for seat in self.approvers()}}
        able = {seat: person for seat, person in people.items() if seat not in gate.barred}
        yes = {seat for seat in gate.yes if seat in able}
        roll = gate.electorate & able.keys()
        if self.config["on_participant_timeout"] == "skip":
            here = {s for s, p in self.members.items() if p.presence not in ABSENT_PRESENCES}
            roll = roll & (here | gate.yes) or roll
        return all(rule_satisfied(rule, able, yes, roll) for rule in leaf_rules(gate.quorum))
