"""What a join announced and granted."""

from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.membership.announcements import MemberAnnounced, ParticipantAnnounce
from tests.helpers.room.scenario import CommandOutcome


def announcement_of(facts: CommandOutcome) -> ParticipantAnnounce:
    """The announcement among these events."""
    (announcement,) = (fact.said for fact in facts if isinstance(fact, MemberAnnounced))
    return announcement


def granted_rights(facts: CommandOutcome) -> tuple[set[Role], set[Capability]]:
    """The roles and capabilities that a join granted."""
    announcement = announcement_of(facts)
    return set(announcement.roles), set(announcement.capabilities or ())
