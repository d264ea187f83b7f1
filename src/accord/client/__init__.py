"""The typed client used by people's programs and by agents."""

from accord.api.home import EndedGate, Home, SessionHome, Stall, ThreadHome
from accord.api.responses import (
    ContextItemDetail,
    ContextItemSummary,
    DecisionRuling,
    ForkSummary,
    GateCard,
    OpenMerge,
    OpenProposal,
    ProposalHold,
    SessionDetail,
    SessionMember,
    SessionSummary,
)
from accord.client.connection.backoff import RetryPolicy
from accord.client.connection.outbox import AcceptedMessage
from accord.client.http_reader import TranscriptPage
from accord.client.prompt_draft import Draft
from accord.client.response_stream import Response, Thinking
from accord.client.session_defaults import default_config

from .client import Client
from .envelope import Envelope
from .errors import (
    ClientError,
    Closed,
    ConnectionFailed,
    Rejected,
    Replaced,
    ServerRefused,
    SessionOver,
    SignedOut,
    Unreachable,
)
from .session import Session

__all__ = [
    "AcceptedMessage",
    "Client",
    "ClientError",
    "Closed",
    "ConnectionFailed",
    "ContextItemDetail",
    "ContextItemSummary",
    "DecisionRuling",
    "Draft",
    "EndedGate",
    "Envelope",
    "ForkSummary",
    "GateCard",
    "Home",
    "OpenMerge",
    "OpenProposal",
    "ProposalHold",
    "Rejected",
    "Replaced",
    "Response",
    "RetryPolicy",
    "ServerRefused",
    "Session",
    "SessionDetail",
    "SessionHome",
    "SessionMember",
    "SessionOver",
    "SessionSummary",
    "SignedOut",
    "Stall",
    "Thinking",
    "ThreadHome",
    "TranscriptPage",
    "Unreachable",
    "default_config",
]
