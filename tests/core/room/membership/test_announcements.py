"""Announcing: one's own name, and nothing beyond what was granted."""

from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.leaving import SessionLeave
from tests.helpers.room.join_results import announcement_of
from tests.helpers.room.scenario import (
    BOB,
    after,
    create_step,
    given,
    join_step,
    participant_announce,
    when,
)
from tests.spec import proves

R, C = Role, Capability


@proves("OPEN-9")
def test_one_s_own_announce_changes_name_transport_and_metadata_and_nothing_else() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER))
    wish = ParticipantAnnounce(
        id="bob",
        name="Robert",
        kind="agent",
        roles=(R.ADMIN,),
        transport="stdio",
        capabilities=(C.END_SESSION,),
        metadata={"shell": "nu"},
    )

    facts = when(room, BOB, wish)
    bob = after(room, facts).members["bob"]

    assert announcement_of(facts) == ParticipantAnnounce(
        id="bob",
        name="Robert",
        kind="human",
        roles=(R.DRIVER,),
        transport="stdio",
        metadata={"shell": "nu"},
    )
    assert (bob.name, bob.transport, bob.metadata) == ("Robert", "stdio", {"shell": "nu"})
    assert (bob.kind, set(bob.roles), set(bob.capabilities)) == (Kind.HUMAN, {R.DRIVER}, set())


@proves("OPEN-36")
def test_a_retried_announce_is_recognised_although_the_room_heard_what_was_granted() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER))
    wish = participant_announce(BOB, R.ADMIN, name="Robert", caps=(C.END_SESSION,))
    said = announcement_of(when(room, BOB, wish))

    assert said != wish
    assert wish.is_retry_of(said)
    assert not participant_announce(BOB, R.ADMIN, name="Bobby").is_retry_of(said)
    assert not wish.is_retry_of(SessionLeave())
