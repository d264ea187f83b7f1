"""Which part of a conversation a commit came of: a place in a room, behind the last link."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.core.kernel.ids import derived
from accord.core.kernel.log import Event, Record
from accord.core.room.gates import GateOpened
from accord.core.room.grants import ToolCleared
from accord.core.room.merges import MergeExecuted
from accord.core.room.state import Room
from accord.core.room.tools import ToolProposed
from accord.core.room.votes import GatePassed, Rejected

DECISION = "dec_"


class Stretch(NamedTuple):
    """Part of a conversation: a room, the fork if it was one, and behind which `seq`."""

    room: Room
    repo: str
    fork: str | None = None
    since: int = 0


def heard(stretch: Stretch, records: Iterable[Record]) -> list[Record]:
    """Those that everybody at that place heard, behind the last link.

    What has no form on the wire belongs to what was said before it.
    """
    found: list[Record] = []
    at = 0
    for record in records:
        at = record.seq or at
        if at > stretch.since and record.to is None and here(stretch, record):
            found.append(record)
    return found


def here(stretch: Stretch, record: Record) -> bool:
    """Whether it was said at the place whose work it is."""
    announced = record.event.announced and stretch.fork is None
    return record.fork == stretch.fork or announced


def cited(records: Iterable[Record]) -> frozenset[str]:
    """Ids that must be known to tell what these records are about."""
    return frozenset(name for record in records for name in _cites(record.event, record.ref))


def _cites(event: Event, ref: str | None) -> Iterator[str]:
    match event:
        case ToolCleared():
            yield event.said.tool_proposal
        case MergeExecuted():
            yield event.said.merge_proposal
        case GatePassed() | Rejected():
            yield event.gate
        case GateOpened():
            yield event.said.action_ref
        case ToolProposed() if ref is not None:
            yield ref
        case _:
            pass


def decision_id(stretch: Stretch, last: Record) -> str:
    """The same for the same stretch, so that asking twice makes no second decision."""
    cause = (stretch.repo, stretch.room.id, stretch.fork or "", str(stretch.since))
    return DECISION + derived(last.at, "decision", *cause, last.id)
