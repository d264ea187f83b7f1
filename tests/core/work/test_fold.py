"""Any log folds to one state; what breaks a rule changes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.core.work.fold import Fold, fold, parse_version
from accord.core.work.foreign_events import fold_with_foreign_events
from accord.core.work.format import log_lines
from accord.core.work.format.state_and_task_files import render_state_yml
from accord.core.work.vocabulary import FeatureStage, TaskStatus
from tests.core.work.story import ANN, BOB, CY, assigned, folded, line, log, skipped
from tests.spec import proves

DATA = Path(__file__).parents[2] / "data" / "pact"
SEATS = [{"id": ANN, "roles": ["orchestrator"], "entry": "A.md"}]


def real(name: str) -> bytes:
    return (DATA / name).read_bytes()


@proves("PACT-1-2", "PACT-3.2-1", "PACT-3.2-2", "OPEN-98", "PACT-1.2-3")
def test_a_real_log_renders_to_the_state_that_its_own_tool_wrote() -> None:
    work = fold(log_lines.parse_log(real("golden53.log.jsonl")).entries)

    assert render_state_yml(work).encode() == real("golden53.STATE.yml")


# What each real log holds, and the lines in it that break a rule.
REAL = {
    "pactify-log.jsonl": (118, 12, []),
    "golden53.log.jsonl": (53, 4, []),
    "events-golden.jsonl": (17, 2, []),
    "showcase.log.jsonl": (15, 2, []),
    "log-excerpt-mid-start.jsonl": (11, 1, []),
    "log-excerpt-mid-withdraw.jsonl": (14, 1, [(6, "e"), (7, "e"), (8, "e"), (9, "e")]),
    "log-excerpt-tail.jsonl": (51, 12, [(1, "unknown"), (2, "unknown"), (19, "state")]),
}


@proves("PACT-1.2-1", "PACT-1.2-2", "PACT-2.2-1", "PACT-2.2-2", "OPEN-134", "OPEN-103")
@pytest.mark.parametrize("name", REAL)
def test_real_logs_of_other_tools_fold(name: str) -> None:
    reading = log_lines.parse_log(real(name))
    made = Fold().add(reading.entries)

    broken = [(each.line, each.check) for each in made.skipped]

    assert reading.faults == []
    assert REAL[name] == (len(reading.entries), len(made.work().features), broken)


@proves("PACT-2.1-5")
def test_a_role_that_contradicts_its_event_is_not_believed() -> None:
    data = real("showcase.log.jsonl")
    lines = [found for _, found in log_lines.parse_objects(data)]
    claims = {each["role"] for each in lines if each["event_type"] == "join"}
    told = fold(log_lines.parse_log(data).entries)

    assert claims == {"worker", "orchestrator"}
    assert told.tasks["t1"].status is TaskStatus.ACCEPTED
    for claim in ("orchestrator", "reviewer", "god"):
        assert told == fold(
            log_lines.parse_log(log(*(each | {"role": claim} for each in lines))).entries
        )


@proves("OPEN-107")
def test_the_extended_view_knows_what_other_tools_added() -> None:
    entries = log_lines.parse_log(real("events-golden.jsonl")).entries
    golden = json.loads(real("state-golden.json"))

    def shape(work: Any) -> list[list[str]]:
        return [[t.id, t.owner, t.status, t.evidence] for t in work.tasks.values()]

    wanted = [
        [task["id"], task["owner"], task["status"], task["evidence"]]
        for feature in golden["features"]
        for task in feature["tasks"]
    ]
    assert shape(fold_with_foreign_events(entries)) == wanted
    assert [seat.id for seat in fold_with_foreign_events(entries).seats] == [
        a["id"] for a in golden["agents"]
    ]
    assert [seat.id for seat in fold(entries).seats] == ["claude", "opencode"]


@proves("OPEN-107")
def test_version_one_passes_later_events_by_and_the_extended_view_does_not() -> None:
    lines = [
        line("init", seats=SEATS, base_branch="main"),
        assigned("T1", at=1),
        assigned("T2", at=1),
        assigned("T3", feature="G", at=1),
        assigned("T4", at=1),
        line("start", ANN, "T1", "F", at=2),
        line("start", ANN, "T1", "F", at=3),
        line("cancel", ANN, "T2", "F", at=3),
        line("cancel", ANN, "T9", "F", at=3),
        line("checkpoint", BOB, "T4", "F", evidence="x", at=3),
        line("cancel", ANN, "T4", "F", at=4),
        line("withdraw", ANN, "", "G", at=4),
        line("withdraw", ANN, "", "nothing", at=4),
        line("add-seat", ANN, id="x", at=5) | {"payload": {"id": "dee", "roles": ["worker"]}},
        line("add-seat", ANN, id="y", at=5) | {"payload": {"id": "dee", "roles": ["reviewer"]}},
        line("rebaseline", ANN, base_branch="trunk", at=6),
    ]
    later = fold_with_foreign_events(log_lines.parse_log(log(*lines)).entries)
    v1 = folded(*lines)

    assert {id: task.status.value for id, task in v1.tasks.items()} == {
        **dict.fromkeys(("T1", "T2", "T3"), "assigned"),
        "T4": "awaiting_review",
    }
    assert {id: task.status.value for id, task in later.tasks.items()} == {
        "T1": "in_progress",
        "T4": "awaiting_review",
    }
    assert (v1.base_branch, later.base_branch) == ("main", "trunk")
    assert [(seat.id, seat.roles) for seat in later.seats][1:] == [("dee", ("worker",))]
    assert "G" not in later.features


def test_a_feature_without_tasks_is_planned() -> None:
    lines = [assigned("T1"), line("cancel", ANN, "T1", "F", at=1), line("merge", feature="F", at=2)]

    work = fold_with_foreign_events(log_lines.parse_log(log(*lines)).entries)

    assert work.stage(work.features["F"]) is FeatureStage.PLANNED


@proves("PACT-4.1-1", "PACT-4.1-2", "PACT-4.2-1", "OPEN-95", "OPEN-96", "OPEN-97")
def test_a_task_and_its_feature_go_their_way() -> None:
    lines, seen = [line("init", seats=SEATS)], list[tuple[str, str]]()
    for made in (
        assigned(at=1),
        line("join", BOB, at=2),
        line("checkpoint", BOB, "T1", "F", evidence="one", at=3),
        line("changes_requested", ANN, "T1", "F", reason="more", at=4),
        line("join", BOB, at=5),
        line("checkpoint", BOB, "T1", "F", evidence="two", at=6),
        line("accept", ANN, "T1", "F", at=7),
        line("merge", ANN, feature="F", at=8),
    ):
        lines.append(made)
        work = folded(*lines)
        seen.append((work.tasks["T1"].status.value, work.stage(work.features["F"]).value))

    assert seen == [
        ("assigned", "in_progress"),
        ("in_progress", "in_progress"),
        ("awaiting_review", "awaiting_review"),
        ("changes_requested", "in_progress"),
        ("in_progress", "in_progress"),
        ("awaiting_review", "awaiting_review"),
        ("accepted", "accepted"),
        ("accepted", "shipped"),
    ]


@proves("OPEN-97")
def test_existing_tools_show_changes_until_something_new_is_shown_and_so_do_we() -> None:
    lines = [
        assigned(),
        line("checkpoint", BOB, "T1", evidence="one", at=3),
        line("changes_requested", ANN, "T1", reason="more", at=4),
        line("join", BOB, at=5),
    ]

    assert "status: changes_requested" in render_state_yml(folded(*lines))
    assert folded(*lines).tasks["T1"].reason == "more"


@proves("OPEN-96", "PACT-8-2")
def test_a_join_lifts_all_assigned_tasks_of_its_seat_and_no_other() -> None:
    work = folded(
        assigned("T1"),
        assigned("T2"),
        assigned("T3", owner=CY),
        assigned("T4"),
        line("checkpoint", BOB, "T4", evidence="x", at=1),
        line("join", BOB, at=2),
        line("join", BOB, at=3),
        assigned("T5", at=4),
    )

    assert {id: task.status.value for id, task in work.tasks.items()} == {
        "T1": "in_progress",
        "T2": "in_progress",
        "T3": "assigned",
        "T4": "awaiting_review",
        "T5": "assigned",
    }


@proves("PACT-4.1-3", "PACT-5-2", "PACT-5-3", "OPEN-95", "OPEN-103")
def test_what_breaks_a_rule_changes_nothing() -> None:
    lines = [
        line("init", project="one", seats=SEATS),
        line("init", project="two", seats=[], at=1),
        assigned("T1", at=2),
        assigned("T1", owner=CY, at=3),
        assigned("T2", owner=ANN, reviewer=ANN, at=3),
        line("accept", ANN, "T1", at=4),
        line("checkpoint", CY, "T1", evidence="not mine", at=5),
        line("checkpoint", BOB, "T9", evidence="what", at=5),
        line("accept", ANN, "T9", at=5),
        line("checkpoint", BOB, "T1", evidence="mine", at=6),
        line("accept", BOB, "T1", at=7),
        line("accept", CY, "T1", at=7),
        line("merge", feature="F", at=8),
        line("merge", feature="G", at=8),
        line("accept", ANN, "T1", at=9),
        line("checkpoint", BOB, "T1", evidence="again", at=10),
        line("changes_requested", ANN, "T1", at=11),
        line("checkpoint", ANN, "T2", evidence="mine", at=12),
        line("accept", ANN, "T2", at=13),
        line("merge", feature="F", at=14),
    ]

    assert [(at, rule) for at, rule in skipped(*lines)] == [
        *[(2, "roster"), (4, "e"), (6, "state"), (7, "rule1"), (8, "unknown"), (9, "unknown")],
        *[(11, "rule1"), (12, "rule1"), (13, "rule2"), (14, "unknown"), (16, "state")],
        *[(17, "state"), (19, "rule1"), (20, "rule2")],
    ]
    assert folded(*lines).tasks["T1"].evidence == "mine"
    assert folded(*lines).project == "one"


@proves("OPEN-98")
def test_a_shipped_feature_ships_once_and_takes_no_more() -> None:
    done = [
        assigned("T1"),
        line("checkpoint", BOB, "T1", evidence="x", at=1),
        line("accept", ANN, "T1", at=2),
        line("merge", feature="F", at=3),
        line("merge", feature="F", at=4),
        assigned("T2", at=5),
    ]

    assert skipped(*done) == [(5, "state"), (6, "state")]


@proves("OPEN-98")
def test_a_new_task_takes_an_accepted_feature_back_to_work() -> None:
    done = [
        assigned("T1"),
        line("checkpoint", BOB, "T1", evidence="x", at=1),
        line("accept", ANN, "T1", at=2),
    ]
    before, after = folded(*done), folded(*done, assigned("T2", at=3))

    assert before.stage(before.features["F"]) is FeatureStage.ACCEPTED
    assert after.stage(after.features["F"]) is FeatureStage.IN_PROGRESS
    assert after.features["F"].branch == "feat"


@proves("PACT-2.5-1", "PACT-2.1-2", "OPEN-103", "OPEN-104", "UNI-25")
def test_events_are_folded_by_instant_then_place_and_repeats_once() -> None:
    shown = line("checkpoint", BOB, "T1", evidence="x", at=9) | {
        "ts": "2026-01-01T01:09:00.5+01:00"
    }
    again = assigned("T1", id="same", at=0)
    lines = [
        line("accept", ANN, "T1", at=10),
        shown,
        again,
        assigned("T2", at=0),
        again | {"ts": "2026-01-01T23:00:00Z"},
    ]

    work = folded(*lines)

    assert work.tasks["T1"].status is TaskStatus.ACCEPTED
    assert list(work.tasks) == ["T1", "T2"]
    assert skipped(*lines) == []


@proves("PACT-1.2-5", "OPEN-105")
def test_old_logs_without_ids_fold() -> None:
    lines = [assigned("T1"), line("join", BOB, at=1)]
    for each in lines:
        del each["event_id"]

    assert folded(*lines).tasks["T1"].status is TaskStatus.IN_PROGRESS


@proves("PACT-6.2-1", "OPEN-101")
def test_the_first_init_gives_the_roster_and_the_highest_version_decides() -> None:
    lines = [
        line("init", project="one", seats=SEATS, base_branch="main", protocol_version=1),
        line("init", project="two", seats=[], base_branch="x", protocol_version=3, at=1),
        line("join", CY, roles=["worker"], at=2),
    ]
    work = folded(*lines)

    assert (work.project, work.base_branch, [seat.id for seat in work.seats]) == (
        *("one", "main"),
        [ANN],
    )
    assert (work.protocol, work.too_new) == (3, True)


@proves("PACT-1.1-1")
@pytest.mark.parametrize(
    ("given", "read"),
    [(1, 1), ("2", 2), (None, 0), ("new", 0), ([], 0), (-4, 0), (10**40, 10**9), (2.5, 2)],
)
def test_a_version_is_a_number_or_none(given: object, read: int) -> None:
    assert parse_version(given) == read


def test_fold_reads_what_it_can_of_malformed_seats() -> None:
    seats = ["x", {"id": 4}, {"id": "ok", "roles": ["worker", 3], "entry": 5, "key": "k"}]

    (seat,) = folded(line("init", seats=seats)).seats

    assert (seat.id, seat.roles, seat.entry, seat.key) == ("ok", ("worker",), "", "k")
    assert folded(line("init", seats="none")).seats == ()


def test_folding_goes_on_as_if_it_had_never_stopped() -> None:
    entries = log_lines.parse_log(real("pactify-log.jsonl")).entries
    for cut in range(0, len(entries), 7):
        assert Fold().add(entries[:cut]).add(entries[cut:]).work() == fold(entries)
