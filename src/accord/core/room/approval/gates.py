"""Gates: requests for approval, each with a quorum, an electorate and a deadline.

The life of a gate. It opens when a tool is proposed that needs approval, when a merge needs one,
when a decision releases a held proposal, or when a member requests it (`gate.request`). It ends
exactly once, and what ended is never reopened: a new attempt is a new proposal with a new gate.

    state      entered by                               event          the action
    ---------  ---------------------------------------  -------------  ---------------------------
    open       proposal, merge, request or escalation   GateOpened     waits
    passed     an approval that completes the quorum    GatePassed     proceeds; a tool is granted
    rejected   one veto by a member who may approve,    GateRejected   ends
               the initiator's withdrawal, the server
    timed out  the deadline or the end of the session   GateTimedOut   by its `resolution`:
      rejected        the default                                      ends
      auto_approved   if the operator chose it          GatePassed     proceeds
      escalated       if the operator chose it          GateOpened     waits for one admin, whose
                                                                       gate rejects at its timeout

Who counts. Only humans with the permission to approve, and never the initiator, except one who is
the only voter when the gate opens (OPEN-14, recorded as `self_approved`). In a fork, only its
members count (OPEN-47). The rules `all` and `majority` count the electorate, which is fixed when
the gate opens (OPEN-26): members who join later may vote, but are not waited for. A gate without
any voter says so in its message, and its electorate is fixed when the first voter arrives. Agents
never approve; one that holds the permission may veto.

When members change (electorate.py, OPEN-17). A voter who leaves after approving stays counted; one
who had not voted leaves the electorate. A voter who loses the permission, or the role or label that
the quorum names, loses the vote. None of this passes a gate: the votes are counted only when a
member approves, so nothing happens without a fresh act of a human. When the initiator leaves or is
stopped by an emergency, or the fork is merged, the server rejects the gate.

When time decides (gate_timeouts.py). A timeout of 0 means no deadline. Approval by timeout is never
used for dangerous categories, high risks, merges, deploys and settings (OPEN-23), nor when no voter
could have answered (OPEN-15), the initiator is stopped, or a decision holds the proposal. After a
deadline that passed while the server was down, the gate is rejected (OPEN-31). Deadlines are
suspended while the session is paused. With the policy `skip`, absent voters are not waited for
(OPEN-18).
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import Ballot, Quorum
from accord.core.kernel.context import Command, Deciders, Evolvers
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, Instant, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.kernel.timestamps import MS_PER_SECOND
from accord.core.room.approval.electorate import check_quorum
from accord.core.room.decisions import decision_binding
from accord.core.room.field_types import Id, ShortText
from accord.core.room.room_settings import Category, GateResolution
from accord.core.room.state import (
    EndedGate,
    Gate,
    GateOutcome,
    Risk,
    Room,
    ToolProposal,
    without_keys,
)
from accord.core.room.visibility import (
    check_fork_open,
    check_same_fork,
    outcome_key,
    outcome_of,
    remember_outcomes,
)

GateSeconds = Annotated[int, Meta(ge=0, le=31_536_000)]
Metadata = Mapping[str, Any] | None
GATE_TIMEOUT_KEY = "gate_timeout_seconds"
NEVER = 0  # no deadline, which counts as the longest time
ActionType = Literal[
    "tool",
    "deploy",
    "prompt",
    "context_change",
    "session_config",
    "participant_add",
    "fork",
    "merge",
]
# Only a person's own vote lets calls of these categories through: a timeout never approves them,
# whatever the operator configured (OPEN-23), and no standing grant covers them.
NEVER_AUTO_CATEGORIES = frozenset(
    {Category.DEPLOY, Category.DATABASE, Category.SECRET_ACCESS, Category.FILE_DELETE, Category.ALL}
)
NEVER_AUTO_ACTION_TYPES = frozenset({"deploy", "merge", "session_config"})
ALWAYS_GATED_RISKS = frozenset({Risk.HIGH, Risk.CRITICAL})
MAX_MESSAGE_LENGTH = 4096
# The state keeps the newest ended gates, to say how and when each of them ended.
MAX_ENDED_GATES = 32
MAX_REASON_LENGTH = 500
MAX_REMARK_LENGTH = 512
NO_APPROVER_REMARK = "no participant can approve this yet"
SHELL_TOOL_NAMES = (
    *("bash", "sh", "shell", "zsh", "fish", "dash", "ksh", "mksh"),
    *("csh", "tcsh", "ash", "busybox", "nu", "nushell", "cmd", "command"),
    *("powershell", "pwsh", "exec", "execute", "run", "terminal", "run_command", "python"),
    *("python3", "node", "perl", "ruby", "eval", "sudo", "ssh", "run_shell_command"),
    *("execute_shell_command", "execute_nushell_command", "notebook_execute"),
)
WRITING_TOOL_NAMES = (
    *("file_edit", "write_file", "edit_file", "apply_patch"),
    *("write", "edit", "multiedit", "notebookedit", "strreplace", "replace"),
)
# OPEN-21: a tool whose name reveals its category is gated as that category, too.
CATEGORY_BY_TOOL_NAME: dict[str, Category] = {
    **{category.value: category for category in Category},
    **dict.fromkeys(SHELL_TOOL_NAMES, Category.SHELL_EXECUTE),
    **dict.fromkeys(WRITING_TOOL_NAMES, Category.FILE_WRITE),
    "delete_file": Category.FILE_DELETE,
}


class GateRequest(Body, frozen=True, omit_defaults=True, gc=False):
    """Ask for approval of an action."""

    type = "gate.request"
    needs = Permission.PARTICIPATE
    forkable = True
    cites_others = True

    action_type: ActionType
    action_ref: Id
    quorum: Quorum
    timeout_seconds: Annotated[int, Meta(ge=0, le=31_536_000)]
    message: ShortText
    decision: decision_binding.DecisionStanding | None = None

    def cited_ids(self) -> Iterator[str]:
        yield self.action_ref

    def is_retry_of(self, said: Body) -> bool:
        """Ignores what the server may have appended to `message`."""
        own = f"{self.message} ("[: MAX_MESSAGE_LENGTH - MAX_REMARK_LENGTH]
        return (
            isinstance(said, GateRequest)
            and said == replace(self, message=said.message)
            and (said.message == self.message or said.message.startswith(own))
        )


class GateOpened(Event, frozen=True, kw_only=True, gc=False):
    """A gate opened; its electorate is fixed now (OPEN-26)."""

    name = "gate.opened"

    said: GateRequest
    initiator: str
    barred: MemberIds
    roll: MemberIds
    expires_at: Instant | None
    on_timeout: GateResolution
    solo: bool = False


# How long a gate stays open: the server's default, the session's own time, or a proposal's


def check_metadata(command: Command, metadata: Metadata) -> None:
    """Limit the size, and refuse a gate time that is not a number of seconds."""
    limit: int = command.policy.limits.metadata
    if metadata and len(msgspec.json.encode(metadata)) > limit:
        raise limit_exceeded("metadata", limit, f"metadata may have at most {limit} bytes")
    requested_seconds(metadata)


def requested_seconds(metadata: Metadata) -> int | None:
    """`metadata.gate_timeout_seconds`; None if there is none."""
    if not metadata or GATE_TIMEOUT_KEY not in metadata:
        return None
    try:
        return msgspec.convert(metadata[GATE_TIMEOUT_KEY], GateSeconds)
    except msgspec.ValidationError as error:
        detail = f"metadata.{GATE_TIMEOUT_KEY} must be a number of seconds; 0 is never: {error}"
        raise Refused(Reason.MALFORMED, detail) from error


def session_seconds(room: Room, command: Command) -> int:
    """How long a gate of this session stays open."""
    default: int = command.policy.gate_seconds
    return default if room.gate_seconds is None else room.gate_seconds


def check_proposal_seconds(room: Room, command: Command, metadata: Metadata) -> None:
    """A proposal's own time is at most the session's."""
    wanted, most = requested_seconds(metadata), session_seconds(room, command)
    if wanted is None or most == NEVER:
        return
    if wanted == NEVER or wanted > most:
        detail = f"metadata.{GATE_TIMEOUT_KEY} may be at most the session's, {most}; 0 is never"
        raise Refused(Reason.MALFORMED, detail)


def tool_seconds(room: Room, command: Command, tool: ToolProposal) -> int:
    """How long the gate of a proposal stays open; at most as long as the session's gates."""
    most = session_seconds(room, command)
    wanted = tool.gate_seconds
    if wanted is None or (most != NEVER and wanted == NEVER):
        return most
    return wanted if most == NEVER else min(wanted, most)


def resolution_of_time(
    room: Room, resolution: GateResolution, tool: ToolProposal | None = None
) -> GateResolution:
    """A time that an agent chose always rejects: silence must not approve what it asked for."""
    by_agent = room.gate_seconds_by_agent or (tool is not None and tool.gate_seconds is not None)
    return GateResolution.REJECTED if by_agent else resolution


# Opening


def with_remark(request: GateRequest, remark: str) -> GateRequest:
    """Tell readers what stands in the way of this gate (OPEN-15)."""
    if not remark:
        return request
    remark = f" ({remark[: MAX_REMARK_LENGTH - 3]})"
    own = request.message[: MAX_MESSAGE_LENGTH - len(remark)]
    return replace(request, message=own + remark)


def opening_remark(room: Room, ballot: Ballot, fork: str | None) -> str:
    """What the present members cannot meet, and whom the policy leaves out as absent."""
    voters = room.voters(fork)
    if unmeetable := ballots.unmeetable_rules(ballot, voters):
        voterless = not ballots.eligible_voters(ballot, voters)
        return NO_APPROVER_REMARK if voterless else f"cannot be met yet: {'; '.join(unmeetable)}"
    skipped = skipped_voters(room, ballot, fork)
    return f"left out as absent: {room.people(skipped)}" if skipped else ""


def skipped_voters(room: Room, ballot: Ballot, fork: str | None) -> tuple[str, ...]:
    """Members whom the session's policy does not wait for at this gate (OPEN-18)."""
    if not room.skips_absent or not ballots.counts_electorate(ballot.quorum):
        return ()
    return tuple(sorted(ballots.skipped_voters(ballot, room.voters(fork))))


def open_gate(
    room: Room,
    command: Command,
    request: GateRequest,
    initiator: str,
    on_timeout: GateResolution,
    fork: str | None = None,
) -> GateOpened:
    """A new gate; its electorate is the voters of the room, or of the fork, at this moment."""
    voters = room.voters(fork)
    solo = initiator in voters and len(voters) == 1
    barred = frozenset() if solo else frozenset({initiator})
    ballot = ballots.fix_electorate(Ballot(quorum=request.quorum, barred=barred), voters)
    request = with_remark(request, opening_remark(room, ballot, fork))
    timeout_ms = request.timeout_seconds * MS_PER_SECOND
    return GateOpened(
        said=request,
        ref=request.action_ref,
        initiator=initiator,
        barred=barred,
        roll=ballot.roll,
        expires_at=command.at + timeout_ms if timeout_ms else None,
        on_timeout=on_timeout,
        solo=solo,
        fork=fork,
    )


def open_tool_gate(
    room: Room, command: Command, tool: ToolProposal, categories: frozenset[Category]
) -> GateOpened:
    """The gate of a tool proposal, with the session's default quorum and the server's timeout.

    `categories` are all that the tool may belong to; the strictest counts. What the decision kernel
    says goes into a field of its own, so that no tool name or description can imitate it.
    """
    never_auto = tool.risk in ALWAYS_GATED_RISKS or bool(categories & NEVER_AUTO_CATEGORIES)
    request = GateRequest(
        action_type="deploy" if Category.DEPLOY in categories else "tool",
        action_ref=tool.id,
        quorum=room.session_config.default_gate_quorum,
        timeout_seconds=tool_seconds(room, command, tool),
        message=f"{room.person(tool.agent)} wants to run {tool.name}: {tool.description}"[
            :MAX_MESSAGE_LENGTH
        ],
        decision=decision_binding.standing_of(room, tool),
    )
    resolution = resolution_of_time(room, timeout_resolution(command, never_auto=never_auto), tool)
    return open_gate(room, command, request, tool.agent, resolution, tool.fork)


def timeout_resolution(command: Command, *, never_auto: bool) -> GateResolution:
    """The server's timeout policy; approval by timeout only where that is allowed."""
    resolution: GateResolution = command.policy.on_gate_timeout
    forbidden = never_auto and resolution is GateResolution.AUTO_APPROVED
    return GateResolution.REJECTED if forbidden else resolution


def request_gate(room: Room, command: Command, body: GateRequest) -> Iterator[Event]:
    """A gate that a member requests on a pending action of its own."""
    member_id, action = command.actor.principal, command.cited_records[body.action_ref]
    if body.decision is not None:
        raise Refused(Reason.MALFORMED, "Leave out `decision`; the server fills it in")
    if action.sender != member_id:
        raise Refused(Reason.FORBIDDEN, "You can request a gate only for an action of your own")
    if action.fork is not None:
        check_fork_open(room, command, action.fork)
    check_same_fork(command, action.id, action.fork)
    if gate_on_action(room, body.action_ref):
        raise Refused(Reason.WRONG_STATE, f"{body.action_ref} already has an open gate")
    if outcome_of(room, body.action_ref, member_id) or body.action_ref in room.tools:
        raise Refused(Reason.WRONG_STATE, f"{body.action_ref} is no longer pending")
    if len(room.gates) >= (max_gates := command.policy.limits.gates):
        detail = f"{max_gates} gates are open, the most a session may have; close one first"
        raise limit_exceeded("gates", max_gates, detail)
    config = room.session_config
    check_quorum(room, command, body.quorum, config.max_participants, room.workspace)
    never_auto = body.action_type in NEVER_AUTO_ACTION_TYPES
    resolution = timeout_resolution(command, never_auto=never_auto)
    if room.members[member_id].kind is Kind.AGENT:  # a time that an agent chose
        resolution = GateResolution.REJECTED
    yield open_gate(room, command, body, member_id, resolution, action.fork)


# Finding


def find_gate(room: Room, command: Command, name: str) -> Gate:
    """The open gate with this id, or on this action (OPEN-19); else the one that `ref` names.

    Gates of a fork do not exist for members outside it.
    """
    member_id = command.actor.principal
    for id in filter(None, (name, command.message.ref)):
        gate = room.gates.get(id) or gate_on_action(room, id)
        if gate is not None and member_id in room.members_in(gate.fork):
            check_same_fork(command, id, gate.fork)
            return gate
        if outcome := outcome_of(room, id, member_id):
            raise Refused(Reason.WRONG_STATE, f"{id} is already closed: {outcome}")
        tool = room.tools.get(id)
        if gate is None and tool is not None and member_id in room.members_in(tool.fork):
            hold = None if tool.grant else decision_binding.hold_of(room, tool)
            status = hold.sentence if hold else "needs no approval"
            raise Refused(Reason.WRONG_STATE, f"{id} {status}")
    raise Refused(Reason.NOT_FOUND, f"There is no open gate {name}")


def gate_on_action(room: Room, action: str) -> Gate | None:
    return next((gate for gate in room.gates.values() if gate.action == action), None)


# Folding


def on_opened(room: Room, event: GateOpened, record: Record) -> Room:
    request = event.said
    gate = Gate(
        id=record.id,
        action_type=request.action_type,
        action=request.action_ref,
        initiator=event.initiator,
        ballot=Ballot(request.quorum, event.barred, event.roll, enrolled=bool(event.roll)),
        message=request.message,
        timeout_seconds=request.timeout_seconds,
        opened_at=record.at,
        expires_at=event.expires_at,
        on_timeout=event.on_timeout,
        solo=event.solo,
        fork=record.fork,
    )
    return replace(room, gates={**room.gates, gate.id: gate})


def ended_gate(
    room: Room,
    gate: Gate,
    outcome: GateOutcome,
    at: Instant,
    by: tuple[str, ...] = (),
    reason: str = "",
) -> EndedGate:
    """How this gate ended."""
    tool = room.tools.get(gate.action)
    return EndedGate(
        id=gate.id,
        action_type=gate.action_type,
        action=gate.action,
        initiator=gate.initiator,
        outcome=outcome,
        at=at,
        tool_name=tool.name if tool else "",
        by=by,
        reason=reason[:MAX_REASON_LENGTH],
        fork=gate.fork,
    )


def close_gate(
    room: Room, gate: Gate, outcome: str, ended: EndedGate, *, ends_action: bool
) -> Room:
    """Close a gate; with `ends_action`, its proposal or merge ends with it."""
    ids = (gate.id, gate.action) if ends_action else (gate.id,)
    outcomes = {outcome_key(gate.fork, id): outcome for id in ids}
    kept = list(room.ended_gates.items())[-(MAX_ENDED_GATES - 1) :]
    room = replace(
        room,
        gates=without_keys(room.gates, gate.id),
        ended_gates={**dict(kept), gate.id: ended},
        past=remember_outcomes(room.past, outcomes),
    )
    if not ends_action:
        return room
    tools, merges = without_keys(room.tools, gate.action), without_keys(room.merges, gate.action)
    return replace(room, tools=tools, merges=merges)


# The categories of a tool by its name, in case its proposer declares a harmless one


def possible_categories(name: str, category: Category) -> frozenset[Category]:
    """The declared category, and those that the tool's name suggests."""
    names = (name, *name.split()[:1])
    return frozenset(
        {category, *(CATEGORY_BY_TOOL_NAME.get(normalize_tool_name(n), category) for n in names)}
    )


def normalize_tool_name(name: str) -> str:
    """A tool's name without path, `.exe`, case and lookalike characters that could disguise it."""
    letters = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(c for c in letters if c.isprintable() and not c.isspace())
    return re.split(r"[/\\]", visible.rstrip("/\\"))[-1].removesuffix(".exe")


DECIDE: Deciders = {GateRequest: request_gate}
EVOLVE: Evolvers = {GateOpened: on_opened}
