"""A pact as a session reads it."""

import json
from typing import Any

import msgspec
import pytest

from accord.core.room.content import Tasks
from accord.core.views.tasks import CALLED, LARGEST, LONGEST, MOST_TASKS, Times, content, short
from accord.core.work.state import Task, Work
from accord.core.work.words import Status
from tests.spec import proves

TIMES = Times("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")


def work(*tasks: Task) -> Work:
    return Work("shop", tasks={each.id: each for each in tasks})


def task(id: str = "T1", status: Status = Status.IN_PROGRESS, **more: Any) -> Task:
    made = Task(id, "cart", "bob", "ann", "t.md", status=status)
    return msgspec.structs.replace(made, **more)


def told(*tasks: Task) -> dict[str, Any]:
    made = work(*tasks)
    open_ = dict.fromkeys(t.id for t in tasks if t.status is not Status.ACCEPTED)
    shown = content(made, open_, dict.fromkeys(made.tasks, TIMES), "repo-1")
    msgspec.convert(json.loads(json.dumps(shown)), Tasks)
    return shown


@proves("UNI-17")
@pytest.mark.parametrize("status", Status)
def test_each_state_has_its_name_in_a_session(status: Status) -> None:
    (row,) = told(task(status=status))["tasks"]

    assert row["status"] == CALLED[status]
    assert row["pact"]["status"] == status
    assert ("completed_at" in row) is (status is Status.ACCEPTED)


def test_a_task_says_whose_it_is_and_what_was_shown_or_asked() -> None:
    shown, asked = told(task(evidence="12 pass"), task("T2", reason="more", returned=True))["tasks"]

    assert shown["title"] == "cart: T1"
    assert shown["description"] == "12 pass"
    assert shown["pact"]["owner"] == "bob"
    assert shown["pact"]["reviewer"] == "ann"
    assert asked["description"] == "more"
    assert (shown["created_at"], shown["updated_at"]) == TIMES[:2]


def test_of_many_tasks_the_open_ones_and_the_newest_are_shown() -> None:
    many = [task(f"T{n}", Status.ACCEPTED) for n in range(MOST_TASKS + 5)]
    found = told(task("first"), *many)

    ids = [row["id"] for row in found["tasks"]]
    assert ids == ["first", *(f"T{n}" for n in range(6, MOST_TASKS + 5))]
    assert found["left_out"] == 6


def test_a_task_whose_name_could_be_mistaken_is_not_shown() -> None:
    found = told(task("../x"), task())

    assert [row["id"] for row in found["tasks"]] == ["T1"]
    assert found["left_out"] == 1
    assert found["goal"] == "shop"
    assert content(Work(), {}, {}, "r") == {"goal": None, "tasks": [], "pact": "r"}


def test_long_words_end_early() -> None:
    assert short("x" * LONGEST) == "x" * LONGEST
    assert short("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"


def test_a_long_goal_ends_early_as_well() -> None:
    assert content(Work(project="x" * 999), {}, {}, "r")["goal"] == short("x" * 999)


def test_however_long_its_words_are_a_pact_has_an_end() -> None:
    words = "\x00" * LONGEST
    every = [task(f"T{n}", evidence=words, spec=words, reviewer=words) for n in range(MOST_TASKS)]
    done = [task(f"D{n}", Status.ACCEPTED) for n in range(9)]
    found = told(*every, *done)

    assert len(json.dumps(found)) < LARGEST + 1000
    ids = [row["id"] for row in found["tasks"]]
    assert 0 < len(ids) < MOST_TASKS
    assert ids == [each.id for each in every[-len(ids) :]]
    assert found["left_out"] == MOST_TASKS + 9 - len(ids)
