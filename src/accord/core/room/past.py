"""The past: how things ended that are no longer in the room, as far as anybody may ask."""

from collections.abc import Mapping

from accord.core.room.state import Room

# Outcomes of what has ended; enough to tell a late vote from a wrong one.
MOST_PAST = 512


def remember(past: Mapping[str, str], outcomes: Mapping[str, str]) -> Mapping[str, str]:
    """`past` and `outcomes` together, the oldest forgotten beyond the bound."""
    both = {**past, **outcomes}
    surplus = len(both) - MOST_PAST
    return dict(list(both.items())[surplus:]) if surplus > 0 else both


def past_key(fork: str | None, id: str) -> str:
    """Where an outcome is remembered; what ended in a fork is known there alone."""
    return id if fork is None else f"{fork}\n{id}"  # no id has a line break


def outcome(room: Room, id: str, seat: str) -> str | None:
    """How something ended, as far as this seat may know."""
    if found := room.past.get(id):
        return found
    readable = (fork for fork in room.forks if seat in room.readers(fork))
    known = (room.past.get(past_key(fork, id)) for fork in readable)
    return next((each for each in known if each is not None), None)
