"""What may lie on the shelf: how much, and under which keys."""

from typing import Any

import pytest

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.shared_context.context_quota import ITEM_OVERHEAD_BYTES
from accord.core.room.shared_context.item_content import MAX_ITEM_BYTES
from tests.helpers.room.context_scenarios import (
    context_add,
    context_item,
    context_remove,
    context_update,
    make_content_ref,
    room_with_observer,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    expect_refusal,
    prompt_submit,
    script_step,
    when,
)
from tests.spec import proves

# Size


@proves("OPEN-40", "PVP-17-9")
@pytest.mark.parametrize(
    ("just", "more"),
    [
        ("x" * MAX_ITEM_BYTES, "x" * (MAX_ITEM_BYTES + 1)),
        ("ö" * (MAX_ITEM_BYTES // 2), "ö" * (MAX_ITEM_BYTES // 2 + 1)),
        ({"k": "x" * (MAX_ITEM_BYTES - 8)}, {"k": "x" * (MAX_ITEM_BYTES - 7)}),
    ],
    ids=["letters", "umlauts", "object"],
)
def test_item_larger_than_one_mebibyte_is_refused(just: Any, more: Any) -> None:
    room = room_with_observer(script_step(BOB, context_add(just)))

    for body in (
        context_add(more, key="other"),
        context_add(more),
        context_update(new_content=more),
    ):
        with pytest.raises(Refused) as no:
            when(room, BOB, body)
        assert ERROR_CODES[no.value.reason].pvp == "CONTEXT_TOO_LARGE"
        assert no.value.details == {"limit": "context_item", "most": 1 << 20}


@proves("OPEN-40")
def test_a_diff_cannot_make_it_larger_than_that() -> None:
    room = room_with_observer(script_step(BOB, context_add("x" * (MAX_ITEM_BYTES - 1) + "\n")))

    with expect_refusal(Reason.TOO_LARGE):
        when(room, BOB, context_update(diff="@@ -1,0 +2 @@\n+y\n"))


def test_all_of_it_together_has_a_bound_which_forks_do_not_widen() -> None:
    empty = 2 * (ITEM_OVERHEAD_BYTES + 1)  # two items without content
    house = ServerPolicy(limits=Limits(context=empty + 10))
    fork = ForkCreate("Try", "prompt", "To see", (), copy_context=True)
    script = (script_step(BOB, prompt_submit(), id="prompt"), script_step(BOB, context_add("four")))
    room, forked = (
        room_with_observer(*script),
        room_with_observer(*script, script_step(ALICE, fork)),
    )

    assert when(room, BOB, context_add("x" * (10 + ITEM_OVERHEAD_BYTES + 1)), policy=house)
    assert when(room, BOB, context_add("x" * 6, key="b"), policy=house)
    with expect_refusal(
        Reason.TOO_LARGE, f"full: a session's context may have at most {empty + 10} bytes"
    ):
        when(room, BOB, context_add("x" * 7, key="b"), policy=house)
    assert when(forked, ALICE, context_update(new_content="x" * 6), fork="try", policy=house)
    with expect_refusal(Reason.TOO_LARGE):
        when(forked, ALICE, context_update(new_content="x" * 7), fork="try", policy=house)
    with expect_refusal(Reason.TOO_LARGE):
        when(
            room,
            BOB,
            context_add(None, key="b", content_ref=make_content_ref(b"far away")),
            policy=house,
        )


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
    held = room_with_observer(script_step(CLAUDE, context_add(TASKS, key=key)))

    for body in (
        context_add(TASKS, key=key),
        context_update(key, new_content=TASKS),
        context_remove(key),
    ):
        with expect_refusal(Reason.FORBIDDEN, "are for agents"):
            when(held, ALICE, body)
        assert when(held, CLAUDE, body)


@proves("OPEN-41")
def test_agents_and_the_server_write_the_session_s_own_keys() -> None:
    room = room_with_observer()

    for who in (CLAUDE, POLICY_ACTOR):
        assert when(room, who, context_add(TASKS, key=KEY))
    assert when(room, ALICE, context_add(key="session"))
    assert when(room, ALICE, context_add(key="my session:notes"))


@proves("PVP-9.4-1", "OPEN-41")
@pytest.mark.parametrize(
    "content", [TASKS, {"goal": None, "tasks": []}, {"goal": "Ship", "tasks": [], "more": 1}]
)
def test_the_tasks_are_a_goal_and_tasks(content: Any) -> None:
    room = room_with_observer(script_step(CLAUDE, context_add(content, key=KEY)))

    assert context_item(room, KEY).content == content
    assert when(room, CLAUDE, context_update(KEY, new_content=TASKS))


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
    room = room_with_observer(script_step(CLAUDE, context_add(TASKS, key=KEY)))

    for body in (context_add(content, key=KEY), context_update(KEY, new_content=content)):
        with expect_refusal(Reason.MALFORMED, KEY):
            when(room, CLAUDE, body)


@proves("PVP-9.4-1", "OPEN-41")
def test_the_tasks_are_structured_and_here() -> None:
    room = room_with_observer(script_step(CLAUDE, context_add(TASKS, key=KEY)))

    for body in (
        context_add(TASKS, key=KEY, content_type="text"),
        context_add(None, key=KEY, content_type="structured", content_ref=make_content_ref()),
        context_update(KEY, new_content_ref=make_content_ref()),
    ):
        with expect_refusal(Reason.MALFORMED, KEY):
            when(room, CLAUDE, body)
    with expect_refusal(Reason.WRONG_STATE, "not text"):
        when(room, CLAUDE, context_update(KEY, diff="@@ -1 +1 @@\n-a\n+b\n"))
