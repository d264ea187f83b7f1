"""A pact as a session reads it."""

import json
from typing import Any

import msgspec
import pytest

from accord.core.room.shared_context.item_content import SessionTasks
from accord.core.views.session_tasks import (
    MAX_CONTENT_BYTES,
    MAX_TASKS,
    MAX_TEXT_LENGTH,
    SESSION_STATUS,
    TaskTimes,
    tasks_content,
    truncate,
)
from accord.core.work.state import Task, Work
from accord.core.work.vocabulary import TaskStatus
from tests.spec import proves

TIMES = TaskTimes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")


def work(*tasks: Task) -> Work:
    return Work("shop", tasks={each.id: each for each in tasks})


def task(id: str = "T1", status: TaskStatus = TaskStatus.IN_PROGRESS, **more: Any) -> Task:
    made = Task(id, "cart", "bob", "ann", "t.md", status=status)
    return msgspec.structs.replace(made, **more)


def told(*tasks: Task) -> dict[str, Any]:
    made = work(*tasks)
    open_ = dict.fromkeys(t.id for t in tasks if t.status is not TaskStatus.ACCEPTED)
    shown = tasks_content(made, open_, dict.fromkeys(made.tasks, TIMES), "repo-1")
    msgspec.convert(json.loads(json.dumps(shown)), SessionTasks)
    return shown


@proves("UNI-17")
@pytest.mark.parametrize("status", TaskStatus)
def test_each_state_has_its_name_in_a_session(status: TaskStatus) -> None:
    (row,) = told(task(status=status))["tasks"]

    assert row["status"] == SESSION_STATUS[status]
    assert row["pact"]["status"] == status
    assert ("completed_at" in row) is (status is TaskStatus.ACCEPTED)


def test_a_task_says_whose_it_is_and_what_was_shown_or_asked() -> None:
    shown, asked = told(task(evidence="12 pass"), task("T2", reason="more", returned=True))["tasks"]

    assert shown["title"] == "cart: T1"
    assert shown["description"] == "12 pass"
    assert shown["pact"]["owner"] == "bob"
    assert shown["pact"]["reviewer"] == "ann"
    assert asked["description"] == "more"
    assert (shown["created_at"], shown["updated_at"]) == TIMES[:2]


def test_of_many_tasks_the_open_ones_and_the_newest_are_shown() -> None:
    many = [task(f"T{n}", TaskStatus.ACCEPTED) for n in range(MAX_TASKS + 5)]
    found = told(task("first"), *many)

    ids = [row["id"] for row in found["tasks"]]
    assert ids == ["first", *(f"T{n}" for n in range(6, MAX_TASKS + 5))]
    assert found["left_out"] == 6


def test_a_task_whose_name_could_be_mistaken_is_not_shown() -> None:
    found = told(task("../x"), task())

    assert [row["id"] for row in found["tasks"]] == ["T1"]
    assert found["left_out"] == 1
    assert found["goal"] == "shop"
    assert tasks_content(Work(), {}, {}, "r") == {"goal": None, "tasks": [], "pact": "r"}


def test_long_task_texts_are_shortened() -> None:
    assert truncate("x" * MAX_TEXT_LENGTH) == "x" * MAX_TEXT_LENGTH
    assert truncate("x" * (MAX_TEXT_LENGTH + 1)) == "x" * (MAX_TEXT_LENGTH - 1) + "…"


def test_a_long_goal_ends_early_as_well() -> None:
    assert tasks_content(Work(project="x" * 999), {}, {}, "r")["goal"] == truncate("x" * 999)


def test_however_long_its_words_are_a_pact_has_an_end() -> None:
    words = "\x00" * MAX_TEXT_LENGTH
    every = [task(f"T{n}", evidence=words, spec=words, reviewer=words) for n in range(MAX_TASKS)]
    done = [task(f"D{n}", TaskStatus.ACCEPTED) for n in range(9)]
    found = told(*every, *done)

    assert len(json.dumps(found)) < MAX_CONTENT_BYTES + 1000
    ids = [row["id"] for row in found["tasks"]]
    assert 0 < len(ids) < MAX_TASKS
    assert ids == [each.id for each in every[-len(ids) :]]
    assert found["left_out"] == MAX_TASKS + 9 - len(ids)
