"""The state of a room: members, open gates, proposals and streams. History is in the log."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta

from accord.core.kernel.ballot import Ballot, Voter, Voters
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import (
    Capabilities,
    Kind,
    Permission,
    Permissions,
    Roles,
    permissions_for,
)
from accord.core.room.discussion import Discussion
from accord.core.room.field_types import ShortText, Visibility
from accord.core.room.forking.fork_state import Fork, Merge, PactSummary
from accord.core.room.room_settings import AbsencePolicy, Category, GateResolution, SessionConfig

Value = TypeVar("Value")
MAX_SHOWN_NAME = 60
MAX_ANSWERS_READ = 32


class Risk(StrEnum):
    """How much harm a tool could do, by its proposer's estimate."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Presence(StrEnum):
    """Whether a member is reachable (PVP 8.2)."""

    ACTIVE = "active"
    IDLE = "idle"
    AWAY = "away"
    DISCONNECTED = "disconnected"


# OPEN-18: the two that count as absent for `on_participant_timeout`.
ABSENT_PRESENCES = frozenset({Presence.AWAY, Presence.DISCONNECTED})


class Member(msgspec.Struct, frozen=True):
    """A principal in the room. `settled`: the room assigned the roles, so they survive a rejoin."""

    id: str
    name: str
    kind: Kind
    roles: Roles
    capabilities: Capabilities = frozenset()
    labels: frozenset[str] = frozenset()
    transport: Literal["websocket", "mcp", "http", "stdio"] = "websocket"
    metadata: dict[str, Any] = {}
    announced: str = ""
    presence: Presence = Presence.ACTIVE
    since: Instant = 0
    left: int = 0  # for former members: the stream version at which they left
    removed_by: str = ""  # for former members: who removed them and did not let them back in yet
    settled: bool = False
    fork: str | None = None
    may: Permissions = frozenset()

    def with_permissions(self) -> "Member":
        """The same member with `may` derived from kind, roles and capabilities."""
        return msgspec.structs.replace(
            self, may=permissions_for(self.kind, self.roles, self.capabilities)
        )

    @property
    def can_vote(self) -> bool:
        """OPEN-12: only a human's approval counts."""
        return self.kind is Kind.HUMAN and Permission.APPROVE in self.may

    @property
    def voter(self) -> Voter:
        """This member as the ballot counts them."""
        return Voter(self.roles, self.labels, here=self.presence not in ABSENT_PRESENCES)


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Permission to run exactly one proposal, once, until it expires."""

    id: str
    digest: str
    expires_at: str


class CallSubject(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a call does, for patterns to match: a command's words, or a written file."""

    run: tuple[str, ...] = ()
    write: str = ""


class ComputedClass(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the server itself found a reported call to be.

    `policy` is the digest of the signed policy that it used, empty without one: then everything but
    a read is gated. `subjects` is empty if the call could not be taken apart completely.
    """

    category: Category
    risk: Risk
    explanation: str
    categories: tuple[Category, ...]
    repository: str
    policy: str = ""
    subjects: tuple[CallSubject, ...] = ()
    must_be_gated: bool = False


class StandingGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A member's vote for calls alike, until it is used up, over, or ended by an approver."""

    id: str
    grantor: str
    agent: str
    run: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    count: int
    used: int = 0
    created_at: Instant
    expires_at: Instant
    fork: str | None = None


class ToolProposal(msgspec.Struct, frozen=True):
    """A tool proposal that has not finished; it may run once it has a grant."""

    id: str
    agent: str
    name: str
    category: Category
    risk: Risk
    description: str
    arguments: dict[str, Any]
    prompt: str | None = None
    grant: Grant | None = None
    expires_at: Instant | None = None
    started: bool = False
    fork: str | None = None
    gate_seconds: int | None = None  # its own gate time; None: the session's
    option_of: str | None = None  # the first of the options that it belongs to
    computed: ComputedClass | None = None  # None: category and risk are the agent's own claim
    claimed: tuple[str, str] = ("", "")  # the category and risk that the agent named
    gated: bool = False  # a gate decides about it; without one it got its grant at once

    @property
    def used(self) -> bool:
        """Whether the agent has begun to use its grant."""
        return self.started


class TakenBack(msgspec.Struct, frozen=True, gc=False):
    """A grant that was taken back; one result of it is still accepted, as having run anyway."""

    agent: str
    grant: Grant
    fork: str | None = None


class StepRun(msgspec.Struct, frozen=True):
    """A successful run of a decision's step; `tier` is the strength of evidence it provides."""

    id: str
    batch: str
    item: str
    step: str
    tier: str
    fork: str | None = None


class Vote(msgspec.Struct, frozen=True, gc=False):
    """A member's yes on a gate, with what the member said."""

    by: str
    at: Instant
    comment: str = ""


class Gate(msgspec.Struct, frozen=True):
    """An open request for approval."""

    id: str
    action_type: str
    action: str
    initiator: str
    ballot: Ballot
    message: str
    timeout_seconds: int
    opened_at: Instant
    expires_at: Instant | None
    on_timeout: GateResolution = GateResolution.REJECTED
    solo: bool = False  # OPEN-14: the initiator's own approval counts, and is flagged
    fork: str | None = None
    notes: tuple[str, ...] = ()  # what changed since it opened, such as a voter's removal
    votes: tuple[Vote, ...] = ()  # in order; `ballot.yes` decides which of them count
    standing: Mapping[str, str] = {}  # who approved by a standing grant only, and by which


class GateOutcome(StrEnum):
    """How a gate ended."""

    APPROVED = "approved"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    AUTO_APPROVED = "auto_approved"  # by its timeout
    ESCALATED = "escalated"  # its timeout opened another gate
    SESSION_ENDED = "session_ended"


class EndedGate(msgspec.Struct, frozen=True):
    """A gate that has ended: how, when, and by whom (empty for a timeout).

    `taken_back`: a member took the approval back before it was used.
    """

    id: str
    action_type: str
    action: str
    initiator: str
    outcome: GateOutcome
    at: Instant
    tool_name: str = ""
    by: tuple[str, ...] = ()
    reason: str = ""
    fork: str | None = None
    taken_back: bool = False
    standing: tuple[str, ...] = ()  # those of `by` who approved by a standing grant


class AgentStream(msgspec.Struct, frozen=True, gc=False):
    """A response, or the thinking before it, while it is being streamed."""

    id: str
    agent: str
    prompt: str
    thinking: bool = False
    visible_to: Visibility = "all"
    fork: str | None = None


class ContentRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Content that is stored elsewhere, identified by its hash (PVP 9.2)."""

    hash: Annotated[str, Meta(min_length=1, max_length=128)]
    size_bytes: Annotated[int, Meta(ge=0)]
    mime_type: Annotated[str, Meta(min_length=1, max_length=256)]
    storage: Literal["inline", "local", "s3", "ipfs"]
    uri: ShortText | None = None


class ContextItem(msgspec.Struct, frozen=True):
    """A shared context item. `changed`: the stream version of its last change."""

    key: str
    content_type: str
    content: str | dict[str, Any] | None
    content_ref: ContentRef | None
    visible_to: frozenset[str] | None
    author: str
    source: str = ""
    tags: tuple[str, ...] = ()
    changed: int = 0
    announced: str = ""


class SharedSecret(msgspec.Struct, frozen=True):
    """A shared secret, without its value."""

    key: str
    scope: frozenset[str]
    sharer: str
    announced: str
    said: dict[str, Any]
    expires_at: Instant | None = None
    sharer_left: bool = False  # lost access, but may revoke it after a return


class Urgency(StrEnum):
    """How urgent an interrupt is (PVP 15.1)."""

    PAUSE = "pause"
    STOP = "stop"
    EMERGENCY = "emergency"


class Interrupt(msgspec.Struct, frozen=True):
    """An interrupt that some agents have not acknowledged yet."""

    id: str
    urgency: Urgency
    waiting: frozenset[str]
    due: Instant


class Room(msgspec.Struct, frozen=True):
    """Everything the rules of a room read."""

    id: str
    name: str = ""
    workspace: str = ""
    config: SessionConfig | None = None
    created_at: Instant = 0
    created_by: str = ""
    created_with: str = ""  # the id of the `session.create`
    gate_seconds: int | None = None  # of tool and merge gates; None: the server's default
    gate_seconds_by_agent: bool = False
    members: Mapping[str, Member] = {}
    former: Mapping[str, Member] = {}
    gates: Mapping[str, Gate] = {}
    ended_gates: Mapping[str, EndedGate] = {}  # the newest ones
    tools: Mapping[str, ToolProposal] = {}
    taken_back: Mapping[str, TakenBack] = {}
    standing_grants: Mapping[str, StandingGrant] = {}
    streams: Mapping[str, AgentStream] = {}
    shelf: Mapping[str, Mapping[str, ContextItem]] = {}
    removed: Mapping[str, Mapping[str, int]] = {}
    buried: Mapping[str, Mapping[str, str]] = {}  # the id of each removed item's announcement
    secrets: Mapping[str, SharedSecret] = {}
    interrupts: Mapping[str, Interrupt] = {}
    halted: Mapping[str, str] = {}
    forks: Mapping[str, Fork] = {}
    merges: Mapping[str, Merge] = {}
    pact: PactSummary | None = None  # the one whose tasks this session shows
    pacts: Mapping[str, PactSummary] = {}  # every pact that merges must respect, as last known
    answered: Mapping[str, str] = {}
    past: Mapping[str, str] = {}
    runs: Mapping[str, StepRun] = {}
    paused_at: Instant | None = None
    discussions: Mapping[str, Discussion] = {}  # by fork, what events left open
    ended: str = ""

    @property
    def exists(self) -> bool:
        """Whether the session was ever created."""
        return self.config is not None

    @property
    def session_config(self) -> SessionConfig:
        """The settings of a session that exists; raises Refused if it does not."""
        if self.config is None:
            raise Refused(Reason.NO_ROOM, f"There is no session {self.id}")
        return self.config

    @property
    def skips_absent(self) -> bool:
        """Whether absent members are not counted in open gates (OPEN-18)."""
        return self.session_config.on_participant_timeout is AbsencePolicy.SKIP

    @property
    def needs_attention(self) -> bool:
        """Whether anything is open or in force: a gate, a proposal, a standing grant, a stall."""
        if self.ended:
            return False
        is_open = bool(
            self.gates or self.tools or self.interrupts or self.halted or self.standing_grants
        )
        return is_open or self.paused_at is not None or bool(self.failed_agents)

    @property
    def failed_agents(self) -> list[str]:
        """Agents whose newest answer ended with an error, and who are not answering now."""
        newest: dict[str, str] = {}
        # Kept in the order in which they ended; looking further back would slow every message down.
        answers = reversed(cast("dict[str, str]", self.answered).items())
        for key, reason in islice(answers, MAX_ANSWERS_READ):
            newest.setdefault(key.partition("\n")[0], reason)
        busy = {stream.agent for stream in self.streams.values()}
        return sorted(
            agent
            for agent, reason in newest.items()
            if reason == "error" and agent in self.members and agent not in busy
        )

    @property
    def last_gate_ended_at(self) -> Instant:
        """When a gate last ended; 0 if none did."""
        return max((gate.at for gate in self.ended_gates.values()), default=0)

    def members_in(self, fork: str | None) -> frozenset[str]:
        """The members in a fork; on the trunk, all members."""
        everybody = frozenset(self.members)
        return everybody if fork is None else everybody & self.forks[fork].members

    def person(self, id: str) -> str:
        """The id that a credential proves and, beside it, the name that its owner chose.

        A name that differs from the id only in capitals says nothing new.
        """
        member = self.members.get(id) or self.former.get(id)
        name = shown_name(member.name) if member else ""
        return f"{id} ({name})" if name and name.casefold() != id.casefold() else id

    def people(self, ids: Iterable[str]) -> str:
        """Ids with names, separated by commas."""
        return ", ".join(map(self.person, ids))

    def readers(self, fork_id: str) -> frozenset[str]:
        """Who may read what was said in a fork; after a merge also the readers of its target."""
        fork = self.forks.get(fork_id)
        if fork is None:
            return frozenset()
        if not fork.merged:
            return fork.readers
        target = self.members if fork.into is None else self.readers(fork.into)
        return fork.readers.union(target)

    def voters(self, fork: str | None = None) -> Voters:
        """The humans who may approve now; in a fork only its members (OPEN-47)."""
        ids = self.members if fork is None else self.members_in(fork)
        return {id: self.members[id].voter for id in ids if self.members[id].can_vote}


def shown_name(name: str) -> str:
    """A chosen name for a sentence: short, and without what could end its parentheses or line."""
    plain = "".join(" " if c in "()" or not c.isprintable() else c for c in name)
    plain = " ".join(plain.split())
    return plain if len(plain) <= MAX_SHOWN_NAME else f"{plain[: MAX_SHOWN_NAME - 1]}…"


def can_see(item: ContextItem, member_id: str) -> bool:
    """Whether this member is among the named readers or is the author (OPEN-39)."""
    return item.visible_to is None or member_id in item.visible_to or member_id == item.author


def without_keys(mapping: Mapping[str, Value], *keys: str) -> dict[str, Value]:
    return {key: value for key, value in mapping.items() if key not in keys}
