"""What a room holds has an end, however it got there."""

from typing import Any

import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.limits import LIMITS, Limits
from accord.core.kernel.refusal import Refused
from accord.core.room.interrupts import MOST_UNANSWERED, InterruptRaise
from accord.core.room.quota import OVERHEAD, held, weight
from accord.core.room.shelf import ContextAdd
from accord.core.room.state import House, Urgency
from tests.helpers.forks import Talk, adds, executes_merge, removes, updates
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    after,
    given,
    joined,
    joins,
    left,
    opened,
    when,
)

R = Role


def house(**limits: int) -> House:
    return House(limits=Limits(**limits))


def told(no: pytest.ExceptionInfo[Refused]) -> tuple[Any, Any]:
    """Which limit, and how much it allows; its reason is the table's."""
    details = no.value.details or {}
    assert no.value.why is LIMITS[details["limit"]].bound.why
    return details["limit"], details["most"]


def a_talk() -> Talk:
    return Talk.of((BOB, R.ADVERSARY), (CAROL, R.ADVERSARY), (CLAUDE, R.DRIVER))


def test_everything_a_sender_chose_weighs_something() -> None:
    said = ContextAdd(
        key="k" * 10,
        content_type="text",
        content="x" * 20,
        visible_to=("s" * 30,),
        source="o" * 40,
        tags=("t" * 50, "u" * 60),
    )
    talk = a_talk()
    talk.says(BOB, said)

    (item,) = talk.room.shelf[""].values()
    assert weight(item) == OVERHEAD + 10 + 20 + 30 + 40 + 50 + 60


def test_what_was_removed_is_remembered_only_while_a_fork_may_ask() -> None:
    talk = a_talk()
    talk.says(BOB, adds("a"))
    talk.says(BOB, adds("b"))
    talk.says(BOB, removes("a"))
    assert not talk.room.removed[""]

    fork = talk.fork("Aside", BOB)
    talk.says(BOB, removes("b"))
    assert set(talk.room.removed[""]) == set(talk.room.buried[""]) == {"b"}

    talk.merges(fork)
    assert not talk.room.removed[""]
    assert not talk.room.buried[""]


def test_a_fork_of_a_merged_fork_still_asks() -> None:
    talk = a_talk()
    talk.says(BOB, adds("a"))
    outer = talk.fork("Outer", BOB)
    inner = talk.fork("Inner", BOB, fork=outer)
    talk.says(BOB, removes("a"))
    talk.merges(outer)

    assert set(talk.room.removed[""]) == {"a"}
    talk.merges(inner)
    assert not talk.room.removed[""]


def test_adding_and_removing_for_ever_leaves_nothing() -> None:
    talk = a_talk()
    for number in range(50):
        talk.says(BOB, adds(f"k{number}"))
        talk.says(BOB, removes(f"k{number}"))

    assert held(talk.room) == (0, 0)


def test_while_a_fork_is_open_what_was_removed_counts_and_less_is_always_fine() -> None:
    talk = a_talk()
    talk.fork("Aside", BOB)
    few = house(context=5 * (OVERHEAD + 10))
    for number in range(4):
        talk.says(BOB, adds(f"k{number}"), house=few)
        talk.says(BOB, removes(f"k{number}"), house=few)

    with pytest.raises(Refused) as no:
        talk.tries(BOB, adds("one more", "x" * 100), house=few)

    assert told(no) == ("context", few.limits.context)


def test_a_room_that_holds_too_much_already_may_hold_less() -> None:
    talk = a_talk()
    talk.says(BOB, adds("large", "x" * 500))
    tiny = house(context=100)

    talk.says(BOB, updates("large", "x" * 400), house=tiny)
    with pytest.raises(Refused):
        talk.tries(BOB, updates("large", "x" * 401), house=tiny)


def test_the_values_of_a_merge_together_have_the_same_bound() -> None:
    talk = a_talk()
    keys = [f"k{number}" for number in range(4)]
    for key in keys:
        talk.says(BOB, adds(key, "old"))
    fork = talk.fork("Aside", BOB, copy=True)
    for key in keys:
        talk.says(BOB, updates(key, "ours"), fork=fork)
        talk.says(CAROL, updates(key, "theirs"))
    merge = talk.proposes_merge(fork)
    few = house(context=2000)

    with pytest.raises(Refused) as no:
        talk.tries(BOB, executes_merge(merge, {key: ["x" * 600] for key in keys}), house=few)

    assert told(no) == ("context", 2000)
    assert talk.allows(BOB, executes_merge(merge, {key: ["x"] for key in keys}), house=few)


def test_the_house_has_fewer_places_than_a_session_may_say() -> None:
    room = given(opened(max_participants=100), joined(BOB, R.DRIVER))

    with pytest.raises(Refused) as no:
        when(room, CAROL, joins(CAROL, R.DRIVER), house=house(participants=2))

    assert told(no) == ("participants", 2)
    assert when(room, BOB, joins(BOB, R.DRIVER), house=house(participants=2))


def test_a_room_remembers_only_so_many_who_were_in_it() -> None:
    room = given(opened(), joined(BOB, R.DRIVER), left(BOB))
    few = house(seats=2)

    with pytest.raises(Refused) as no:
        when(room, CAROL, joins(CAROL, R.DRIVER), house=few)

    assert told(no) == ("seats", 2)
    assert when(room, BOB, joins(BOB, R.DRIVER), house=few), "whoever was in it may come back"


def test_of_very_many_stops_the_newest_are_waited_for() -> None:
    room = given(opened(), joined(CLAUDE, R.DRIVER))
    stop = InterruptRaise(Urgency.PAUSE, "Wait", "claude")
    for number in range(MOST_UNANSWERED + 2):
        room = after(room, when(room, ALICE, stop, id=f"i{number}"))

    assert len(room.interrupts) == MOST_UNANSWERED
    assert next(iter(room.interrupts)) == "i2"
