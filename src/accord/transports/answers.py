"""The shapes of answers over HTTP, as programs are told of them; the views make the values."""

from typing import Any

from msgspec import Struct

from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.ballot import Lack, Quorum
from accord.core.room.state import Category, ContentRef, Presence, Risk, SessionConfig, Strategy
from accord.transports.identity import PublicKey
from accord.transports.operator import Listed


class Exact(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An object with these fields and no others."""


class Received(Exact, frozen=True):
    """Stands for an envelope as the server sends it; the schema of PVP says the rest."""


class Summary(Exact, frozen=True):
    """A session in a listing; `standing` is what you are to it."""

    id: str
    name: str
    status: str
    created_at: str
    created_by: str
    participants: int
    open_gates: int
    held: int
    standing: str | None
    lost: bool


class Person(Exact, frozen=True):
    """A member."""

    id: str
    name: str
    type: str
    roles: list[Role]
    capabilities: list[Capability]
    presence: Presence


class GateAsked(Exact, frozen=True):
    """What a gate was opened for."""

    action_type: str
    action_ref: str
    quorum: Quorum
    timeout_seconds: int | None
    message: str | None


class Ruled(Exact, frozen=True):
    """What the rules say of a step; `table` compares those who judged it, where several did."""

    batch: str
    item: str
    step: str
    verdict: str
    state: str
    confidence: str
    sha256: str
    convergence: str | None
    judges: list[str]
    table: str


class Held(Exact, frozen=True):
    """Why nobody is asked about a proposal yet, and until when."""

    batch: str
    item: str
    step: str
    why: str
    until: str


class Proposal(Exact, frozen=True):
    """A proposal that is not finished; what a decision says of it, and whether that holds it."""

    id: str
    agent: str
    tool_name: str
    arguments: dict[str, Any]
    category: Category
    risk_level: Risk
    description: str
    approved: bool
    decision: Ruled | None
    held: Held | None
    fork: str | None


class OpenGate(Exact, frozen=True):
    """An open gate, and how far it is."""

    id: str
    request: GateAsked
    initiator: str
    approvals: list[str]
    rejections: list[str]
    approvals_received: int
    approvals_required: int
    lacks: list[Lack]
    created_at: str
    expires_at: str | None
    action: Proposal | None
    fork: str | None


class Branch(Exact, frozen=True):
    """A fork."""

    id: str
    name: str
    parent: str | None
    from_point: str
    members: list[str]
    created_by: str
    created_at: str
    merged: bool
    into: str | None


class OpenMerge(Exact, frozen=True):
    """A merge that is still to be done."""

    id: str
    source: str
    target: str | None
    strategy: Strategy
    gated: bool


class Shelved(Exact, frozen=True):
    """An item of the context, without what stands in it."""

    key: str
    fork: str | None
    content_type: str
    author: str
    visible_to: list[str] | None
    source: str | None
    tags: list[str]


class Item(Shelved, frozen=True):
    """An item of the context."""

    content: str | dict[str, Any] | None
    content_ref: ContentRef | None


class Detail(Summary, frozen=True):
    """A session as it stands."""

    config: SessionConfig
    members: list[Person]
    gates: list[OpenGate]
    tools: list[Proposal]
    forks: list[Branch]
    merges: list[OpenMerge]
    context: list[Shelved]
    halted: dict[str, str]


class Sessions(Exact, frozen=True):
    """Sessions, newest first."""

    sessions: list[Summary]
    has_more: bool


class Posted(Exact, frozen=True):
    """Where a message stands; `seq` is 0 for what is relayed and not kept."""

    id: str
    seq: int
    session: str


class Messages(Exact, frozen=True):
    """What was said; ask again with `after` set to `next`."""

    messages: list[Received]
    next: str | None
    has_more: bool


class Transcript(Exact, frozen=True):
    """What was said; ask again with `after` set to `next`."""

    messages: list[Received]
    next: int
    has_more: bool


class Tokens(Exact, frozen=True):
    """Tokens that have not expired."""

    tokens: list[Listed]


class Keys(Exact, frozen=True):
    """Public keys, oldest first."""

    keys: list[PublicKey]


class Trouble(Exact, frozen=True):
    """What went wrong: a code for programs, a sentence for people."""

    code: str
    message: str
    details: dict[str, Any] = {}


class Refusal(Exact, frozen=True):
    """A request that was refused changed nothing."""

    error: Trouble


class StatementSignature(Exact, frozen=True):
    """A signature over the DSSE encoding of the payload, in base64."""

    keyid: str
    sig: str


class SignedStatement(Exact, frozen=True):
    """A DSSE envelope around an in-toto statement."""

    payloadType: str  # noqa: N815 - DSSE's name
    payload: str
    signatures: tuple[StatementSignature, ...]
