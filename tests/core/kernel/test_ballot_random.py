"""Quorums against what trying everything says."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.ballot import (
    AllOf,
    AnyOf,
    Ballot,
    Everyone,
    Majority,
    Named,
    OfLabel,
    OfRole,
    Quorum,
    SimpleRule,
    Voter,
    Voters,
    cannot_pass,
    simple_rules,
    tally,
)
from accord.core.kernel.role_permissions import Role
from tests.helpers.room.ballots import open_ballot, with_yes
from tests.spec import proves

SEATS = "abcdef"
KINDS = [
    Voter(frozenset(roles), frozenset(labels), here=here)
    for roles in ({Role.ADMIN}, {Role.APPROVER}, {Role.NAVIGATOR}, {Role.ADMIN, Role.APPROVER})
    for labels in (set[str](), {"security"}, {"security", "legal"})
    for here in (True, False)
]
RULES: list[Quorum] = [
    Everyone(),
    Majority(),
    Named(("a",)),
    Named(("b", "c", "d")),
    *(AnyOf(count) for count in (1, 2, 4)),
    *(OfRole(role, count) for role in (Role.ADMIN, Role.APPROVER) for count in (1, 2)),
    *(OfLabel(label, count) for label in ("security", "legal") for count in (1, 3)),
]
rooms = st.lists(st.sampled_from(KINDS), max_size=len(SEATS)).map(
    lambda kinds: dict(zip(SEATS, kinds, strict=False))
)
seats = st.frozensets(st.sampled_from(SEATS), max_size=len(SEATS))
quorums = st.lists(st.sampled_from(RULES), min_size=1, max_size=5).map(
    lambda rules: rules[0] if len(rules) == 1 else AllOf((AllOf((rules[0],)), *rules[1:]))
)


def smallest_by_trying(ballot: Ballot, voters: Voters, *, skip_absent: bool) -> int | None:
    """The size of the smallest set of approvals that passes, by trying all of them."""
    for size in range(len(voters) + 1):
        for yes in combinations(sorted(voters), size):
            if tally(with_yes(ballot, *yes), voters, skip_absent=skip_absent).passed:
                return size
    return None


@proves("OPEN-25")
@given(quorum=quorums, voters=rooms, barred=seats)
@settings(deadline=None)
def test_approvals_required_is_the_smallest_set_that_passes(
    quorum: Quorum, voters: Voters, barred: frozenset[str]
) -> None:
    ballot = open_ballot(quorum, voters, barred)
    smallest = smallest_by_trying(ballot, voters, skip_absent=False)

    assert cannot_pass(ballot, voters) is (smallest is None)
    assert smallest is None or tally(ballot, voters).required == smallest


@given(quorum=quorums, voters=rooms, yes=seats, more=seats)
@settings(deadline=None)
def test_more_approvals_never_turn_a_pass_into_less(
    quorum: Quorum, voters: Voters, yes: frozenset[str], more: frozenset[str]
) -> None:
    ballot = replace(open_ballot(quorum, voters), yes=yes)
    louder = replace(ballot, yes=yes | more)

    assert tally(louder, voters).passed or not tally(ballot, voters).passed


def enough(rule: SimpleRule, yes: Voters, roll: frozenset[str]) -> bool:
    """The specification's words for one rule, without any arithmetic of ours."""
    match rule:
        case AnyOf(count):
            return len(yes) >= count
        case OfRole(role, count):
            return sum(role in voter.roles for voter in yes.values()) >= count
        case OfLabel(label, count):
            return sum(label in voter.labels for voter in yes.values()) >= count
        case Named(participants):
            return all(seat in yes for seat in participants)
        case Everyone():
            return bool(roll) and all(seat in yes for seat in roll)
        case Majority():
            return 2 * sum(seat in yes for seat in roll) > len(roll)


@proves("PVP-14.2-1", "PVP-14.2-2", "PVP-14.2-3", "PVP-14.2-4", "PVP-14.2-5", "OPEN-15", "OPEN-16")
@given(quorum=quorums, voters=rooms, yes=seats)
@settings(deadline=None)
def test_a_ballot_passes_exactly_when_each_rule_has_enough(
    quorum: Quorum, voters: Voters, yes: frozenset[str]
) -> None:
    ballot = replace(open_ballot(quorum, voters), yes=yes)
    heard = {seat: voter for seat, voter in voters.items() if seat in yes}
    each = [enough(rule, heard, frozenset(voters)) for rule in simple_rules(quorum)]

    assert tally(ballot, voters).passed is all(each)
