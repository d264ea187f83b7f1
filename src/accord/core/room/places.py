"""Where something is said: on the trunk, or in a fork."""

from accord.core.kernel.authority import Kind
from accord.core.kernel.log import Ask
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.state import Room


def scope_of(fork: str | None) -> str:
    """The shelf of a fork; the trunk's has no name."""
    return fork or ""


def open_for(room: Room, ask: Ask, name: str) -> None:
    """Refuse what is said in a fork by outsiders, or after it was merged."""
    fork = room.forks.get(name)
    if fork is None or (ask.actor.kind is not Kind.SYSTEM and ask.actor.seat not in fork.members):
        raise Refused(Why.UNKNOWN, f"There is no fork {name} for you here")
    if fork.merged:
        raise Refused(Why.WRONG_STATE, f"The fork {name} was merged; it can only be read")


def check_place(ask: Ask, id: str, fork: str | None) -> None:
    """What is said about something is said where it is; leaving `fork` out is fine (OPEN-47)."""
    if ask.message.fork not in (None, fork):
        raise Refused(Why.WRONG_STATE, f"{id} is not in the fork {ask.message.fork}")
