"""What a member may see and cite: forks, the audience of a record, how things ended."""

from collections.abc import Mapping

from accord.core.kernel.context import Command
from accord.core.kernel.messages import MemberIds
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.state import Room

# Enough to tell a late vote from a mistaken one; older outcomes are forgotten.
MAX_OUTCOMES = 512


def scope_of(fork: str | None) -> str:
    """The key of a fork's context in `Room.shelf`; the trunk's is empty."""
    return fork or ""


def check_fork_open(room: Room, command: Command, name: str) -> None:
    """Refuse messages in a fork from outsiders, and all messages after its merge."""
    fork = room.forks.get(name)
    if fork is None or (
        command.actor.kind is not Kind.SYSTEM and command.actor.principal not in fork.members
    ):
        raise Refused(Reason.NOT_FOUND, f"There is no fork {name} that you are in")
    if fork.merged:
        raise Refused(Reason.WRONG_STATE, f"The fork {name} was merged and is read-only")


def check_same_fork(command: Command, id: str, fork: str | None) -> None:
    """Refuse a message that names the wrong fork; leaving `fork` out is fine (OPEN-47)."""
    if command.message.fork not in (None, fork):
        raise Refused(Reason.WRONG_STATE, f"{id} is not in the fork {command.message.fork}")


def lineage(room: Room, fork: str | None) -> tuple[str | None, ...]:
    """The fork and its ancestors, up to the trunk."""
    line = [fork]
    while (last := line[-1]) is not None:
        line.append(room.forks[last].parent)
    return tuple(line)


def record_audience(room: Room, record: Record) -> MemberIds | None:
    """The members who may see a record now; None for everybody in the room (UNI-12)."""
    if record.fork is None or record.event.room_wide:
        return record.to
    readers = room.readers(record.fork)
    return readers if record.to is None else readers & record.to


def is_open_reference(room: Room, id: str, member_id: str) -> bool:
    """Whether the state alone shows that this member may cite the id; else the log is searched."""
    if stream := room.streams.get(id):
        return stream.agent == member_id or (stream.fork is None and stream.visible_to == "all")
    item = room.tools.get(id) or room.gates.get(id)
    return item is not None and (item.fork is None or member_id in room.readers(item.fork))


def remember_outcomes(past: Mapping[str, str], outcomes: Mapping[str, str]) -> Mapping[str, str]:
    """Add outcomes and forget the oldest beyond the limit."""
    both = {**past, **outcomes}
    surplus = len(both) - MAX_OUTCOMES
    return dict(list(both.items())[surplus:]) if surplus > 0 else both


def outcome_key(fork: str | None, id: str) -> str:
    """Key of an outcome; what ended in a fork is visible only there."""
    return id if fork is None else f"{fork}\n{id}"  # no id contains a line break


def outcome_of(room: Room, id: str, member_id: str) -> str | None:
    """How something ended, if this member may know it."""
    if outcome := room.past.get(id):
        return outcome
    readable = (fork for fork in room.forks if member_id in room.readers(fork))
    outcomes = (room.past.get(outcome_key(fork, id)) for fork in readable)
    return next((outcome for outcome in outcomes if outcome is not None), None)
