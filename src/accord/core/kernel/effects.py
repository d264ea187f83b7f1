"""What the engine does after a commit and may lose in a crash."""

from typing import NamedTuple

import msgspec

from accord.core.kernel.messages import Body, Failure, MemberIds


class Effect(msgspec.Struct, frozen=True):
    """Something to do after the commit; lost if the server crashes in between."""


class Relay(Effect, frozen=True):
    """Send to `to` (None: the whole room) without storing.

    A failure comes from the server; a body is relayed as its sender sent it.
    """

    body: Body | Failure
    to: MemberIds | None = None


class ServerNotice(Effect, frozen=True):
    """A message of the server itself that is sent and not stored."""

    body: Body
    to: MemberIds | None = None
    ref: str | None = None


class HoldSecret(Effect, frozen=True):
    """Keep a secret's value in memory for as long as the room has its key."""

    key: str
    value: str

    def __repr__(self) -> str:
        return f"HoldSecret(key={self.key!r}, value=…)"


class DropSecret(Effect, frozen=True):
    """Remove a secret's value from memory."""

    key: str


class ReplayedMessage(NamedTuple):
    """A current state or an earlier message, sent again to a member who joins or returns."""

    id: str
    sender: str
    body: Body
    secret_key: str | None = None  # key of the secret whose value is sent along
    after_replay: bool = (
        False  # sent after the missed records, because it describes the current state
    )
