"""Quorums as arithmetic: who counts, when it is enough, and how many that takes at least."""

import sys
import time
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import (
    DEEPEST,
    MOST_RULES,
    AllOf,
    AnyOf,
    Ballot,
    Everyone,
    Leaf,
    Majority,
    Named,
    Need,
    OfLabel,
    OfRole,
    Quorum,
    Tally,
    Voter,
    Voters,
    check,
    eligible,
    enrol,
    hopeless,
    lacks,
    leaves,
    tally,
    vacant,
)
from accord.core.kernel.refusal import Why
from tests.helpers.room import refused
from tests.spec import proves

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


# The five kinds, and ours


@proves("PVP-14.2-1")
def test_any_is_enough_with_so_many_approvals_of_whomever() -> None:
    voters = people(3)

    assert not passes(AnyOf(2), voters, "n0")
    assert passes(AnyOf(2), voters, "n0", "n2")
    assert passes(AnyOf(2), voters, "n0", "n1", "n2")


@proves("PVP-14.2-2")
def test_all_needs_everybody_who_could_approve() -> None:
    voters = people(3)

    assert not passes(Everyone(), voters, "n0", "n1")
    assert passes(Everyone(), voters, "n0", "n1", "n2")


@proves("PVP-14.2-3")
def test_a_role_needs_so_many_of_its_holders() -> None:
    voters = {"a": APPROVER, "b": APPROVER, "n": NAVIGATOR}

    assert not passes(OfRole(Role.APPROVER, 2), voters, "a", "n")
    assert passes(OfRole(Role.APPROVER, 2), voters, "a", "b")


@proves("PVP-14.2-4")
def test_specific_needs_each_of_the_named() -> None:
    voters = people(3)

    assert not passes(Named(("n0", "n1")), voters, "n0", "n2")
    assert passes(Named(("n0", "n1")), voters, "n0", "n1")


def test_a_label_needs_so_many_who_carry_it() -> None:
    voters = {"s": SECURITY, "n": NAVIGATOR}

    assert not passes(OfLabel("security", 1), voters, "n")
    assert passes(OfLabel("security", 1), voters, "s")


@proves("PVP-14.2-5", "OPEN-16")
@given(able=st.integers(1, 40), yes=st.integers(0, 40))
@settings(deadline=None)
def test_a_majority_is_more_than_half(able: int, yes: int) -> None:
    voters = people(able)
    approvals = list(voters)[:yes]

    assert passes(Majority(), voters, *approvals) is (2 * len(approvals) > able)


@proves("OPEN-16")
@pytest.mark.parametrize(("able", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 6)])
def test_half_is_not_a_majority(able: int, needed: int) -> None:
    voters = people(able)

    assert tally(opened(Majority(), voters), voters).required == needed


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
    voters = people(4)

    assert tally(opened(quorum, voters), voters).required == needed


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
def test_nobody_is_never_enough(quorum: Quorum) -> None:
    ballot = opened(quorum, {})
    standing = tally(ballot, {})

    assert not standing.passed
    assert standing.required >= 1
    assert hopeless(ballot, {})
    assert vacant(ballot, {})


@proves("OPEN-15")
def test_a_count_larger_than_the_room_stays_pending() -> None:
    voters = people(2)
    ballot = opened(AnyOf(3), voters)

    assert hopeless(ballot, voters)
    assert not vacant(ballot, voters)
    assert not passes(AnyOf(3), voters, "n0", "n1")


@proves("OPEN-15")
def test_a_name_given_twice_is_one_person() -> None:
    voters = people(2)

    assert tally(opened(Named(("n0", "n0")), voters), voters).required == 1
    assert passes(Named(("n0", "n0")), voters, "n0")


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
def test_the_barred_never_count() -> None:
    voters = people(2)
    ballot = with_yes(opened(AnyOf(1), voters, barred=frozenset({"n0"})), "n0")

    assert ballot.roll == {"n1"}
    assert not tally(ballot, voters).passed
    assert tally(ballot, voters).counted == frozenset()


@proves("OPEN-17")
def test_the_roll_is_fixed_the_first_time_that_somebody_is_on_it() -> None:
    empty = opened(Everyone(), {})
    first = enrol(empty, people(1))
    later = enrol(first, people(3))

    assert (empty.enrolled, empty.roll) == (False, frozenset())
    assert first.roll == later.roll == {"n0"}


@proves("OPEN-17")
def test_who_comes_later_counts_for_any_and_not_for_all() -> None:
    early, now = people(2), people(3)
    everyone = with_yes(opened(Everyone(), early), "n0", "n2")
    anybody = with_yes(opened(AnyOf(2), early), "n0", "n2")

    assert not tally(everyone, now).passed
    assert tally(everyone, now).counted == {"n0"}
    assert tally(anybody, now).passed


@proves("OPEN-17")
def test_whoever_left_with_a_vote_given_still_counts() -> None:
    ballot = with_yes(opened(Everyone(), people(2)), "n0", "n1")
    ballot = replace(ballot, gone={"n0": NAVIGATOR})
    now = {"n1": NAVIGATOR}

    assert eligible(ballot, now).keys() == {"n0", "n1"}
    assert tally(ballot, now).passed


@proves("OPEN-18")
def test_skip_leaves_out_the_absent_who_have_not_voted() -> None:
    voters = {"a": NAVIGATOR, "b": AWAY, "c": AWAY}
    ballot = with_yes(opened(Everyone(), voters), "a", "b")

    assert not tally(ballot, voters).passed
    assert tally(ballot, voters, skip_absent=True).passed
    assert tally(ballot, voters, skip_absent=True).required == 2


@proves("OPEN-18")
def test_skip_never_leaves_nobody() -> None:
    voters = people(3, AWAY)
    ballot = opened(Majority(), voters)

    assert tally(ballot, voters, skip_absent=True).required == 2


@proves("OPEN-18")
def test_skip_concerns_no_other_rule() -> None:
    voters = people(2, AWAY)

    assert tally(opened(AnyOf(2), voters), voters, skip_absent=True).required == 2
    assert not tally(opened(Named(("n0",)), voters), voters, skip_absent=True).passed


# Compound


def test_all_of_needs_every_rule_and_one_person_may_satisfy_several() -> None:
    voters = {"s": SECURITY, "a": ADMIN, "n": NAVIGATOR}
    both = AllOf((OfLabel("security", 1), OfRole(Role.NAVIGATOR, 1), AnyOf(2)))

    assert not passes(both, voters, "s")
    assert not passes(both, voters, "n", "a")
    assert passes(both, voters, "s", "a")
    assert tally(opened(both, voters), voters).required == 2


def nested(depth: int) -> Quorum:
    return AnyOf(1) if depth == 0 else AllOf((nested(depth - 1),))


def test_all_of_may_nest_three_deep() -> None:
    check(nested(DEEPEST))

    with refused(Why.MALFORMED, "at most 3 levels"):
        check(nested(DEEPEST + 1))


def test_a_quorum_has_at_most_eight_rules_in_all() -> None:
    four = AllOf((AnyOf(1),) * (MOST_RULES // 2))
    check(AllOf((four, four)))

    with refused(Why.MALFORMED, "at most 8 rules"):
        check(AllOf((four, four, AnyOf(1))))


def labelled(*labels: str) -> Voter:
    return Voter(frozenset({Role.NAVIGATOR}), frozenset(labels))


def test_the_one_who_satisfies_most_rules_is_not_always_among_the_fewest() -> None:
    voters = {"a": labelled(*"1234"), "b": labelled(*"135"), "c": labelled(*"246")}
    quorum = AllOf(tuple(OfLabel(label, 1) for label in "123456"))

    assert tally(opened(quorum, voters), voters).required == 2


@pytest.mark.parametrize(
    ("quorum", "needed"),
    [
        # Somebody who carries the label and is an admin, twice; and Zoe.
        (AllOf((OfRole(Role.ADMIN, 1), OfLabel("security", 2), Named(("zoe",)))), 3),
        # Only as many come as are missing: one for the label, who counts for `any` as well.
        (AllOf((OfLabel("legal", 2), AnyOf(3))), 3),
        (AllOf((OfLabel("legal", 1), OfRole(Role.APPROVER, 2), AnyOf(2))), 2),
        # Whoever comes later is not on the roll.
        (AllOf((Everyone(), OfRole(Role.ADMIN, 1))), 3),
        (AllOf((Majority(), OfRole(Role.ADMIN, 1))), 3),
    ],
)
def test_where_too_few_are_here_comers_are_taken_to_fit(quorum: Quorum, needed: int) -> None:
    voters = {"a": labelled("legal"), "b": APPROVER}

    assert tally(opened(quorum, voters), voters).required == needed


def test_no_more_people_are_imagined_than_are_missing() -> None:
    voters = {"a": labelled("legal"), "b": APPROVER, "c": APPROVER}
    quorum = AllOf((OfLabel("legal", 2), OfRole(Role.APPROVER, 2)))

    assert tally(opened(quorum, voters), voters).required == 3


@pytest.mark.parametrize("rule", [Everyone(), Majority()])
def test_in_an_empty_room_one_comer_may_be_everybody(rule: Quorum) -> None:
    assert tally(opened(AllOf((rule, AnyOf(1))), {}), {}).required == 1


def test_an_open_ended_search_gives_the_best_it_has_found() -> None:
    seats = [f"s{place}" for place in range(120)]
    needs = tuple(
        Need(frozenset(seats[rule::7] + seats[rule * 3 :: 5]), 20, open=True) for rule in range(8)
    )

    assert 20 <= Tally(passed=False, counted=frozenset(), needs=needs).required <= 160


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
    ballot = opened(quorum, voters, barred)
    smallest = smallest_by_trying(ballot, voters, skip_absent=False)

    assert hopeless(ballot, voters) is (smallest is None)
    assert smallest is None or tally(ballot, voters).required == smallest


@given(quorum=quorums, voters=rooms, yes=seats, more=seats)
@settings(deadline=None)
def test_more_approvals_never_turn_a_pass_into_less(
    quorum: Quorum, voters: Voters, yes: frozenset[str], more: frozenset[str]
) -> None:
    ballot = replace(opened(quorum, voters), yes=yes)
    louder = replace(ballot, yes=yes | more)

    assert tally(louder, voters).passed or not tally(ballot, voters).passed


def enough(rule: Leaf, yes: Voters, roll: frozenset[str]) -> bool:
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
    ballot = replace(opened(quorum, voters), yes=yes)
    heard = {seat: voter for seat, voter in voters.items() if seat in yes}
    each = [enough(rule, heard, frozenset(voters)) for rule in leaves(quorum)]

    assert tally(ballot, voters).passed is all(each)


def test_what_is_missing_is_told_rule_by_rule() -> None:
    quorum = AllOf((AnyOf(2), OfLabel("security", 1), OfRole(Role.ADMIN, 1)))
    voters = {"a": Voter(frozenset({Role.ADMIN})), "b": Voter(), "c": Voter()}

    def lacking(*yes: str) -> list[tuple[str, int, bool]]:
        ballot = Ballot(quorum, yes=frozenset(yes))
        return [(type(x.rule).__name__, x.missing, x.possible) for x in lacks(ballot, voters)]

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
    with refused(Why.MALFORMED):
        check(rule)
    check(AllOf((OfLabel("sécurité – 漢", 1000), Named(("alice",)))))


@pytest.mark.parametrize("number", [0, 3, 256])
def test_no_quorum_takes_long_to_count(number: int) -> None:
    labels = [f"l{place}" for place in range(MOST_RULES)]
    quorum = AllOf(tuple(OfLabel(label, 10_000 - place) for place, label in enumerate(labels)))
    some = [frozenset(labels[p] for p in range(MOST_RULES) if n >> p & 1) for n in range(number)]
    voters = {f"n{n}": Voter(labels=each) for n, each in enumerate(some)}
    standing = tally(opened(quorum, voters), voters)

    tracing = sys.gettrace()
    sys.settrace(None)  # what measures coverage takes longer than what is measured
    try:
        began = time.process_time()
        needed = [standing.required for _ in range(100)]
        took = time.process_time() - began
    finally:
        sys.settrace(tracing)

    assert took < 2
    assert needed[0] >= 10_000


def test_where_nobody_could_ever_do_every_rule_counts_for_itself() -> None:
    nobody, a = Need(frozenset(), 1, open=False), Need(frozenset({"a"}), 1, open=False)

    assert Tally(passed=False, counted=frozenset(), needs=(nobody, nobody, a)).required == 3
