"""Voters and ballots."""

from msgspec.structs import replace

from accord.core.kernel.ballot import Ballot, Quorum, Voter, Voters, fix_electorate, tally
from accord.core.kernel.role_permissions import Role

NAVIGATOR = Voter(frozenset({Role.NAVIGATOR}))
APPROVER = Voter(frozenset({Role.APPROVER}))
ADMIN = Voter(frozenset({Role.ADMIN}))
SECURITY = Voter(frozenset({Role.NAVIGATOR}), frozenset({"security"}))
AWAY = Voter(frozenset({Role.NAVIGATOR}), here=False)


def make_voters(number: int, voter: Voter = NAVIGATOR) -> Voters:
    """This many voters of one kind, named n0, n1 and so on."""
    return {f"n{place}": voter for place in range(number)}


def open_ballot(quorum: Quorum, voters: Voters, barred: frozenset[str] = frozenset()) -> Ballot:
    """A ballot whose electorate is these voters."""
    return fix_electorate(Ballot(quorum, barred), voters)


def with_yes(ballot: Ballot, *seats: str) -> Ballot:
    """The ballot with yes votes of these members."""
    return replace(ballot, yes=frozenset(seats))


def is_passed(quorum: Quorum, voters: Voters, *yes: str) -> bool:
    """Whether these yes votes pass the quorum."""
    return tally(with_yes(open_ballot(quorum, voters), *yes), voters).passed
