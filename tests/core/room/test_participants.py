"""Announcing: one's own name, and nothing beyond what was granted."""

from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.room.members import SessionLeave
from accord.core.room.participants import ParticipantAnnounce
from tests.helpers.members import announced
from tests.helpers.room import BOB, after, announces, given, joined, opened, when
from tests.spec import proves

R, C = Role, Capability


@proves("OPEN-9")
def test_one_s_own_announce_changes_name_transport_and_metadata_and_nothing_else() -> None:
    room = given(opened(), joined(BOB, R.DRIVER))
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

    assert announced(facts) == ParticipantAnnounce(
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
    room = given(opened(), joined(BOB, R.DRIVER))
    wish = announces(BOB, R.ADMIN, name="Robert", caps=(C.END_SESSION,))
    said = announced(when(room, BOB, wish))

    assert said != wish
    assert wish.repeats(said)
    assert not announces(BOB, R.ADMIN, name="Bobby").repeats(said)
    assert not wish.repeats(SessionLeave())
