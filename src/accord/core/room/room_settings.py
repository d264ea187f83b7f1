"""What is configured: the settings of a session, and the operator's for every session."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from accord.core.kernel.ballot import Quorum
from accord.core.kernel.decision_port import DecisionKernel
from accord.core.kernel.limits import Limits
from accord.core.kernel.role_permissions import Kind
from accord.core.room.field_types import Seconds

if TYPE_CHECKING:
    from accord.core.room.state import ComputedClass


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


class AbsencePolicy(StrEnum):
    """What happens to open gates while a member is absent (OPEN-18)."""

    WAIT = "wait"
    SKIP = "skip"
    PAUSE_SESSION = "pause_session"


class GateResolution(StrEnum):
    """How a gate ends that was not passed in time (PVP 14.3)."""

    REJECTED = "rejected"
    AUTO_APPROVED = "auto_approved"
    ESCALATED = "escalated"


class SessionConfig(msgspec.Struct, frozen=True, gc=False):
    """The settings of a session (PVP 6.2); all nine are required."""

    require_approval_for: Annotated[tuple[Category, ...], Meta(max_length=64)]
    default_gate_quorum: Quorum
    allow_forks: bool
    max_participants: Annotated[int, Meta(ge=1, le=10_000)]
    ordering_mode: Literal["causal", "total"]
    on_participant_timeout: AbsencePolicy
    heartbeat_interval_seconds: Seconds
    idle_timeout_seconds: Seconds
    away_timeout_seconds: Seconds


class Directory(Protocol):
    """Who the workspaces know: everybody who ever had a token or an invitation."""

    def kind_of(self, workspace: str, id: str) -> Kind | None:
        """The kind of this principal; None if the workspace has never seen it."""
        ...


class CallRules(Protocol):
    """Classes the calls that hooks and executors report, by the signed policy of a repository."""

    def judge(
        self, workspace: str, tool: str, arguments: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> "ComputedClass":
        """What a reported call is; Refused if it is malformed, or refused to agents outright."""
        ...


class ServerPolicy(msgspec.Struct, frozen=True):
    """The operator's settings, the same for every room of a server."""

    gate_seconds: int = 86_400  # of tool and merge gates, unless the session says otherwise
    on_gate_timeout: GateResolution = GateResolution.REJECTED
    grant_seconds: int = 3600
    grace_seconds: int = 300  # UNI-23
    silence_seconds: int = 900  # of an agent that was addressed, until thread and operators know
    wakes_per_hour: int = 12  # of one agent, over all threads
    # Without tokens (`--auth open`) ids are made up freely, so there an absence ends a membership.
    grace_ends_membership: bool = False
    limits: Limits = Limits()
    decision_kernel: DecisionKernel | None = (
        None  # rules on decisions; None if this server has none
    )
    call_rules: CallRules | None = None  # None: this server takes the agents' word
    directory: Directory | None = None  # None: without tokens, where any id may join
