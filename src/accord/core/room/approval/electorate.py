"""The electorate: whether a quorum can be met, and open gates as members change (OPEN-15, 17)."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from accord.core.kernel import ballot as ballots
from accord.core.kernel.ballot import Ballot, Named, Quorum, SimpleRule, simple_rules
from accord.core.kernel.context import Command
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.room_settings import Directory
from accord.core.room.state import Gate, Member, Room, without_keys

BallotChange = Callable[[Gate], Ballot]
MAX_NOTES = 32


def check_quorum(
    room: Room, command: Command, quorum: Quorum, max_participants: int, workspace: str
) -> None:
    """Refuse a malformed quorum, and one that could never be met (OPEN-15)."""
    ballots.check_quorum(quorum)
    for rule in simple_rules(quorum):
        wanted = len({*rule.participants}) if isinstance(rule, Named) else rule_count(rule)
        if wanted > max_participants:
            detail = f"{ballots.describe(rule)} needs {wanted} people, but max_participants"
            raise Refused(Reason.MALFORMED, f"{detail} is {max_participants}")
        if isinstance(rule, Named):
            check_people(room, command, rule, workspace)


def rule_count(rule: SimpleRule) -> int:
    """How many people a rule asks for; 1 for those that depend on the electorate."""
    count: int = getattr(rule, "count", 1)
    return count


def check_people(room: Room, command: Command, rule: Named, workspace: str) -> None:
    """Refuse agents, and ids that the workspace has never seen; without tokens, agents alone."""
    kinds = {id: known_kind(room, command, id, workspace) for id in rule.participants}
    if agents := sorted(id for id, kind in kinds.items() if kind is Kind.AGENT):
        raise Refused(
            Reason.MALFORMED, f"Agents cannot approve; the quorum names {', '.join(agents)}"
        )
    unknown = sorted(id for id, kind in kinds.items() if kind is None)
    if unknown and command.policy.directory is not None:
        raise Refused(
            Reason.MALFORMED,
            f"The workspace does not know {', '.join(unknown)}; invite them or issue a token first",
        )


def known_kind(room: Room, command: Command, id: str, workspace: str) -> Kind | None:
    """The kind of a member, of a former one, or of anybody who ever had a token here."""
    member = room.members.get(id) or room.former.get(id)
    if member is not None:
        return member.kind
    directory: Directory | None = command.policy.directory
    return None if directory is None else directory.kind_of(workspace, id)


def map_ballots(room: Room, change: BallotChange) -> Room:
    """The room with the ballot of every open gate changed."""
    if not room.gates:
        return room
    gates = {gate.id: replace(gate, ballot=change(gate)) for gate in room.gates.values()}
    return replace(room, gates=gates)


def enrol_voters(room: Room) -> Room:
    """Ask the first members who can vote on a gate that had no voters when it opened (OPEN-17)."""
    return map_ballots(
        room, lambda gate: ballots.fix_electorate(gate.ballot, room.voters(gate.fork))
    )


def drop_voter(room: Room, member: Member) -> Room:
    """A member left: an approval stays counted, a missing vote is no longer needed (OPEN-17)."""
    room = end_standing_grants_of(room, member.id)
    return map_ballots(room, lambda gate: without_voter(gate.ballot, member, keeps_vote=True))


def without_voter(ballot: Ballot, member: Member, *, keeps_vote: bool) -> Ballot:
    """The ballot without this voter, who keeps an approval by leaving, not by a removal."""
    if keeps_vote and member.id in ballot.yes:
        return replace(ballot, gone={**ballot.gone, member.id: member.voter})
    return replace(ballot, yes=ballot.yes - {member.id}, roll=ballot.roll - {member.id})


def lost_voter_notices(room: Room, member: Member, *, keeps_vote: bool) -> Iterator[Relay]:
    """Say what can no longer be met without this voter: at open gates, and in the session."""
    if not member.can_vote:
        return
    for gate in room.gates.values():
        before = room.voters(gate.fork)
        ballot = without_voter(gate.ballot, member, keeps_vote=keeps_vote)
        after = ballots.unmeetable_rules(ballot, without_keys(before, member.id))
        if (
            gate.initiator != member.id
            and after
            and not ballots.unmeetable_rules(gate.ballot, before)
        ):
            detail = f"The gate {gate.id} can no longer be met: {'; '.join(after)}"
            to = None if gate.fork is None else room.members_in(gate.fork)
            yield Relay(Failure(Reason.WRONG_STATE, detail, gate.id), to)
    rest = without_keys(room.members, member.id)
    if (after := unmeetable_quorum(replace(room, members=rest))) and not unmeetable_quorum(room):
        detail = f"The session's quorum can no longer be met: {'; '.join(after)}"
        yield Relay(Failure(Reason.WRONG_STATE, detail, room.id))


def unmeetable_quorum(room: Room) -> tuple[str, ...]:
    """What the present members cannot meet of the session's own quorum, and who could help."""
    voters = room.voters()
    quorum = room.session_config.default_gate_quorum
    return ballots.unmeetable_rules(ballots.fix_electorate(Ballot(quorum), voters), voters)


def update_voter(room: Room, before: Member | None, now: Member) -> Room:
    """A member's rights changed: a vote they could not cast today no longer counts (OPEN-17)."""
    if not now.can_vote:
        room = end_standing_grants_of(room, now.id)

    def change(gate: Gate) -> Ballot:
        ballot = replace(gate.ballot, gone=without_keys(gate.ballot.gone, now.id))
        if not now.can_vote:
            ballot = replace(ballot, yes=ballot.yes - {now.id}, roll=ballot.roll - {now.id})
        elif before and ballots.lost_qualification(ballot, before.voter, now.voter):
            ballot = replace(ballot, yes=ballot.yes - {now.id})
        return ballots.fix_electorate(ballot, room.voters(gate.fork))

    return map_ballots(room, change)


def note_removal(room: Room, member: Member, removed_by: str) -> Room:
    """Every gate that the member could decide says who removed them."""
    note = (
        f"{room.person(removed_by)} removed {room.person(member.id)}, whose approval does not count"
    )
    concerned = {
        gate.id: replace(gate, notes=(*gate.notes, note)[-MAX_NOTES:])
        for gate in room.gates.values()
        if member.can_vote and member.id in room.members_in(gate.fork)
    }
    return replace(room, gates={**room.gates, **concerned}) if concerned else room


def without_standing_grants(room: Room, *ids: str) -> Room:
    """The room without these grants and their votes."""
    gates = dict(room.gates)
    for gate in room.gates.values():
        gone = {seat for seat, grant in gate.standing.items() if grant in ids}
        if gone:
            ballot = replace(gate.ballot, yes=gate.ballot.yes - gone)
            standing = without_keys(gate.standing, *gone)
            gates[gate.id] = replace(gate, ballot=ballot, standing=standing)
    return replace(room, standing_grants=without_keys(room.standing_grants, *ids), gates=gates)


def end_standing_grants_of(room: Room, member: str) -> Room:
    """A member left or may no longer approve: what they granted ends, and what they were granted.

    It does not come back with the member.
    """
    ids = [
        id for id, grant in room.standing_grants.items() if member in (grant.grantor, grant.agent)
    ]
    by_grant = [
        grant
        for gate in room.gates.values()
        for seat, grant in gate.standing.items()
        if seat == member
    ]
    return without_standing_grants(room, *ids, *by_grant) if ids or by_grant else room
