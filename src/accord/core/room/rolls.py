"""The roll of an open gate: who is asked, as members come, change and go (OPEN-17)."""

from collections.abc import Callable

from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import Ballot
from accord.core.room.state import Gate, Member, Room, without

BallotChange = Callable[[Gate], Ballot]


def each_ballot(room: Room, change: BallotChange) -> Room:
    """Every open gate with its ballot changed."""
    if not room.gates:
        return room
    gates = {g.id: replace(g, ballot=change(g)) for g in room.gates.values()}
    return replace(room, gates=gates)


def enrolled(room: Room) -> Room:
    """OPEN-17: the first who could answer a gate that nobody could is asked."""
    return each_ballot(room, lambda g: ballots.enrol(g.ballot, room.voters(g.fork)))


def member_left(room: Room, member: Member) -> Room:
    """OPEN-17: who had approved stays counted, who had not drops off the roll."""

    def change(gate: Gate) -> Ballot:
        ballot = gate.ballot
        if member.id in ballot.yes:
            return replace(ballot, gone={**ballot.gone, member.id: member.voter})
        return replace(ballot, roll=ballot.roll - {member.id})

    return each_ballot(room, change)


def member_changed(room: Room, before: Member | None, now: Member) -> Room:
    """OPEN-17: who lost the right, or what the quorum asks for, loses the vote and the place."""

    def change(gate: Gate) -> Ballot:
        ballot = replace(gate.ballot, gone=without(gate.ballot.gone, now.id))
        if not now.votes:
            ballot = replace(ballot, yes=ballot.yes - {now.id}, roll=ballot.roll - {now.id})
        elif before and ballots.fails_now(ballot, before.voter, now.voter):
            ballot = replace(ballot, yes=ballot.yes - {now.id})
        return ballots.enrol(ballot, room.voters(gate.fork))

    return each_ballot(room, change)
