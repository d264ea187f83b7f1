"""Who may see a record: the room, a fork, or those it is for."""

from accord.core.kernel.log import Record, Seats
from accord.core.room.state import Room


def audience(room: Room, record: Record) -> Seats | None:
    """Those it is for, as of now; None is everybody in the room (UNI-12)."""
    if record.fork is None or record.event.announced:
        return record.to
    readers = room.readers(record.fork)
    return readers if record.to is None else readers & record.to
