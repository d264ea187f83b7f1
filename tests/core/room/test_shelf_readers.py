"""Who sees what lies on the shelf."""

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import CONTEXT
from accord.core.room.shelf import ContextUpdate
from tests.core.dialects.wire import QUICK
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    after,
    given,
    left,
    prompts,
    refused,
    step,
    when,
)
from tests.helpers.shelf import adds, heard, item, ref, removes, some_room, updates
from tests.spec import proves

PEOPLE = {"alice": ALICE, "bob": BOB, "carol": CAROL, "claude": CLAUDE}
AUDIENCES = [((), {"alice", "bob", "carol", "dave", "claude"}), (("carol",), {"bob", "carol"})]


@proves("PVP-9.1-4", "OPEN-39", "UNI-12")
@pytest.mark.parametrize(("named", "seen"), AUDIENCES)
def test_those_who_see_it_hear_of_everything_about_it_and_nobody_else_does(
    named: tuple[str, ...], seen: set[str]
) -> None:
    room = some_room()
    added = when(room, BOB, adds("text\n", *named))
    room = after(room, added)

    changed = when(room, CAROL, updates())
    gone = when(after(room, changed), CAROL, removes())

    assert [heard(room, facts) for facts in (added, changed, gone)] == [seen] * 3


@proves("OPEN-39", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, CLAUDE], ids=lambda who: who.seat)
@pytest.mark.parametrize(
    "body",
    [updates(), updates(diff="@@ -1 +1 @@\n-a\n+b\n"), updates(new_content_ref=ref()), removes()],
    ids=["content", "diff", "reference", "removal"],
)
def test_what_one_cannot_see_is_not_there(who: Actor, body: ContextUpdate) -> None:
    hidden = some_room(step(BOB, adds("secret plan", "carol")))

    with pytest.raises(Refused) as unseen:
        when(hidden, who, body)
    with pytest.raises(Refused) as unknown:
        when(some_room(), who, body)

    for no in (unseen.value, unknown.value):
        assert (no.why, no.detail, no.details) == (
            *(Why.UNKNOWN, "There is no context k here", None),
        )


@proves("OPEN-39")
def test_an_author_who_did_not_name_herself_still_sees_it() -> None:
    room = some_room(step(BOB, adds("a\n", "carol")))

    room = given(step(BOB, updates(diff="@@ -1 +1 @@\n-a\n+b\n")), room=room)

    assert item(room).content == "b\n"
    assert heard(room, when(room, BOB, removes())) == {"bob", "carol"}


@proves("OPEN-39")
def test_an_update_keeps_who_sees_it_and_whose_it_is() -> None:
    room = some_room(step(BOB, adds("a", "carol", source="wiki", tags=("t",)), id="added"))

    now = item(given(step(CAROL, updates(new_content="b")), room=room))

    assert now.changed > item(room).changed
    assert now == msgspec.structs.replace(item(room), content="b", changed=now.changed)


@proves("OPEN-39", "UNI-12")
@QUICK
@for_all(
    st.none() | st.sets(st.sampled_from([*PEOPLE, "dave", "later"]), min_size=1),
    st.sampled_from(sorted(PEOPLE)),
    st.sampled_from(sorted(PEOPLE)),
)
def test_seeing_hearing_changing_and_being_told_later_are_one_thing(
    named: set[str] | None, author: str, other: str
) -> None:
    body = adds("text", *sorted(named or ()))
    room = some_room(step(PEOPLE[author], body, id="added"))
    sees = named is None or other in named or other == author

    recalled = [each.body for each in CONTEXT.welcome(room, other)]
    try:
        told = other in heard(room, when(room, PEOPLE[other], updates()))
        gone = other in heard(room, when(room, PEOPLE[other], removes()))
    except Refused:
        told = gone = False

    assert (body in recalled, told, gone) == (sees, sees, sees)


@proves("OPEN-39", "UNI-12")
def test_somebody_who_comes_in_is_told_what_lies_there_for_them_as_it_is_now() -> None:
    room = some_room(
        step(BOB, adds("old", "carol", source="wiki", tags=("t",)), id="one"),
        step(BOB, updates(new_content="new")),
        step(ALICE, adds({"a": 1}, key="all", content_ref=ref(b'{"a":1}')), id="two"),
        step(ALICE, adds("x", "bob", key="hidden")),
    )

    (mine, common) = (each for each in CONTEXT.welcome(room, "carol") if each.body.type[0] == "c")

    assert (mine.id, mine.sender, mine.secret) == ("one", "bob", None)
    assert mine.body == adds("new", "carol", source="wiki", tags=("t",))
    assert (common.id, common.body) == (
        "two",
        adds({"a": 1}, key="all", content_ref=ref(b'{"a":1}')),
    )


def test_what_was_put_there_outlives_its_author_s_leave() -> None:
    room = some_room(step(BOB, adds("text", "carol")), left(BOB))

    assert item(room).author == "bob"
    assert when(room, CAROL, removes())


@proves("OPEN-39")
def test_a_prompt_names_what_its_submitter_sees_and_delivers_what_its_agent_sees() -> None:
    room = some_room(
        step(BOB, adds(key="all")),
        step(BOB, adds("x", "carol", key="people")),
        step(ALICE, adds("x", "carol", key="hidden")),
    )
    keys = ("all", "people", "nowhere")
    naming = msgspec.structs.replace(prompts(), context_keys=keys)

    (submitted,) = when(room, BOB, naming).records

    assert msgspec.to_builtins(submitted.said)["context_keys"] == ("all", "nowhere")
    with refused(Why.FORBIDDEN, "hidden"):
        when(room, BOB, msgspec.structs.replace(prompts(), context_keys=("all", "hidden")))
