"""Who sees what lies on the shelf."""

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room import CONTEXT
from accord.core.room.shared_context.context_items import ContextUpdate
from tests.core.dialects.envelopes import QUICK
from tests.helpers.room.context_scenarios import (
    context_add,
    context_item,
    context_remove,
    context_update,
    make_content_ref,
    recipients_of,
    room_with_observer,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    after,
    expect_refusal,
    given,
    leave_step,
    prompt_submit,
    script_step,
    when,
)
from tests.spec import proves

PEOPLE = {"alice": ALICE, "bob": BOB, "carol": CAROL, "claude": CLAUDE}
AUDIENCES = [((), {"alice", "bob", "carol", "dave", "claude"}), (("carol",), {"bob", "carol"})]


@proves("PVP-9.1-4", "OPEN-39", "UNI-12")
@pytest.mark.parametrize(("named", "seen"), AUDIENCES)
def test_those_who_see_it_hear_of_everything_about_it_and_nobody_else_does(
    named: tuple[str, ...], seen: set[str]
) -> None:
    room = room_with_observer()
    added = when(room, BOB, context_add("text\n", *named))
    room = after(room, added)

    changed = when(room, CAROL, context_update())
    gone = when(after(room, changed), CAROL, context_remove())

    assert [recipients_of(room, facts) for facts in (added, changed, gone)] == [seen] * 3


@proves("OPEN-39", "UNI-12")
@pytest.mark.parametrize("who", [ALICE, CLAUDE], ids=lambda who: who.principal)
@pytest.mark.parametrize(
    "body",
    [
        context_update(),
        context_update(diff="@@ -1 +1 @@\n-a\n+b\n"),
        context_update(new_content_ref=make_content_ref()),
        context_remove(),
    ],
    ids=["content", "diff", "reference", "removal"],
)
def test_what_one_cannot_see_is_not_there(who: Actor, body: ContextUpdate) -> None:
    hidden = room_with_observer(script_step(BOB, context_add("secret plan", "carol")))

    with pytest.raises(Refused) as unseen:
        when(hidden, who, body)
    with pytest.raises(Refused) as unknown:
        when(room_with_observer(), who, body)

    for no in (unseen.value, unknown.value):
        assert (no.reason, no.detail, no.details) == (
            *(Reason.NOT_FOUND, "There is no context item k here", None),
        )


@proves("OPEN-39")
def test_an_author_who_did_not_name_herself_still_sees_it() -> None:
    room = room_with_observer(script_step(BOB, context_add("a\n", "carol")))

    room = given(script_step(BOB, context_update(diff="@@ -1 +1 @@\n-a\n+b\n")), room=room)

    assert context_item(room).content == "b\n"
    assert recipients_of(room, when(room, BOB, context_remove())) == {"bob", "carol"}


@proves("OPEN-39")
def test_an_update_keeps_who_sees_it_and_whose_it_is() -> None:
    room = room_with_observer(
        script_step(BOB, context_add("a", "carol", source="wiki", tags=("t",)), id="added")
    )

    now = context_item(given(script_step(CAROL, context_update(new_content="b")), room=room))

    assert now.changed > context_item(room).changed
    assert now == msgspec.structs.replace(context_item(room), content="b", changed=now.changed)


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
    body = context_add("text", *sorted(named or ()))
    room = room_with_observer(script_step(PEOPLE[author], body, id="added"))
    sees = named is None or other in named or other == author

    recalled = [each.body for each in CONTEXT.presence.replay_for(room, other)]
    try:
        told = other in recipients_of(room, when(room, PEOPLE[other], context_update()))
        gone = other in recipients_of(room, when(room, PEOPLE[other], context_remove()))
    except Refused:
        told = gone = False

    assert (body in recalled, told, gone) == (sees, sees, sees)


@proves("OPEN-39", "UNI-12")
def test_somebody_who_comes_in_is_told_what_lies_there_for_them_as_it_is_now() -> None:
    room = room_with_observer(
        script_step(BOB, context_add("old", "carol", source="wiki", tags=("t",)), id="one"),
        script_step(BOB, context_update(new_content="new")),
        script_step(
            ALICE,
            context_add({"a": 1}, key="all", content_ref=make_content_ref(b'{"a":1}')),
            id="two",
        ),
        script_step(ALICE, context_add("x", "bob", key="hidden")),
    )

    (mine, common) = (
        each for each in CONTEXT.presence.replay_for(room, "carol") if each.body.type[0] == "c"
    )

    assert (mine.id, mine.sender, mine.secret_key) == ("one", "bob", None)
    assert mine.body == context_add("new", "carol", source="wiki", tags=("t",))
    assert (common.id, common.body) == (
        "two",
        context_add({"a": 1}, key="all", content_ref=make_content_ref(b'{"a":1}')),
    )


def test_what_was_put_there_outlives_its_author_s_leave() -> None:
    room = room_with_observer(script_step(BOB, context_add("text", "carol")), leave_step(BOB))

    assert context_item(room).author == "bob"
    assert when(room, CAROL, context_remove())


@proves("OPEN-39")
def test_a_prompt_names_what_its_submitter_sees_and_delivers_what_its_agent_sees() -> None:
    room = room_with_observer(
        script_step(BOB, context_add(key="all")),
        script_step(BOB, context_add("x", "carol", key="people")),
        script_step(ALICE, context_add("x", "carol", key="hidden")),
    )
    keys = ("all", "people", "nowhere")
    naming = msgspec.structs.replace(prompt_submit(), context_keys=keys)

    (submitted,) = when(room, BOB, naming).records

    assert msgspec.to_builtins(submitted.said)["context_keys"] == ("all", "nowhere")
    with expect_refusal(Reason.FORBIDDEN, "hidden"):
        when(room, BOB, msgspec.structs.replace(prompt_submit(), context_keys=("all", "hidden")))
