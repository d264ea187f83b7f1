"""Quorums as arithmetic: who counts, when it is enough, and how many that takes at least."""

from typing import Any

import msgspec
import pytest
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
    Voter,
    cannot_pass,
    check_quorum,
    eligible_voters,
    fix_electorate,
    has_rule_without_voters,
    tally,
    unmet_rules,
)
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from tests.helpers.room.ballots import (
    APPROVER,
    AWAY,
    NAVIGATOR,
    SECURITY,
    is_passed,
    make_voters,
    open_ballot,
    with_yes,
)
from tests.helpers.room.scenario import expect_refusal
from tests.spec import proves

# The five kinds, and ours


@proves("PVP-14.2-1")
def test_any_passes_with_its_count_of_approvals() -> None:
    voters = make_voters(3)

    assert not is_passed(AnyOf(2), voters, "n0")
    assert is_passed(AnyOf(2), voters, "n0", "n2")
    assert is_passed(AnyOf(2), voters, "n0", "n1", "n2")


@proves("PVP-14.2-2")
def test_all_needs_everybody_who_could_approve() -> None:
    voters = make_voters(3)

    assert not is_passed(Everyone(), voters, "n0", "n1")
    assert is_passed(Everyone(), voters, "n0", "n1", "n2")


@proves("PVP-14.2-3")
def test_a_role_needs_so_many_of_its_holders() -> None:
    voters = {"a": APPROVER, "b": APPROVER, "n": NAVIGATOR}

    assert not is_passed(OfRole(Role.APPROVER, 2), voters, "a", "n")
    assert is_passed(OfRole(Role.APPROVER, 2), voters, "a", "b")


@proves("PVP-14.2-4")
def test_specific_needs_each_of_the_named() -> None:
    voters = make_voters(3)

    assert not is_passed(Named(("n0", "n1")), voters, "n0", "n2")
    assert is_passed(Named(("n0", "n1")), voters, "n0", "n1")


def test_a_label_needs_so_many_who_carry_it() -> None:
    voters = {"s": SECURITY, "n": NAVIGATOR}

    assert not is_passed(OfLabel("security", 1), voters, "n")
    assert is_passed(OfLabel("security", 1), voters, "s")


@proves("PVP-14.2-5", "OPEN-16")
@given(able=st.integers(1, 40), yes=st.integers(0, 40))
@settings(deadline=None)
def test_a_majority_is_more_than_half(able: int, yes: int) -> None:
    voters = make_voters(able)
    approvals = list(voters)[:yes]

    assert is_passed(Majority(), voters, *approvals) is (2 * len(approvals) > able)


@proves("OPEN-16")
@pytest.mark.parametrize(("able", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 6)])
def test_majority_needs_more_than_half(able: int, needed: int) -> None:
    voters = make_voters(able)

    assert tally(open_ballot(Majority(), voters), voters).required == needed


@proves("OPEN-25")
@pytest.mark.parametrize(
    ("quorum", "needed"),
    [
        (AnyOf(2), 2),
        (AnyOf(9), 9),
        (Everyone(), 4),
        (Majority(), 3),
        (OfRole(Role.ADMIN, 1), 1),
        (OfLabel("security", 3), 3),
        (Named(("n0", "n1", "stranger")), 3),
    ],
)
def test_approvals_required_is_what_the_rule_says(quorum: Quorum, needed: int) -> None:
    voters = make_voters(4)

    assert tally(open_ballot(quorum, voters), voters).required == needed


# Nobody there


@proves("OPEN-15")
@pytest.mark.parametrize(
    "quorum",
    [
        AnyOf(1),
        Everyone(),
        Majority(),
        OfRole(Role.ADMIN, 1),
        OfLabel("security", 1),
        Named(("n0",)),
        AllOf((Everyone(), Majority())),
    ],
)
def test_quorum_without_voters_never_passes(quorum: Quorum) -> None:
    ballot = open_ballot(quorum, {})
    standing = tally(ballot, {})

    assert not standing.passed
    assert standing.required >= 1
    assert cannot_pass(ballot, {})
    assert has_rule_without_voters(ballot, {})


@proves("OPEN-15")
def test_a_count_larger_than_the_room_stays_pending() -> None:
    voters = make_voters(2)
    ballot = open_ballot(AnyOf(3), voters)

    assert cannot_pass(ballot, voters)
    assert not has_rule_without_voters(ballot, voters)
    assert not is_passed(AnyOf(3), voters, "n0", "n1")


@proves("OPEN-15")
def test_a_name_given_twice_is_one_person() -> None:
    voters = make_voters(2)

    assert tally(open_ballot(Named(("n0", "n0")), voters), voters).required == 1
    assert is_passed(Named(("n0", "n0")), voters, "n0")


@proves("OPEN-15")
@pytest.mark.parametrize(
    "bad",
    [
        {"type": "any", "count": 0},
        {"type": "any", "count": -1},
        {"type": "any"},
        {"type": "role", "role": "admin", "count": 0},
        {"type": "role", "role": "king", "count": 1},
        {"type": "specific", "participants": []},
        {"type": "label", "label": "", "count": 1},
        {"type": "all_of", "rules": []},
        {"type": "most"},
    ],
)
def test_a_quorum_that_could_never_count_is_not_one(bad: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, Quorum)


@proves("PVP-14.2-1", "PVP-14.2-2", "PVP-14.2-3", "PVP-14.2-4", "PVP-14.2-5")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"type": "any", "count": 2}, AnyOf(2)),
        ({"type": "all"}, Everyone()),
        ({"type": "role", "role": "admin", "count": 1}, OfRole(Role.ADMIN, 1)),
        ({"type": "specific", "participants": ["a", "b"]}, Named(("a", "b"))),
        ({"type": "majority"}, Majority()),
        ({"type": "label", "label": "security", "count": 1}, OfLabel("security", 1)),
        ({"type": "all_of", "rules": [{"type": "all"}]}, AllOf((Everyone(),))),
    ],
)
def test_each_rule_is_read_as_it_is_written(said: dict[str, Any], meant: Quorum) -> None:
    assert msgspec.convert(said, Quorum) == meant
    assert msgspec.json.decode(msgspec.json.encode(meant)) == said


# Who counts


@proves("UNI-15", "OPEN-14")
def test_votes_of_barred_members_never_count() -> None:
    voters = make_voters(2)
    ballot = with_yes(open_ballot(AnyOf(1), voters, barred=frozenset({"n0"})), "n0")

    assert ballot.roll == {"n1"}
    assert not tally(ballot, voters).passed
    assert tally(ballot, voters).counted == frozenset()


@proves("OPEN-17")
def test_the_roll_is_fixed_the_first_time_that_somebody_is_on_it() -> None:
    empty = open_ballot(Everyone(), {})
    first = fix_electorate(empty, make_voters(1))
    later = fix_electorate(first, make_voters(3))

    assert (empty.enrolled, empty.roll) == (False, frozenset())
    assert first.roll == later.roll == {"n0"}


@proves("OPEN-17")
def test_who_comes_later_counts_for_any_and_not_for_all() -> None:
    early, now = make_voters(2), make_voters(3)
    everyone = with_yes(open_ballot(Everyone(), early), "n0", "n2")
    anybody = with_yes(open_ballot(AnyOf(2), early), "n0", "n2")

    assert not tally(everyone, now).passed
    assert tally(everyone, now).counted == {"n0"}
    assert tally(anybody, now).passed


@proves("OPEN-17")
def test_whoever_left_with_a_vote_given_still_counts() -> None:
    ballot = with_yes(open_ballot(Everyone(), make_voters(2)), "n0", "n1")
    ballot = replace(ballot, gone={"n0": NAVIGATOR})
    now = {"n1": NAVIGATOR}

    assert eligible_voters(ballot, now).keys() == {"n0", "n1"}
    assert tally(ballot, now).passed


@proves("OPEN-18")
def test_skip_leaves_out_the_absent_who_have_not_voted() -> None:
    voters = {"a": NAVIGATOR, "b": AWAY, "c": AWAY}
    ballot = with_yes(open_ballot(Everyone(), voters), "a", "b")

    assert not tally(ballot, voters).passed
    assert tally(ballot, voters, skip_absent=True).passed
    assert tally(ballot, voters, skip_absent=True).required == 2


@proves("OPEN-18")
def test_skip_keeps_at_least_one_voter() -> None:
    voters = make_voters(3, AWAY)
    ballot = open_ballot(Majority(), voters)

    assert tally(ballot, voters, skip_absent=True).required == 2


@proves("OPEN-18")
def test_skip_applies_only_to_all_and_majority() -> None:
    voters = make_voters(2, AWAY)

    assert tally(open_ballot(AnyOf(2), voters), voters, skip_absent=True).required == 2
    assert not tally(open_ballot(Named(("n0",)), voters), voters, skip_absent=True).passed


def test_what_is_missing_is_told_rule_by_rule() -> None:
    quorum = AllOf((AnyOf(2), OfLabel("security", 1), OfRole(Role.ADMIN, 1)))
    voters = {"a": Voter(frozenset({Role.ADMIN})), "b": Voter(), "c": Voter()}

    def lacking(*yes: str) -> list[tuple[str, int, bool]]:
        ballot = Ballot(quorum, yes=frozenset(yes))
        return [(type(x.rule).__name__, x.missing, x.possible) for x in unmet_rules(ballot, voters)]

    assert lacking("b") == [("AnyOf", 1, True), ("OfLabel", 1, False), ("OfRole", 1, True)]
    assert lacking("a", "b", "stranger") == [("OfLabel", 1, False)]
    voters["c"] = Voter(labels=frozenset({"security"}))
    assert lacking("a", "c") == []


@pytest.mark.parametrize(
    "rule",
    [
        OfLabel("\x1b[2J", 1),
        OfLabel("a\u202eb", 1),
        Named(("alice", "x" * 129)),
        Named(("",)),
        AnyOf(1001),
        AllOf((AnyOf(1), OfRole(Role.ADMIN, 10_000))),
    ],
)
def test_a_quorum_is_of_people_that_can_be_read_and_counted(rule: Quorum) -> None:
    with expect_refusal(Reason.MALFORMED):
        check_quorum(rule)
    check_quorum(AllOf((OfLabel("sécurité – 漢", 1000), Named(("alice",)))))
