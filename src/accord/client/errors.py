"""Everything that can go wrong, as a client tells it."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The root of all that this package raises."""


class ServerRefused(ClientError):  # noqa: N818 - an answer, not a fault
    """A message was not accepted and changed nothing; `message` says why, for a person.

    `status` is that of HTTP, where it was asked so.
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


class Rejected(ClientError):  # noqa: N818 - an answer, not a fault
    """A proposal will not run: somebody said no (`by`), or nobody said yes in time."""

    def __init__(self, proposal: str, reason: str, by: str) -> None:
        super().__init__(f"{proposal} was rejected by {by}: {reason}")
        self.proposal = proposal
        self.reason = reason
        self.by = by


class SessionOver(ClientError):  # noqa: N818 - an end, not a fault
    """Nothing more can be said or heard in this session: it ended, or one has left it."""


class Closed(ClientError):  # noqa: N818 - an end, not a fault
    """The client was closed."""


class GaveUp(ClientError):  # noqa: N818 - a decision, not a fault
    """The connection is gone and trying again would not help."""


class Unreachable(GaveUp):
    """Nothing that speaks PVP answers at the address; `passing` where that may be for now."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class SignedOut(GaveUp):
    """The server does not take the token, or not any more."""


class Replaced(GaveUp):
    """A newer connection of the same runtime has taken this one's place."""
