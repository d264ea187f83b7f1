"""What delivery leaves to joining: connections that are to get what came before."""

from typing import NamedTuple

from accord.engine.streams.stream import Outcome, Peer, Submission


class JoinEntry(NamedTuple):
    """A connection that joins and has every record up to version `since`; None: it has none.

    If that version has to be read from the store, `ref` is the id of the last message it has.
    """

    peer: Peer
    since: int | None
    ref: str | None = None
    is_first_visit: bool = False  # the client names no message that it has
    submission: Submission | None = None


class Joins(NamedTuple):
    """What `deliver` leaves to the join handler.

    `entering` joined; `left` joined and left again, at that version; `undelivered` are outcomes
    that are no news to the session, among which a join may be.
    """

    entering: dict[Peer, JoinEntry]
    left: list[tuple[JoinEntry, int]]
    undelivered: list[Outcome]
