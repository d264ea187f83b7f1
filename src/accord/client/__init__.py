"""One typed client for everything that takes part: people's programs and agents alike."""

from .backoff import Retry
from .client import Client
from .config import usual_config
from .drafting import Draft
from .envelope import Envelope
from .errors import (
    ClientError,
    Closed,
    GaveUp,
    Rejected,
    Replaced,
    ServerRefused,
    SessionOver,
    SignedOut,
    Unreachable,
)
from .outbox import Accepted
from .response import Response, Thinking
from .session import Session
from .web import (
    Branch,
    Detail,
    Held,
    Joining,
    Opened,
    Page,
    Person,
    Proposal,
    Question,
    Ruled,
    Shelved,
    Summary,
)

__all__ = [
    "Accepted",
    "Branch",
    "Client",
    "ClientError",
    "Closed",
    "Detail",
    "Draft",
    "Envelope",
    "GaveUp",
    "Held",
    "Joining",
    "Opened",
    "Page",
    "Person",
    "Proposal",
    "Question",
    "Rejected",
    "Replaced",
    "Response",
    "Retry",
    "Ruled",
    "ServerRefused",
    "Session",
    "SessionOver",
    "Shelved",
    "SignedOut",
    "Summary",
    "Thinking",
    "Unreachable",
    "usual_config",
]
