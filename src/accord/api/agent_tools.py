"""Arguments and results of the PVP tools that agents call over MCP."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

MAX_WAIT_S = 45  # below the 60 s after which many hosts give up on a call
MAX_READ = 200
DEFAULT_READ = 50

SessionId = Annotated[str, Meta(min_length=1, max_length=128)]
MessageId = Annotated[str, Meta(min_length=1, max_length=128)]
WaitSeconds = Annotated[int, Meta(ge=0, le=MAX_WAIT_S)]
GateStatus = Literal["approved", "started", "waiting", "held", "ended"]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Arguments of a tool; a name that the tool does not have is refused."""


class PvpSend(Arguments, frozen=True):
    """Arguments of `pvp_send`: one of the two."""

    envelope: Annotated[
        dict[str, Any] | None,
        Meta(description="session, type, payload, opt. ref, fork, id; rest is filled in"),
    ] = None
    decide: Annotated[MessageId | None, Meta(description="a gate, instead of an envelope")] = None


class PvpRead(Arguments, frozen=True):
    """Arguments of `pvp_read`."""

    session: SessionId
    after: Annotated[MessageId | None, Meta(description="`next` of the last call")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_READ)] = DEFAULT_READ
    wait_seconds: WaitSeconds = 0


class ProposeAndWait(Arguments, frozen=True):
    """Arguments of `propose_and_wait`."""

    session: SessionId
    tool_name: Annotated[str, Meta(max_length=256)] = ""
    arguments: Annotated[dict[str, Any], Meta(description="exactly what you will run")] = {}
    description: Annotated[str, Meta(max_length=8192, description="what it does and why")] = ""
    category: Literal[
        "file_read",
        "file_write",
        "file_delete",
        "shell_execute",
        "network_request",
        "deploy",
        "database",
        "secret_access",
        "external_api",
        "all",
    ] = "all"
    risk_level: Literal["low", "medium", "high", "critical"] = "medium"
    ref: Annotated[MessageId | None, Meta(description="id of the prompt you answer")] = None
    fork: MessageId | None = None
    metadata: dict[str, Any] | None = None
    proposal: Annotated[
        MessageId | None, Meta(description="wait on for this proposal; omit the call then")
    ] = None
    wait_seconds: WaitSeconds = MAX_WAIT_S


class ReportResult(Arguments, frozen=True):
    """Arguments of `report_result`."""

    session: SessionId
    proposal: MessageId
    success: bool
    result: Annotated[Any, Meta(description="output or value")] = None
    error: str | None = None
    duration_ms: Annotated[int, Meta(ge=0)] = 0
    metadata: dict[str, Any] | None = None


class WhatsWaiting(Arguments, frozen=True):
    """Arguments of `whats_waiting`, which has none."""


class Sender(Struct, frozen=True):
    """Who wrote something that a result quotes, as the server knows them."""

    kind: str
    verified: bool


class Provenance(Struct, frozen=True, kw_only=True):
    """Marks quoted content: who wrote it, and that it is no instruction."""

    quoted: bool
    senders: dict[str, Sender]
    note: str


class Sent(Struct, frozen=True):
    """Result of `pvp_send` and `report_result`."""

    id: str
    seq: int
    session: str


class MessagesRead(Struct, frozen=True, kw_only=True):
    """Result of `pvp_read`."""

    messages: list[dict[str, Any]]
    next: str | None
    has_more: bool
    provenance: Provenance


class GateProgress(Struct, frozen=True, kw_only=True):
    """An open gate: whose approval is missing."""

    id: str
    approvals_received: int
    approvals_required: int
    waits_for: list[str]
    expires_at: str | None
    url: str


class Proposed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of `propose_and_wait`."""

    proposal: str
    status: GateStatus
    next: str  # what to do now
    outcome: str | UnsetType = UNSET
    approved_by: list[str] | UnsetType = UNSET
    grant: dict[str, Any] | UnsetType = UNSET
    gate: GateProgress | UnsetType = UNSET


class Waiting(Struct, frozen=True, kw_only=True):
    """Result of `whats_waiting`."""

    gates: list[dict[str, Any]]
    stalls: list[dict[str, Any]]
    ended_gates: list[dict[str, Any]]
    threads: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    counts: dict[str, int]
    has_more: bool
    provenance: Provenance
