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
from .web import Detail, Page, Person, Proposal, Question, Summary

__all__ = [
    "Accepted",
    "Client",
    "ClientError",
    "Closed",
    "Detail",
    "Draft",
    "Envelope",
    "GaveUp",
    "Page",
    "Person",
    "Proposal",
    "Question",
    "Rejected",
    "Replaced",
    "Response",
    "Retry",
    "ServerRefused",
    "Session",
    "SessionOver",
    "SignedOut",
    "Summary",
    "Thinking",
    "Unreachable",
    "usual_config",
]
