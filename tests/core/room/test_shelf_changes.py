"""How what lies on the shelf is changed and removed."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects.codes import CODES
from accord.core.kernel.log import fold
from accord.core.kernel.refusal import Why
from accord.core.room import CONTEXT
from accord.core.room.forks import ForkCreate
from accord.core.room.shelf import (
    ContextAdd,
    ContextAdded,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
    ContextUpdated,
)
from accord.core.room.state import ContentRef
from tests.core.dialects.wire import QUICK
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, after, prompts, refused, step, when
from tests.helpers.shelf import adds, heard, item, ref, removes, some_room, updates
from tests.spec import proves

# Changing and removing


@proves("PVP-9.3-1", "OPEN-40")
@pytest.mark.parametrize(
    ("body", "content", "content_ref"),
    [
        (updates(diff="@@ -2 +2 @@\n-two\n+2\n"), "one\n2\n", None),
        (updates(new_content="new"), "new", None),
        (updates(new_content=""), "", None),
        (updates(new_content={"a": 1}), {"a": 1}, None),
        (updates(new_content_ref=ref(b"x")), None, ref(b"x")),
    ],
)
def test_it_is_changed_by_a_diff_by_content_or_by_reference(
    body: ContextUpdate, content: Any, content_ref: ContentRef | None
) -> None:
    room = some_room(step(BOB, adds(content_ref=ref(b"one\ntwo\n"))), step(CLAUDE, body))

    assert (item(room).content, item(room).content_ref) == (content, content_ref)


@proves("OPEN-40")
@pytest.mark.parametrize(
    "ways",
    [
        {"diff": None},
        {"diff": "", "new_content": ""},
        {"diff": "", "new_content_ref": ref()},
        {"new_content": {}, "new_content_ref": ref()},
        {"diff": "", "new_content": "", "new_content_ref": ref()},
    ],
)
def test_it_is_changed_in_exactly_one_way(ways: dict[str, Any]) -> None:
    with refused(Why.MALFORMED, "exactly one"):
        when(some_room(step(BOB, adds())), BOB, updates(**ways))


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
    elsewhere = ref(b"x") if content is None else None
    room = some_room(step(BOB, adds(content, content_ref=elsewhere)))

    with refused(Why.WRONG_STATE):
        when(room, BOB, updates(diff=diff))

    assert CODES[Why.WRONG_STATE].pvp == "INVALID_STATE"


@proves("PVP-9.3-1")
def test_what_is_removed_is_gone_and_its_key_free() -> None:
    room = some_room(step(BOB, adds()), step(CAROL, removes()))

    assert room.shelf[""] == {}
    assert not room.removed[""], "no open fork will ask for it"
    for body in (updates(), removes()):
        with refused(Why.UNKNOWN):
            when(room, BOB, body)
    assert when(room, CAROL, adds())


def test_a_fork_has_a_shelf_of_its_own() -> None:
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=True)
    room = some_room(
        step(BOB, prompts(), id="prompt"),
        step(BOB, adds("trunk")),
        step(ALICE, fork),
        step(CLAUDE, updates(new_content="fork"), fork="try"),
        step(ALICE, adds("more", key="more"), fork="try"),
    )

    added = when(room, CLAUDE, adds(key="other"), fork="try")

    assert (item(room).content, item(room, fork="try").content) == ("trunk", "fork")
    assert "more" not in room.shelf[""]
    assert heard(room, added) == {"alice", "claude"}
    with refused(Why.UNKNOWN, "There is no context more here"):
        when(room, ALICE, removes("more"))


# Folding


def test_a_log_that_changes_what_is_not_there_or_does_not_fit_still_folds() -> None:
    room = some_room(step(BOB, adds("other")))
    misfit = when(some_room(step(BOB, adds("a\n"))), BOB, updates(diff="@@ -1 +1 @@\n-a\n+b\n"))
    absent = when(some_room(step(BOB, adds(key="x"))), BOB, updates("x"))
    gone = when(some_room(step(BOB, adds(key="x"))), BOB, removes("x"))

    assert [type(facts[0]) for facts in (misfit, absent, gone)] == [
        *(ContextUpdated, ContextUpdated, ContextRemoved),
    ]
    assert fold(CONTEXT, room, misfit.records) == room
    assert fold(CONTEXT, room, absent.records) == room
    assert fold(CONTEXT, room, gone.records).shelf == room.shelf


@QUICK
@for_all(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "set", "del"]))))
def test_the_shelf_is_what_its_history_says(script: list[tuple[str, str]]) -> None:
    room, expected = some_room(), dict[str, str]()
    for number, (key, what) in enumerate(script):
        text = str(number)
        body: ContextAdd | ContextUpdate | ContextRemove = {
            "add": adds(text, key=key),
            "set": updates(key, new_content=text),
            "del": removes(key),
        }[what]  # type: ignore[assignment]
        if what != "add" and key not in expected:
            with refused(Why.UNKNOWN):
                when(room, BOB, body)
            continue
        facts = when(room, BOB, body)
        assert type(facts[0]) in {ContextAdded, ContextUpdated, ContextRemoved}
        room = after(room, facts)
        expected.pop(key, None) if what == "del" else expected.update({key: text})

    assert {key: each.content for key, each in room.shelf.get("", {}).items()} == expected
