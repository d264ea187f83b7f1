"""A room: members, open gates, tools and streams. Things that end; history is on the log."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from accord.core.kernel.authority import Capabilities, Kind, May, Roles, Verbs, verbs
from accord.core.kernel.ballot import Ballot, Quorum, Voter, Voters
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Instant
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.rulings import Judge
from accord.core.room.fields import Seconds, Short, Visibility

Thing = TypeVar("Thing")


class Category(StrEnum):
    """Tool categories of PVP 6.2."""

    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    FILE_DELETE = "file_delete"
    SHELL_EXECUTE = "shell_execute"
    NETWORK_REQUEST = "network_request"
    DEPLOY = "deploy"
    DATABASE = "database"
    SECRET_ACCESS = "secret_access"  # noqa: S105 - the name of a category
    EXTERNAL_API = "external_api"
    ALL = "all"


class Risk(StrEnum):
    """How much harm a tool could do, as its proposer sees it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Presence(StrEnum):
    """Whether a member is there (PVP 8.2)."""

    ACTIVE = "active"
    IDLE = "idle"
    AWAY = "away"
    DISCONNECTED = "disconnected"


# OPEN-18: the two that a timeout policy is about.
ABSENT = frozenset({Presence.AWAY, Presence.DISCONNECTED})


class OnTimeout(StrEnum):
    """What becomes of open gates when a member is absent (OPEN-18)."""

    WAIT = "wait"
    SKIP = "skip"
    PAUSE_SESSION = "pause_session"


class Resolution(StrEnum):
    """How a gate ends that nobody passed in time (PVP 14.3)."""

    REJECTED = "rejected"
    AUTO_APPROVED = "auto_approved"
    ESCALATED = "escalated"


class SessionConfig(msgspec.Struct, frozen=True, gc=False):
    """PVP 6.2: all nine are required."""

    require_approval_for: Annotated[tuple[Category, ...], Meta(max_length=64)]
    default_gate_quorum: Quorum
    allow_forks: bool
    max_participants: Annotated[int, Meta(ge=1, le=10_000)]
    ordering_mode: Literal["causal", "total"]
    on_participant_timeout: OnTimeout
    heartbeat_interval_seconds: Seconds
    idle_timeout_seconds: Seconds
    away_timeout_seconds: Seconds


class House(msgspec.Struct, frozen=True):
    """The operator's rules, the same for every room of a server."""

    gate_seconds: int = 300  # OPEN-23
    on_gate_timeout: Resolution = Resolution.REJECTED
    grant_seconds: int = 3600
    grace_seconds: int = 300  # UNI-23
    limits: Limits = Limits()
    judge: Judge | None = None  # the kernel that rules on decisions


class Member(msgspec.Struct, frozen=True):
    """Somebody in the room. `settled` roles were given by the room and outlive a rejoin."""

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
    left: int = 0  # a former member: the version at which they went
    settled: bool = False
    fork: str | None = None
    may: Verbs = frozenset()

    def with_verbs(self) -> "Member":
        """The same member with `may` as kind, roles and capabilities imply."""
        return msgspec.structs.replace(self, may=verbs(self.kind, self.roles, self.capabilities))

    @property
    def votes(self) -> bool:
        """OPEN-12: only a human's approval counts."""
        return self.kind is Kind.HUMAN and May.APPROVE in self.may

    @property
    def voter(self) -> Voter:
        """This member as a ballot sees them."""
        return Voter(self.roles, self.labels, here=self.presence not in ABSENT)


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Leave to run exactly one proposal, once, until it expires."""

    id: str
    digest: str
    expires_at: str


class Tool(msgspec.Struct, frozen=True):
    """A proposal that is not finished. It may run when it has a grant."""

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


class Run(msgspec.Struct, frozen=True):
    """A step of a decision that was run here, and ended well; `tier` is what that shows."""

    id: str
    batch: str
    item: str
    step: str
    tier: str
    fork: str | None = None


class Gate(msgspec.Struct, frozen=True):
    """An open question to those who may approve."""

    id: str
    action_type: str
    action: str
    initiator: str
    ballot: Ballot
    message: str
    timeout_seconds: int
    opened_at: Instant
    expires_at: Instant | None
    on_timeout: Resolution = Resolution.REJECTED
    solo: bool = False  # OPEN-14: the initiator's own approval counts, and is flagged
    fork: str | None = None


class Stream(msgspec.Struct, frozen=True, gc=False):
    """An answer, or the thinking before it, being written."""

    id: str
    agent: str
    prompt: str
    thinking: bool = False
    visible_to: Visibility = "all"
    fork: str | None = None


class ContentRef(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Content that is kept elsewhere, known by its hash (PVP 9.2)."""

    hash: Annotated[str, Meta(min_length=1, max_length=128)]
    size_bytes: Annotated[int, Meta(ge=0)]
    mime_type: Annotated[str, Meta(min_length=1, max_length=256)]
    storage: Literal["inline", "local", "s3", "ipfs"]
    uri: Short | None = None


class Item(msgspec.Struct, frozen=True):
    """Something on the shelf. `changed` is the version at which it last did."""

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
    """A secret without its value."""

    key: str
    scope: frozenset[str]
    sharer: str
    announced: str
    said: dict[str, Any]
    expires_at: Instant | None = None


class Urgency(StrEnum):
    """How much an interrupt asks for (PVP 15.1)."""

    PAUSE = "pause"
    STOP = "stop"
    EMERGENCY = "emergency"


class Interrupt(msgspec.Struct, frozen=True):
    """An interrupt that some agents have not answered."""

    id: str
    urgency: Urgency
    waiting: frozenset[str]
    due: Instant


class Strategy(StrEnum):
    """How a fork comes back (PVP 16.3)."""

    REPLACE = "replace"
    APPEND = "append"
    INTERLEAVE = "interleave"
    MANUAL = "manual"


class Fork(msgspec.Struct, frozen=True):
    """A branch of the conversation. `base` is the version at which it left its parent."""

    id: str
    name: str
    parent: str | None
    from_point: str
    members: frozenset[str]
    readers: frozenset[str]
    created_by: str
    created_at: Instant
    base: int
    merged: bool = False
    into: str | None = None
    strategy: Strategy | None = None


class Merge(msgspec.Struct, frozen=True):
    """A merge that was proposed and not done yet."""

    id: str
    source: str
    target: str | None
    strategy: Strategy
    gated: bool


class Lane(msgspec.Struct, frozen=True):
    """A feature of the repository's pact: its branch, and the tasks that nobody accepted yet."""

    feature: str
    branch: str
    open: tuple[str, ...] = ()
    shipped: bool = False


class Pact(msgspec.Struct, frozen=True):
    """What the pact of the session's repository says of merges.

    `trouble`: why there may be work in it that nobody here knows of.
    """

    repo: str
    lanes: tuple[Lane, ...] = ()
    trouble: str = ""


class Room(msgspec.Struct, frozen=True):
    """Everything a room's rules read."""

    id: str
    name: str = ""
    workspace: str = ""
    config: SessionConfig | None = None
    created_at: Instant = 0
    created_by: str = ""
    members: Mapping[str, Member] = {}
    former: Mapping[str, Member] = {}
    gates: Mapping[str, Gate] = {}
    tools: Mapping[str, Tool] = {}
    streams: Mapping[str, Stream] = {}
    shelf: Mapping[str, Mapping[str, Item]] = {}
    removed: Mapping[str, Mapping[str, int]] = {}
    buried: Mapping[str, Mapping[str, str]] = {}  # which item it was that was removed
    secrets: Mapping[str, SharedSecret] = {}
    interrupts: Mapping[str, Interrupt] = {}
    halted: Mapping[str, str] = {}
    forks: Mapping[str, Fork] = {}
    merges: Mapping[str, Merge] = {}
    pact: Pact | None = None  # that is shown here
    pacts: Mapping[str, Pact] = {}  # that were ever heeded here, each as it was last known
    answered: Mapping[str, str] = {}
    past: Mapping[str, str] = {}
    runs: Mapping[str, Run] = {}
    paused_at: Instant | None = None
    ended: str = ""

    @property
    def exists(self) -> bool:
        """Whether the room was created at all."""
        return self.config is not None

    @property
    def rules(self) -> SessionConfig:
        """The configuration of a room that exists."""
        if self.config is None:
            raise Refused(Why.NO_ROOM, f"There is no session {self.id}")
        return self.config

    @property
    def skips_absent(self) -> bool:
        """Whether absent people are left out of open gates (OPEN-18)."""
        return self.rules.on_participant_timeout is OnTimeout.SKIP

    def seats(self, fork: str | None) -> frozenset[str]:
        """Who is in a fork; in the trunk that is everybody."""
        here = frozenset(self.members)
        return here if fork is None else here & self.forks[fork].members

    def readers(self, fork: str) -> frozenset[str]:
        """Who may read what was said in a fork; once merged, those who read its target, too."""
        found = self.forks.get(fork)
        if found is None:
            return frozenset()
        if not found.merged:
            return found.readers
        target = self.members if found.into is None else self.readers(found.into)
        return found.readers.union(target)

    def voters(self, fork: str | None = None) -> Voters:
        """The humans who may approve now, in a fork those who are in it (OPEN-47)."""
        here = self.members if fork is None else self.seats(fork)
        return {seat: self.members[seat].voter for seat in here if self.members[seat].votes}


def sees(item: Item, seat: str) -> bool:
    """Those named see an item, and its author always (OPEN-39)."""
    return item.visible_to is None or seat in item.visible_to or seat == item.author


def without(mapping: Mapping[str, Thing], *keys: str) -> dict[str, Thing]:
    """The mapping less these keys."""
    return {key: value for key, value in mapping.items() if key not in keys}
