"""Responses about sessions and messages, and errors; the views produce the values."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from accord.core.kernel.ballot import Lack, Quorum
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.room_settings import Category, SessionConfig
from accord.core.room.state import ContentRef, Presence, Risk

# An envelope as the server sends it, still encoded; PVP's schema defines it.
RECEIVED_ENVELOPE = "ReceivedEnvelope"
EncodedEnvelope = Annotated[
    Raw, Meta(extra_json_schema={"$ref": f"#/components/schemas/{RECEIVED_ENVELOPE}"})
]


class ResponseObject(Struct, frozen=True, kw_only=True):
    """An object of a response.

    A server sends exactly the declared fields, and OpenAPI says so. A client ignores fields that it
    does not know, because a newer server may send more.
    """


class SessionSummary(ResponseObject, frozen=True):
    """A session in a list; `standing` is your relation to it."""

    id: str
    name: str
    status: str
    created_at: str
    created_by: str
    participants: int
    open_gates: int
    held: int
    standing: str
    lost: bool


class SessionMember(ResponseObject, frozen=True):
    """A member of a session."""

    id: str
    name: str
    type: str
    roles: tuple[Role, ...]
    capabilities: tuple[Capability, ...]
    presence: Presence


class GateTerms(ResponseObject, frozen=True):
    """What a gate was opened for."""

    action_type: str
    action_ref: str
    quorum: Quorum
    timeout_seconds: int
    message: str


class DecisionRuling(ResponseObject, frozen=True):
    """The rules' verdict on a step; `table` compares the judgements if there are several."""

    batch: str
    item: str
    step: str
    verdict: str
    state: str
    confidence: str
    sha256: str
    convergence: str | None
    judges: tuple[str, ...]
    table: str


class ProposalHold(ResponseObject, frozen=True):
    """Why voting on a proposal has not started, and until when."""

    batch: str
    item: str
    step: str
    why: str
    until: str


class ComputedCall(ResponseObject, frozen=True):
    """What the server itself found a reported call to be; `policy` is the digest it used."""

    category: Category
    risk_level: Risk
    explanation: str
    repository: str
    policy: str | None
    claimed_category: Category
    claimed_risk_level: Risk


class StandingGrantSummary(ResponseObject, frozen=True):
    """A member's yes, given beforehand, to calls alike of one agent."""

    id: str
    grantor: str
    agent: str
    run: tuple[str, ...]
    write: tuple[str, ...]
    count: int
    used: int
    created_at: str
    expires_at: str
    people: dict[str, str]


class OpenProposal(ResponseObject, frozen=True):
    """An unfinished proposal, its ruling, and whether that holds it.

    `category` and `risk_level` are the proposer's own claim, unless the server computed them: then
    `computed` says what it found, and the claim can only have raised it. `approved` is also said of
    a call that needed no gate; one that is `gated` too has passed its gate. Where the arguments
    were too large for a list of gates they are omitted; the session has them.
    """

    id: str
    agent: str
    tool_name: str
    arguments: dict[str, Any]
    arguments_omitted: bool
    category: Category
    risk_level: Risk
    description: str
    approved: bool
    used: bool
    computed: ComputedCall | None
    decision: DecisionRuling | None
    held: ProposalHold | None
    fork: str | None
    gated: bool = False


class GateVote(ResponseObject, frozen=True):
    """An approval, and what was said with it."""

    by: str
    at: str
    comment: str


class GateRule(ResponseObject, frozen=True):
    """One rule of a quorum: `count` approvals; `candidates` could still give one."""

    rule: Quorum
    count: int
    approved: tuple[str, ...]
    candidates: tuple[str, ...]


class CallTarget(ResponseObject, frozen=True):
    """What a call would reach, as the server read it from the call or from the session."""

    kind: Literal["path", "host", "remote", "branch", "tree", "secret"]
    value: str
    source: Literal["call", "session"]
    detail: str


class GateOption(ResponseObject, frozen=True):
    """One of several proposals of which one is chosen, and its gate."""

    gate: str | None
    proposal: OpenProposal


class GateCard(ResponseObject, frozen=True):
    """An open gate in its session, with what you need to decide on it.

    `people` has the names of the ids in it. `standing` are those who approved by a standing grant.

    `after_my_yes` are the rules that your approval would leave unmet: none means that it is enough,
    null that it would not count. `options` has all proposals of which one is to be chosen, this one
    included.
    """

    id: str
    request: GateTerms
    initiator: str
    approvals: tuple[str, ...]
    standing: tuple[str, ...]
    rejections: tuple[str, ...]
    approvals_received: int
    approvals_required: int
    lacks: tuple[Lack, ...]
    waits_for: tuple[str, ...]
    created_at: str
    expires_at: str | None
    action: OpenProposal | None
    fork: str | None
    fork_name: str | None
    people: dict[str, str]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]
    unmeetable: tuple[str, ...]
    session: str
    session_name: str
    may_approve: bool
    may_reject: bool
    my_vote: Literal["approved"] | None
    votes: tuple[GateVote, ...]
    rules: tuple[GateRule, ...]
    after_my_yes: tuple[Lack, ...] | None
    targets: tuple[CallTarget, ...]
    options: tuple[GateOption, ...]
    presences: dict[str, Presence]


class SecretSummary(ResponseObject, frozen=True):
    """A secret that you shared or may use, without its value."""

    key: str
    sharer: str
    scope: tuple[str, ...]
    expires_at: str | None


class ForkSummary(ResponseObject, frozen=True):
    """A fork: where it began, who is in it, whether it was merged; else what a merge must resolve.

    `conflicts` are the keys that changed on both sides.
    """

    id: str
    name: str
    parent: str | None
    from_point: str
    members: tuple[str, ...]
    created_by: str
    created_at: str
    merged: bool
    into: str | None
    conflicts: tuple[str, ...] = ()


class OpenMerge(ResponseObject, frozen=True):
    """A merge that is not finished."""

    id: str
    source: str
    target: str | None
    strategy: MergeStrategy
    gated: bool
    head: str | None
    changed: str | None


class ContextItemSummary(ResponseObject, frozen=True):
    """A context item without its content."""

    key: str
    fork: str | None
    content_type: str
    author: str
    visible_to: tuple[str, ...] | None
    source: str
    tags: tuple[str, ...]


class ContextItemDetail(ContextItemSummary, frozen=True):
    """A context item with its content."""

    content: str | dict[str, Any] | None
    content_ref: ContentRef | None


class SessionDetail(SessionSummary, frozen=True):
    """The present state of a session, as far as the caller may see it."""

    config: SessionConfig
    gate_timeout_seconds: int | None
    members: tuple[SessionMember, ...]
    gates: tuple[GateCard, ...]
    tools: tuple[OpenProposal, ...]
    forks: tuple[ForkSummary, ...]
    merges: tuple[OpenMerge, ...]
    context: tuple[ContextItemSummary, ...]
    secrets: tuple[SecretSummary, ...]
    halted: dict[str, str]
    standing_grants: tuple[StandingGrantSummary, ...]
    unmeetable: tuple[str, ...]


class SessionList(ResponseObject, frozen=True):
    """Sessions, newest first."""

    sessions: tuple[SessionSummary, ...]
    has_more: bool


class MessageReceipt(ResponseObject, frozen=True):
    """Where a message was stored; `seq` is 0 for a signal, which is relayed but not stored."""

    id: str
    seq: int
    session: str


class MessageList(ResponseObject, frozen=True):
    """Messages; use `next` as `after` in the next request."""

    messages: tuple[EncodedEnvelope, ...]
    next: str | None
    has_more: bool


class TurnsPage(ResponseObject, frozen=True):
    """Messages of whole turns, with each stream of chunks as one; `first` is the next `before`.

    A chunk that stands for several has `folded` in its payload: the `seq` of the first, how many
    there were, and how many characters of output were left out. `last_id` is where to resume.
    """

    messages: tuple[EncodedEnvelope, ...]
    first: int
    last: int
    last_id: str | None
    has_more: bool


class TranscriptPage(ResponseObject, frozen=True):
    """Messages; use `next` as `after` in the next request."""

    messages: tuple[EncodedEnvelope, ...]
    next: int
    has_more: bool


class ErrorBody(ResponseObject, frozen=True):
    """An error: a code for programs, a message for people."""

    code: str
    message: str
    details: dict[str, Any] = {}


class ErrorResponse(ResponseObject, frozen=True):
    """A refused request; it changed nothing."""

    error: ErrorBody
