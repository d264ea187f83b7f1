"""Quorums of several rules, and the fewest who satisfy them all."""

import pytest

from accord.core.kernel.ballot import (
    MAX_QUORUM_DEPTH,
    MAX_QUORUM_RULES,
    AllOf,
    AnyOf,
    Everyone,
    Majority,
    Named,
    OfLabel,
    OfRole,
    Quorum,
    Requirement,
    Tally,
    Voter,
    check_quorum,
    tally,
)
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from tests.helpers.measure.cpu_time import measure_cpu
from tests.helpers.room.ballots import ADMIN, APPROVER, NAVIGATOR, SECURITY, is_passed, open_ballot
from tests.helpers.room.scenario import expect_refusal


def test_all_of_needs_every_rule_and_one_person_may_satisfy_several() -> None:
    voters = {"s": SECURITY, "a": ADMIN, "n": NAVIGATOR}
    both = AllOf((OfLabel("security", 1), OfRole(Role.NAVIGATOR, 1), AnyOf(2)))

    assert not is_passed(both, voters, "s")
    assert not is_passed(both, voters, "n", "a")
    assert is_passed(both, voters, "s", "a")
    assert tally(open_ballot(both, voters), voters).required == 2


def nested(depth: int) -> Quorum:
    return AnyOf(1) if depth == 0 else AllOf((nested(depth - 1),))


def test_all_of_may_nest_three_deep() -> None:
    check_quorum(nested(MAX_QUORUM_DEPTH))

    with expect_refusal(Reason.MALFORMED, "at most 3 levels"):
        check_quorum(nested(MAX_QUORUM_DEPTH + 1))


def test_a_quorum_has_at_most_eight_rules_in_all() -> None:
    four = AllOf((AnyOf(1),) * (MAX_QUORUM_RULES // 2))
    check_quorum(AllOf((four, four)))

    with expect_refusal(Reason.MALFORMED, "at most 8 rules"):
        check_quorum(AllOf((four, four, AnyOf(1))))


def labelled(*labels: str) -> Voter:
    return Voter(frozenset({Role.NAVIGATOR}), frozenset(labels))


def test_the_one_who_satisfies_most_rules_is_not_always_among_the_fewest() -> None:
    voters = {"a": labelled(*"1234"), "b": labelled(*"135"), "c": labelled(*"246")}
    quorum = AllOf(tuple(OfLabel(label, 1) for label in "123456"))

    assert tally(open_ballot(quorum, voters), voters).required == 2


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

    assert tally(open_ballot(quorum, voters), voters).required == needed


def test_no_more_people_are_imagined_than_are_missing() -> None:
    voters = {"a": labelled("legal"), "b": APPROVER, "c": APPROVER}
    quorum = AllOf((OfLabel("legal", 2), OfRole(Role.APPROVER, 2)))

    assert tally(open_ballot(quorum, voters), voters).required == 3


@pytest.mark.parametrize("rule", [Everyone(), Majority()])
def test_in_an_empty_room_one_comer_may_be_everybody(rule: Quorum) -> None:
    assert tally(open_ballot(AllOf((rule, AnyOf(1))), {}), {}).required == 1


def test_an_open_ended_search_gives_the_best_it_has_found() -> None:
    seats = [f"s{place}" for place in range(120)]
    needs = tuple(
        Requirement(frozenset(seats[rule::7] + seats[rule * 3 :: 5]), 20, open_to_newcomers=True)
        for rule in range(8)
    )

    assert 20 <= Tally(passed=False, counted=frozenset(), needs=needs).required <= 160


@pytest.mark.parametrize("number", [0, 3, 256])
def test_no_quorum_takes_long_to_count(number: int) -> None:
    labels = [f"l{place}" for place in range(MAX_QUORUM_RULES)]
    quorum = AllOf(tuple(OfLabel(label, 10_000 - place) for place, label in enumerate(labels)))
    some = [
        frozenset(labels[p] for p in range(MAX_QUORUM_RULES) if n >> p & 1) for n in range(number)
    ]
    voters = {f"n{n}": Voter(labels=each) for n, each in enumerate(some)}
    standing = tally(open_ballot(quorum, voters), voters)

    assert measure_cpu(lambda: [standing.required for _ in range(100)]) < 2
    assert standing.required >= 10_000


def test_where_nobody_could_ever_do_every_rule_counts_for_itself() -> None:
    nobody, a = (
        Requirement(frozenset(), 1, open_to_newcomers=False),
        Requirement(frozenset({"a"}), 1, open_to_newcomers=False),
    )

    assert Tally(passed=False, counted=frozenset(), needs=(nobody, nobody, a)).required == 3
