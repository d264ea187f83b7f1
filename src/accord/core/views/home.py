"""What concerns one member of a session: gates, stalls, and gates that ended lately."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.messages import Instant
from accord.core.kernel.timestamps import to_iso
from accord.core.room.decisions import decision_binding
from accord.core.room.state import ABSENT_PRESENCES, EndedGate, Room, ToolProposal
from accord.core.views.gate_card import gate_card, may_vote
from accord.core.views.sessions import (
    can_read_fork,
    fork_name,
    people_in,
    proposal_view,
    standing_grant_view,
)

Entry = dict[str, Any]


class SessionConcerns(NamedTuple):
    """What one session contributes to a member's home."""

    gates: list[Entry]
    stalls: list[Entry]
    ended_gates: list[Entry]
    other_gates: int  # open gates that this member may read and not vote on
    standing_grants: tuple[Entry, ...] = ()


class HomeLimits(NamedTuple):
    """How large a home may be."""

    gates: int = 500
    stalls: int = 500
    ended_gates: int = 200
    silences: int = 200
    questions: int = 200
    unread_threads: int = 200
    standing_grants: int = 200
    argument_bytes: int = 2 << 20  # of all gates and held proposals together


HOME_LIMITS = HomeLimits()


def combine(
    sessions: Iterable[SessionConcerns],
    limits: HomeLimits = HOME_LIMITS,
    *,
    silences: Sequence[Entry] = (),
    questions: Sequence[Entry] = (),
    unread_threads: Sequence[Any] = (),
    more: bool = False,
) -> Entry:
    """One home from the concerns of several sessions, the most urgent gates first.

    A gate is never left out because its arguments are large: they are omitted instead, and said to
    be. `silences` and `questions` are of threads; `more` if there are sessions that were not
    looked at.
    """
    parts = list(sessions)
    gates = sorted((gate for part in parts for gate in part.gates), key=_urgency)
    stalls = [stall for part in parts for stall in part.stalls]
    ended = sorted(
        (gate for part in parts for gate in part.ended_gates),
        key=lambda gate: (gate["ended_at"], gate["id"]),
        reverse=True,
    )
    budget = _ArgumentBudget(limits.argument_bytes)
    return {
        "gates": [budget.fit(gate, "action") for gate in gates[: limits.gates]],
        "stalls": [budget.fit(stall, "proposal") for stall in stalls[: limits.stalls]],
        "ended_gates": ended[: limits.ended_gates],
        "standing_grants": [grant for part in parts for grant in part.standing_grants][
            : limits.standing_grants
        ],
        "silences": list(silences[: limits.silences]),
        "questions": list(questions[: limits.questions]),
        "unread_threads": list(unread_threads[: limits.unread_threads]),
        "counts": {
            "gates": len(gates),
            "awaiting_my_vote": sum(g["may_approve"] and g["my_vote"] is None for g in gates),
            "other_gates": sum(part.other_gates for part in parts),
            "stalls": len(stalls),
            "silences": len(silences),
            "questions": len(questions),
            "unread_threads": len(unread_threads),
        },
        "has_more": more
        or len(gates) > limits.gates
        or len(stalls) > limits.stalls
        or len(questions) > limits.questions
        or len(unread_threads) > limits.unread_threads,
    }


def _urgency(gate: Entry) -> tuple[bool, str, str, str]:
    expires_at = gate["expires_at"]
    return expires_at is None, expires_at or "", gate["created_at"], gate["id"]


class _ArgumentBudget:
    """Omits the arguments of the proposals for which no space is left."""

    def __init__(self, size: int) -> None:
        self.left = size

    def fit(self, entry: Entry, field: str) -> Entry:
        proposal = entry[field]
        if proposal is None:
            return entry
        size = len(msgspec.json.encode(proposal["arguments"]))
        if size > self.left:
            return {**entry, field: {**proposal, "arguments": {}, "arguments_omitted": True}}
        self.left -= size
        return entry


def session_concerns(room: Room, seat: str, since: Instant) -> SessionConcerns:
    """Everything in the room that concerns this member; nothing for anybody else."""
    if seat not in room.members:
        return SessionConcerns([], [], [], 0)
    readable = [gate for gate in room.gates.values() if can_read_fork(room, gate.fork, seat)]
    votable = [gate for gate in readable if may_vote(room, gate, seat)]
    ended = (
        gate
        for gate in room.ended_gates.values()
        if gate.at >= since and can_read_fork(room, gate.fork, seat)
    )
    return SessionConcerns(
        gates=[gate_card(room, gate, seat) for gate in votable],
        stalls=[_in_session(room, stall) for stall in stalls_of(room, seat)],
        ended_gates=[_in_session(room, ended_gate_view(room, gate)) for gate in ended],
        other_gates=len(readable) - len(votable),
        standing_grants=tuple(
            _in_session(room, standing_grant_view(room, grant))
            for grant in room.standing_grants.values()
        ),
    )


def _in_session(room: Room, entry: Entry) -> Entry:
    return {"session": room.id, "session_name": room.name, **entry}


# Gates


def ended_gate_view(room: Room, gate: EndedGate) -> Entry:
    """How a gate ended."""
    return {
        "id": gate.id,
        "action_type": gate.action_type,
        "action_ref": gate.action,
        "initiator": gate.initiator,
        "tool_name": gate.tool_name,
        "outcome": gate.outcome.value,
        "by": list(gate.by),
        "standing": list(gate.standing),
        "reason": gate.reason,
        "taken_back": gate.taken_back,
        "ended_at": to_iso(gate.at),
        "fork": gate.fork,
        "fork_name": fork_name(room, gate.fork),
        "people": people_in(room, {gate.initiator, *gate.by}),
    }


# Stalls


def stalls_of(room: Room, seat: str) -> Iterator[Entry]:
    """Whatever does not go on by itself, other than by a vote."""
    if room.ended:
        return
    yield from (_held_stall(room, tool) for tool in held_proposals(room, seat))
    for interrupt in room.interrupts.values():
        yield _stall(room, "interrupt_unanswered", interrupt.id, sorted(interrupt.waiting))
    for agent in room.halted:
        yield _stall(room, "agent_stopped", agent, [agent])
    for agent in room.failed_agents:
        if not works_out_of_sight(room, agent, seat):
            yield _stall(room, "agent_failed", agent, [agent])
    yield from (_absent_stall(room, tool) for tool in calls_of_absent_agents(room, seat))
    if room.paused_at is not None:
        yield _stall(room, "session_paused", room.id, [])


def works_out_of_sight(room: Room, agent: str, seat: str) -> bool:
    """Whether the agent is in a fork that this member may not read, and may have failed there."""
    return any(
        agent in room.members_in(fork) and not can_read_fork(room, fork, seat)
        for fork in room.forks
    )


def calls_of_absent_agents(room: Room, seat: str) -> Iterator[ToolProposal]:
    """Calls that were allowed, and whose agent is away, where this member may read them."""
    return (
        tool
        for tool in room.tools.values()
        if tool.grant is not None
        and tool.agent in room.members
        and room.members[tool.agent].presence in ABSENT_PRESENCES
        and can_read_fork(room, tool.fork, seat)
    )


def _absent_stall(room: Room, tool: ToolProposal) -> Entry:
    stall = _stall(room, "agent_away", tool.id, [tool.agent], tool.fork)
    return stall | {"proposal": proposal_view(room, tool)}


def held_proposals(room: Room, seat: str) -> Iterator[ToolProposal]:
    """Proposals that a decision holds back, where this member may read them."""
    held = decision_binding.held_proposals(room)
    return (tool for tool in held if can_read_fork(room, tool.fork, seat))


def _held_stall(room: Room, tool: ToolProposal) -> Entry:
    stall = _stall(room, "proposal_held", tool.id, [tool.agent], tool.fork)
    return stall | {"proposal": proposal_view(room, tool)}


def _stall(room: Room, kind: str, id: str, agents: Iterable[str], fork: str | None = None) -> Entry:
    agents = list(agents)
    return {
        "kind": kind,
        "id": id,
        "agents": agents,
        "proposal": None,
        "fork": fork,
        "fork_name": fork_name(room, fork),
        "people": people_in(room, agents),
    }
