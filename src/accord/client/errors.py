"""Exceptions raised by the client."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """Base class of every exception raised by this package."""


class ServerRefused(ClientError):  # noqa: N818 - a response, not a fault
    """The server refused a message or request and changed nothing; `message` explains why.

    `status` is the HTTP status, or 0 for a message sent over the WebSocket.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool = True,
        details: Mapping[str, Any] | None = None,
        status: int = 0,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.recoverable = recoverable
        self.details = details or {}
        self.status = status


class Rejected(ClientError):  # noqa: N818 - a response, not a fault
    """A proposal will not run: `by` rejected it, or its gate timed out."""

    def __init__(self, proposal: str, reason: str, by: str) -> None:
        super().__init__(f"{proposal} was rejected by {by}: {reason}")
        self.proposal = proposal
        self.reason = reason
        self.by = by


class SessionOver(ClientError):  # noqa: N818 - an end, not a fault
    """The session has ended or this member left it; it neither sends nor receives any more."""


class Closed(ClientError):  # noqa: N818 - an end, not a fault
    """The client was closed."""


class ConnectionFailed(ClientError):  # noqa: N818 - the end of retrying
    """The connection is lost for a reason that a retry would not change."""


class Unreachable(ConnectionFailed):
    """The server did not respond, or is not a PVP server; `transient` if a retry may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class SignedOut(ConnectionFailed):
    """The server refused the token, or stopped accepting it."""


class Replaced(ConnectionFailed):
    """A newer connection of the same runtime replaced this one."""
