"""What may lie on the shelf: how much, and under which keys."""

from typing import Any

import pytest

from accord.core.dialects.codes import CODES
from accord.core.kernel.actor import POLICY
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.content import LARGEST_ITEM
from accord.core.room.forks import ForkCreate
from accord.core.room.quota import OVERHEAD
from accord.core.room.state import House
from tests.helpers.room import ALICE, BOB, CLAUDE, prompts, refused, step, when
from tests.helpers.shelf import adds, item, ref, removes, some_room, updates
from tests.spec import proves

# Size


@proves("OPEN-40", "PVP-17-9")
@pytest.mark.parametrize(
    ("just", "more"),
    [
        ("x" * LARGEST_ITEM, "x" * (LARGEST_ITEM + 1)),
        ("ö" * (LARGEST_ITEM // 2), "ö" * (LARGEST_ITEM // 2 + 1)),
        ({"k": "x" * (LARGEST_ITEM - 8)}, {"k": "x" * (LARGEST_ITEM - 7)}),
    ],
    ids=["letters", "umlauts", "object"],
)
def test_one_mebibyte_is_the_most(just: Any, more: Any) -> None:
    room = some_room(step(BOB, adds(just)))

    for body in (adds(more, key="other"), adds(more), updates(new_content=more)):
        with pytest.raises(Refused) as no:
            when(room, BOB, body)
        assert CODES[no.value.why].pvp == "CONTEXT_TOO_LARGE"
        assert no.value.details == {"limit": "context_item", "most": 1 << 20}


@proves("OPEN-40")
def test_a_diff_cannot_make_it_larger_than_that() -> None:
    room = some_room(step(BOB, adds("x" * (LARGEST_ITEM - 1) + "\n")))

    with refused(Why.TOO_LARGE):
        when(room, BOB, updates(diff="@@ -1,0 +2 @@\n+y\n"))


def test_all_of_it_together_has_a_bound_which_forks_do_not_widen() -> None:
    empty = 2 * (OVERHEAD + 1)  # two items without content
    house = House(limits=Limits(context=empty + 10))
    fork = ForkCreate("Try", "prompt", "To see", (), copy_context=True)
    script = (step(BOB, prompts(), id="prompt"), step(BOB, adds("four")))
    room, forked = some_room(*script), some_room(*script, step(ALICE, fork))

    assert when(room, BOB, adds("x" * (10 + OVERHEAD + 1)), house=house)
    assert when(room, BOB, adds("x" * 6, key="b"), house=house)
    with refused(Why.TOO_LARGE, f"full: a session's context may have {empty + 10} bytes"):
        when(room, BOB, adds("x" * 7, key="b"), house=house)
    assert when(forked, ALICE, updates(new_content="x" * 6), fork="try", house=house)
    with refused(Why.TOO_LARGE):
        when(forked, ALICE, updates(new_content="x" * 7), fork="try", house=house)
    with refused(Why.TOO_LARGE):
        when(room, BOB, adds(None, key="b", content_ref=ref(b"far away")), house=house)


# Reserved keys


TASK = {
    "id": "t1",
    "title": "Tokens",
    "status": "in_progress",
    "priority": "high",
    "created_at": "2026-01-30T20:00:00Z",
    "updated_at": "2026-01-30T20:00:00Z",
}
MORE = {"description": "Sign them", "completed_at": None, "mood": "fine"}
TASKS = {"goal": {"goal": "Ship", "set_by": "claude"}, "tasks": [TASK, TASK | MORE]}
KEY = "session:tasks"


@proves("OPEN-41", "PVP-9.4-2")
@pytest.mark.parametrize("key", ["session:", "session:notes", KEY])
def test_the_session_s_own_keys_are_not_for_people(key: str) -> None:
    held = some_room(step(CLAUDE, adds(TASKS, key=key)))

    for body in (adds(TASKS, key=key), updates(key, new_content=TASKS), removes(key)):
        with refused(Why.FORBIDDEN, "belong to agents"):
            when(held, ALICE, body)
        assert when(held, CLAUDE, body)


@proves("OPEN-41")
def test_agents_and_the_server_write_them() -> None:
    room = some_room()

    for who in (CLAUDE, POLICY):
        assert when(room, who, adds(TASKS, key=KEY))
    assert when(room, ALICE, adds(key="session"))
    assert when(room, ALICE, adds(key="my session:notes"))


@proves("PVP-9.4-1", "OPEN-41")
@pytest.mark.parametrize(
    "content", [TASKS, {"goal": None, "tasks": []}, {"goal": "Ship", "tasks": [], "more": 1}]
)
def test_the_tasks_are_a_goal_and_tasks(content: Any) -> None:
    room = some_room(step(CLAUDE, adds(content, key=KEY)))

    assert item(room, KEY).content == content
    assert when(room, CLAUDE, updates(KEY, new_content=TASKS))


BAD_TASKS: list[Any] = [
    "goal",
    {},
    {"goal": "Ship"},
    {"tasks": []},
    {"goal": 7, "tasks": []},
    {"goal": "", "tasks": {}},
    {"goal": "", "tasks": [TASK | {"id": ""}]},
    {"goal": "", "tasks": [TASK | {"status": "stuck"}]},
    {"goal": "", "tasks": [TASK | {"priority": 1}]},
    {"goal": "", "tasks": [TASK | {"description": 7}]},
    *({"goal": "", "tasks": [{k: v for k, v in TASK.items() if k != gone}]} for gone in TASK),
]


@proves("PVP-9.4-1", "OPEN-41")
@pytest.mark.parametrize("content", BAD_TASKS)
def test_the_tasks_are_never_anything_else(content: Any) -> None:
    room = some_room(step(CLAUDE, adds(TASKS, key=KEY)))

    for body in (adds(content, key=KEY), updates(KEY, new_content=content)):
        with refused(Why.MALFORMED, KEY):
            when(room, CLAUDE, body)


@proves("PVP-9.4-1", "OPEN-41")
def test_the_tasks_are_structured_and_here() -> None:
    room = some_room(step(CLAUDE, adds(TASKS, key=KEY)))

    for body in (
        adds(TASKS, key=KEY, content_type="text"),
        adds(None, key=KEY, content_type="structured", content_ref=ref()),
        updates(KEY, new_content_ref=ref()),
    ):
        with refused(Why.MALFORMED, KEY):
            when(room, CLAUDE, body)
    with refused(Why.WRONG_STATE, "not text"):
        when(room, CLAUDE, updates(KEY, diff="@@ -1 +1 @@\n-a\n+b\n"))
