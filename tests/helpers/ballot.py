"""People who vote, and ballots they vote on."""

from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import Ballot, Quorum, Voter, Voters, enrol, tally

NAVIGATOR = Voter(frozenset({Role.NAVIGATOR}))
APPROVER = Voter(frozenset({Role.APPROVER}))
ADMIN = Voter(frozenset({Role.ADMIN}))
SECURITY = Voter(frozenset({Role.NAVIGATOR}), frozenset({"security"}))
AWAY = Voter(frozenset({Role.NAVIGATOR}), here=False)


def people(number: int, voter: Voter = NAVIGATOR) -> Voters:
    return {f"n{place}": voter for place in range(number)}


def opened(quorum: Quorum, voters: Voters, barred: frozenset[str] = frozenset()) -> Ballot:
    return enrol(Ballot(quorum, barred), voters)


def with_yes(ballot: Ballot, *seats: str) -> Ballot:
    return replace(ballot, yes=frozenset(seats))


def passes(quorum: Quorum, voters: Voters, *yes: str) -> bool:
    return tally(with_yes(opened(quorum, voters), *yes), voters).passed
