"""Quorums of several rules, and the fewest who satisfy them all."""

import sys
import time

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import (
    DEEPEST,
    MOST_RULES,
    AllOf,
    AnyOf,
    Everyone,
    Majority,
    Named,
    Need,
    OfLabel,
    OfRole,
    Quorum,
    Tally,
    Voter,
    check,
    tally,
)
from accord.core.kernel.refusal import Why
from tests.helpers.ballot import ADMIN, APPROVER, NAVIGATOR, SECURITY, opened, passes
from tests.helpers.room import refused


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
