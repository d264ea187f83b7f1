"""How what lies on the shelf is changed and removed."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.context import fold
from accord.core.kernel.refusal import Reason
from accord.core.room import CONTEXT
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.shared_context.context_items import (
    ContextAdd,
    ContextAdded,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
    ContextUpdated,
)
from accord.core.room.state import ContentRef
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
    prompt_submit,
    script_step,
    when,
)
from tests.spec import proves

# Changing and removing


@proves("PVP-9.3-1", "OPEN-40")
@pytest.mark.parametrize(
    ("body", "content", "content_ref"),
    [
        (context_update(diff="@@ -2 +2 @@\n-two\n+2\n"), "one\n2\n", None),
        (context_update(new_content="new"), "new", None),
        (context_update(new_content=""), "", None),
        (context_update(new_content={"a": 1}), {"a": 1}, None),
        (context_update(new_content_ref=make_content_ref(b"x")), None, make_content_ref(b"x")),
    ],
)
def test_it_is_changed_by_a_diff_by_content_or_by_reference(
    body: ContextUpdate, content: Any, content_ref: ContentRef | None
) -> None:
    room = room_with_observer(
        script_step(BOB, context_add(content_ref=make_content_ref(b"one\ntwo\n"))),
        script_step(CLAUDE, body),
    )

    assert (context_item(room).content, context_item(room).content_ref) == (content, content_ref)


@proves("OPEN-40")
@pytest.mark.parametrize(
    "ways",
    [
        {"diff": None},
        {"diff": "", "new_content": ""},
        {"diff": "", "new_content_ref": make_content_ref()},
        {"new_content": {}, "new_content_ref": make_content_ref()},
        {"diff": "", "new_content": "", "new_content_ref": make_content_ref()},
    ],
)
def test_it_is_changed_in_exactly_one_way(ways: dict[str, Any]) -> None:
    with expect_refusal(Reason.MALFORMED, "exactly one"):
        when(room_with_observer(script_step(BOB, context_add())), BOB, context_update(**ways))


@proves("OPEN-40")
@pytest.mark.parametrize(
    ("content", "diff"),
    [
        ("one\ntwo\n", "@@ -2 +2 @@\n-three\n+3\n"),
        ("one\ntwo\n", "@@ -1 +1 @@\n-one\n+1\n@@ -2 +2 @@\n-three\n+3\n"),
        ("one\ntwo\n", "please change two to 2"),
        ("one\ntwo\n", ""),
        ({"one": "two"}, "@@ -1 +1 @@\n-one\n+1\n"),
        (None, "@@ -0,0 +1 @@\n+1\n"),
    ],
)
def test_a_diff_that_does_not_fit_changes_nothing(content: Any, diff: str) -> None:
    elsewhere = make_content_ref(b"x") if content is None else None
    room = room_with_observer(script_step(BOB, context_add(content, content_ref=elsewhere)))

    with expect_refusal(Reason.WRONG_STATE):
        when(room, BOB, context_update(diff=diff))

    assert ERROR_CODES[Reason.WRONG_STATE].pvp == "INVALID_STATE"


@proves("PVP-9.3-1")
def test_what_is_removed_is_gone_and_its_key_free() -> None:
    room = room_with_observer(script_step(BOB, context_add()), script_step(CAROL, context_remove()))

    assert room.shelf[""] == {}
    assert not room.removed[""], "no open fork will ask for it"
    for body in (context_update(), context_remove()):
        with expect_refusal(Reason.NOT_FOUND):
            when(room, BOB, body)
    assert when(room, CAROL, context_add())


def test_a_fork_has_a_shelf_of_its_own() -> None:
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=True)
    room = room_with_observer(
        script_step(BOB, prompt_submit(), id="prompt"),
        script_step(BOB, context_add("trunk")),
        script_step(ALICE, fork),
        script_step(CLAUDE, context_update(new_content="fork"), fork="try"),
        script_step(ALICE, context_add("more", key="more"), fork="try"),
    )

    added = when(room, CLAUDE, context_add(key="other"), fork="try")

    assert (context_item(room).content, context_item(room, fork="try").content) == ("trunk", "fork")
    assert "more" not in room.shelf[""]
    assert recipients_of(room, added) == {"alice", "claude"}
    with expect_refusal(Reason.NOT_FOUND, "There is no context item more here"):
        when(room, ALICE, context_remove("more"))


# Folding


def test_a_log_that_changes_what_is_not_there_or_does_not_fit_still_folds() -> None:
    room = room_with_observer(script_step(BOB, context_add("other")))
    misfit = when(
        room_with_observer(script_step(BOB, context_add("a\n"))),
        BOB,
        context_update(diff="@@ -1 +1 @@\n-a\n+b\n"),
    )
    absent = when(
        room_with_observer(script_step(BOB, context_add(key="x"))), BOB, context_update("x")
    )
    gone = when(
        room_with_observer(script_step(BOB, context_add(key="x"))), BOB, context_remove("x")
    )

    assert [type(facts[0]) for facts in (misfit, absent, gone)] == [
        *(ContextUpdated, ContextUpdated, ContextRemoved),
    ]
    assert fold(CONTEXT, room, misfit.records) == room
    assert fold(CONTEXT, room, absent.records) == room
    assert fold(CONTEXT, room, gone.records).shelf == room.shelf


@QUICK
@for_all(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "set", "del"]))))
def test_the_shelf_is_what_its_history_says(script: list[tuple[str, str]]) -> None:
    room, expected = room_with_observer(), dict[str, str]()
    for number, (key, what) in enumerate(script):
        text = str(number)
        body: ContextAdd | ContextUpdate | ContextRemove = {
            "add": context_add(text, key=key),
            "set": context_update(key, new_content=text),
            "del": context_remove(key),
        }[what]  # type: ignore[assignment]
        if what != "add" and key not in expected:
            with expect_refusal(Reason.NOT_FOUND):
                when(room, BOB, body)
            continue
        facts = when(room, BOB, body)
        assert type(facts[0]) in {ContextAdded, ContextUpdated, ContextRemoved}
        room = after(room, facts)
        expected.pop(key, None) if what == "del" else expected.update({key: text})

    assert {key: each.content for key, each in room.shelf.get("", {}).items()} == expected
