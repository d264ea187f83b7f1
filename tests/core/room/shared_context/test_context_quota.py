"""What a room holds has an end, however it got there."""

from typing import Any

import pytest

from accord.core.kernel.limits import LIMITS, Limits
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.interrupts import MAX_UNANSWERED_INTERRUPTS, InterruptRaise
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.shared_context.context_quota import (
    ITEM_OVERHEAD_BYTES,
    context_size,
    item_size,
)
from accord.core.room.state import Urgency
from tests.helpers.room.logged_room import (
    LoggedRoom,
    context_add,
    context_remove,
    context_update,
    merge_execute,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    after,
    create_step,
    given,
    join_step,
    leave_step,
    session_join,
    when,
)

R = Role


def house(**limits: int) -> ServerPolicy:
    return ServerPolicy(limits=Limits(**limits))


def told(no: pytest.ExceptionInfo[Refused]) -> tuple[Any, Any]:
    """Which limit, and how much it allows; its reason is the table's."""
    details = no.value.details or {}
    assert no.value.reason is LIMITS[details["limit"]].spec.reason
    return details["limit"], details["most"]


def a_talk() -> LoggedRoom:
    return LoggedRoom.with_members((BOB, R.ADVERSARY), (CAROL, R.ADVERSARY), (CLAUDE, R.DRIVER))


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
    talk.send(BOB, said)

    (item,) = talk.room.shelf[""].values()
    assert item_size(item) == ITEM_OVERHEAD_BYTES + 10 + 20 + 30 + 40 + 50 + 60


def test_what_was_removed_is_remembered_only_while_a_fork_may_ask() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("a"))
    talk.send(BOB, context_add("b"))
    talk.send(BOB, context_remove("a"))
    assert not talk.room.removed[""]

    fork = talk.fork("Aside", BOB)
    talk.send(BOB, context_remove("b"))
    assert set(talk.room.removed[""]) == set(talk.room.buried[""]) == {"b"}

    talk.merge(fork)
    assert not talk.room.removed[""]
    assert not talk.room.buried[""]


def test_a_fork_of_a_merged_fork_still_asks() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("a"))
    outer = talk.fork("Outer", BOB)
    inner = talk.fork("Inner", BOB, fork=outer)
    talk.send(BOB, context_remove("a"))
    talk.merge(outer)

    assert set(talk.room.removed[""]) == {"a"}
    talk.merge(inner)
    assert not talk.room.removed[""]


def test_adding_and_removing_repeatedly_uses_no_quota() -> None:
    talk = a_talk()
    for number in range(50):
        talk.send(BOB, context_add(f"k{number}"))
        talk.send(BOB, context_remove(f"k{number}"))

    assert context_size(talk.room) == (0, 0)


def test_while_a_fork_is_open_what_was_removed_counts_and_less_is_always_fine() -> None:
    talk = a_talk()
    talk.fork("Aside", BOB)
    few = house(context=5 * (ITEM_OVERHEAD_BYTES + 10))
    for number in range(4):
        talk.send(BOB, context_add(f"k{number}"), house=few)
        talk.send(BOB, context_remove(f"k{number}"), house=few)

    with pytest.raises(Refused) as no:
        talk.decide(BOB, context_add("one more", "x" * 100), house=few)

    assert told(no) == ("context", few.limits.context)


def test_a_room_that_holds_too_much_already_may_hold_less() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("large", "x" * 500))
    tiny = house(context=100)

    talk.send(BOB, context_update("large", "x" * 400), house=tiny)
    with pytest.raises(Refused):
        talk.decide(BOB, context_update("large", "x" * 401), house=tiny)


def test_the_values_of_a_merge_together_have_the_same_bound() -> None:
    talk = a_talk()
    keys = [f"k{number}" for number in range(4)]
    for key in keys:
        talk.send(BOB, context_add(key, "old"))
    fork = talk.fork("Aside", BOB, copy=True)
    for key in keys:
        talk.send(BOB, context_update(key, "ours"), fork=fork)
        talk.send(CAROL, context_update(key, "theirs"))
    merge = talk.propose_merge(fork)
    few = house(context=2000)

    with pytest.raises(Refused) as no:
        talk.decide(BOB, merge_execute(merge, {key: ["x" * 600] for key in keys}), house=few)

    assert told(no) == ("context", 2000)
    assert talk.allows(BOB, merge_execute(merge, {key: ["x"] for key in keys}), house=few)


def test_the_house_has_fewer_places_than_a_session_may_say() -> None:
    room = given(create_step(max_participants=100), join_step(BOB, R.DRIVER))

    with pytest.raises(Refused) as no:
        when(room, CAROL, session_join(CAROL, R.DRIVER), policy=house(participants=2))

    assert told(no) == ("participants", 2)
    assert when(room, BOB, session_join(BOB, R.DRIVER), policy=house(participants=2))


def test_a_room_remembers_only_so_many_who_were_in_it() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER), leave_step(BOB))
    few = house(seats=2)

    with pytest.raises(Refused) as no:
        when(room, CAROL, session_join(CAROL, R.DRIVER), policy=few)

    assert told(no) == ("seats", 2)
    assert when(room, BOB, session_join(BOB, R.DRIVER), policy=few), (
        "whoever was in it may come back"
    )


def test_of_very_many_stops_the_newest_are_waited_for() -> None:
    room = given(create_step(), join_step(CLAUDE, R.DRIVER))
    stop = InterruptRaise(Urgency.PAUSE, "Wait", "claude")
    for number in range(MAX_UNANSWERED_INTERRUPTS + 2):
        room = after(room, when(room, ALICE, stop, id=f"i{number}"))

    assert len(room.interrupts) == MAX_UNANSWERED_INTERRUPTS
    assert next(iter(room.interrupts)) == "i2"
