"""What the room was told of a joiner, and what it granted."""

from accord.core.kernel.authority import Capability, Role
from accord.core.room.participants import Announced, ParticipantAnnounce
from tests.helpers.room import Facts


def announced(facts: Facts) -> ParticipantAnnounce:
    """What the room is told of somebody."""
    (said,) = (fact.said for fact in facts if isinstance(fact, Announced))
    return said


def granted(facts: Facts) -> tuple[set[Role], set[Capability]]:
    """What somebody got."""
    said = announced(facts)
    return set(said.roles), set(said.capabilities or ())
