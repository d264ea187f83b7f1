"""`validate` finds everything, and says where."""

from pathlib import Path

import pytest

from accord.core.work.event import LogEntry
from accord.core.work.format import log_lines
from accord.core.work.ledger_validation import (
    ValidationFinding,
    check_future_times,
    conflicting_event_id,
    validate_log,
)
from tests.core.work.story import ANN, BOB, assigned, line, log
from tests.spec import proves

DATA = Path(__file__).parents[2] / "data" / "pact"
SEATS = [
    {"id": ANN, "roles": ["orchestrator", "reviewer"], "entry": "A.md"},
    {"id": BOB, "roles": ["worker"], "entry": "B.md"},
]
GOOD = line("init", project="p", protocol_version=1, seats=SEATS, base_branch="main") | {
    "role": "orchestrator"
}


def found(data: bytes) -> list[ValidationFinding]:
    return list(
        validate_log(
            log_lines.parse_log(data).entries,
            list(log_lines.parse_objects(data)),
            log_lines.parse_instant,
        )
    )


def checks(*lines: dict[str, object]) -> list[tuple[str, int]]:
    return [(each.check, each.line) for each in found(log(*lines)) if not each.warning]


def warned(*lines: dict[str, object]) -> list[tuple[str, int]]:
    return [(each.check, each.line) for each in found(log(*lines)) if each.warning]


@pytest.mark.parametrize("name", ["task_id", "feature", "owner", "branch", "spec"])
def test_a_name_that_forges_lines_or_steers_a_terminal_is_told(name: str) -> None:
    for bad in ("T1\n        status: accepted", "T\x1b[2J", "T\u202e1", "T\r1"):
        forged = assigned(at=1) | {"role": "orchestrator"}
        where = forged if name in forged else forged["payload"]
        where[name] = bad

        assert ("schema", 2) in checks(GOOD, forged)


def test_a_good_log_has_no_findings() -> None:
    shown = line("checkpoint", BOB, "T1", "F", evidence="x", at=2)

    assert found(log(GOOD, assigned(at=1) | {"role": "orchestrator"}, shown)) == []


@proves("PACT-7.1-12", "PACT-6.2-2", "OPEN-107")
def test_a_seat_that_nobody_declared_is_found_in_known_events_alone() -> None:
    lines = [GOOD, line("join", "eve", roles=[], at=1), line("start", "eve", at=2)]

    assert checks(*lines) == [("b", 2)]


@proves("PACT-7.1-13", "OPEN-95")
def test_bad_seats_are_found() -> None:
    seats = [
        {"id": "Ann", "roles": ["worker"], "entry": "A.md"},
        {"id": ANN, "roles": [], "entry": "/A.md"},
        {"id": ANN, "roles": ["boss"], "entry": "B.md"},
    ]
    bad = GOOD | {"payload": GOOD["payload"] | {"seats": seats}}

    assert [check for check, _ in checks(bad)] == ["c", "seat", "seat", "seat", "seat"]


@proves("PACT-7.1-14")
def test_an_owner_who_reviews_is_found() -> None:
    both = assigned(owner=BOB, reviewer=BOB, at=1)

    assert checks(GOOD, both) == [("d", 2)]


@proves("PACT-7.1-15", "PACT-6.4-1")
def test_a_task_id_that_is_used_twice_is_found() -> None:
    assert checks(GOOD, assigned(at=1), assigned(feature="G", at=2)) == [("e", 3)]


@proves("PACT-7.1-16", "OPEN-113")
def test_a_later_version_is_found() -> None:
    later = GOOD | {"payload": GOOD["payload"] | {"protocol_version": 2}}

    assert checks(later) == [("f", 0)]


@proves("PACT-7.1-17", "OPEN-105", "OPEN-107")
def test_events_without_an_id_are_found_whatever_their_kind() -> None:
    lines = [GOOD, line("start", at=1) | {"event_id": ""}, line("join", BOB, roles=[], at=2)]
    del lines[2]["event_id"]

    assert checks(*lines) == [("g", 2), ("g", 3)]


def test_every_finding_is_told_and_not_the_first() -> None:
    lines = [
        GOOD,
        line("join", "eve", roles=[], at=1),
        assigned(owner=BOB, reviewer=BOB, at=2),
        line("accept", BOB, "T1", "F", at=3),
        line("merge", ANN, feature="F", at=4),
        line("checkpoint", BOB, "T9", "F", evidence="x", at=5),
    ]

    assert checks(*lines) == [("b", 2), ("d", 3), ("rule1", 4), ("rule2", 5), ("unknown", 6)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ts": "yesterday"}, "ts 'yesterday' is not a valid time"),
        ({"ts": 4}, "ts is not of type str"),
        ({"payload": []}, "payload is not of type dict"),
        ({"payload": {}}, "payload.roles is missing"),
        ({"payload": {"roles": "x"}}, "payload.roles is not of type list"),
        ({"task_id": "T1"}, "task_id must be empty in join"),
        ({"feature": None}, "feature is not of type str"),
    ],
)
def test_a_line_that_is_not_as_the_schema_has_it_is_found(
    change: dict[str, object], said: str
) -> None:
    bad = line("join", BOB, roles=["worker"], at=1) | change

    assert [(f.check, f.line, f.sentence) for f in found(log(GOOD, bad))] == [("schema", 2, said)]


@pytest.mark.parametrize("agent", ["Eve!", 4, ["x"]])
def test_a_seat_that_can_be_none_is_found(agent: object) -> None:
    bad = line("join", BOB, roles=["worker"], at=1) | {"agent_id": agent}

    assert {check for check, _ in checks(GOOD, bad)} == {"b", "schema"}


def test_an_event_type_that_is_no_word_is_passed_by() -> None:
    strange = line("join", at=1) | {"event_type": ["x"]}

    assert checks(GOOD, strange, {"event_id": "x"}) == []


@proves("OPEN-103", "OPEN-99")
def test_what_a_merge_of_branches_leaves_is_a_warning() -> None:
    late = line("join", BOB, roles=["worker"], at=9)
    early = line("join", BOB, roles=["worker"], at=5)
    told = line("join", BOB, roles=["worker"], at=10, id="told") | {"role": "reviewer"}
    lines = [GOOD, late, early, late, told, GOOD | {"event_id": "again"}]

    assert checks(*lines) == []
    assert warned(*lines) == [("role", 5), ("init", 6), ("id", 4), ("order", 3), ("order", 6)]


def test_one_id_for_two_events_is_no_warning() -> None:
    one = line("join", BOB, roles=["worker"], at=1, id="one")

    assert checks(GOOD, one, one | {"agent_id": ANN}) == [("id", 3)]


@proves("PACT-7.1-12", "PACT-8-3")
def test_the_faults_of_a_real_log_are_found() -> None:
    real = found((DATA / "pactify-log.jsonl").read_bytes())
    wrong = {each.sentence for each in real if each.check == "b"}

    assert wrong == {
        f"{name} is not a declared seat"
        for name in ("oc-acfg", "oc-finish", "oc-recipe", "oc-recipeserve", "oc-sessions")
    }
    assert {each.check for each in real if not each.warning} == {"b"}


def test_entries_out_of_line_order_are_put_back_to_compare_them() -> None:
    entries = [
        LogEntry("b", 2, log_lines.event_from_object({})),
        LogEntry("a", 1, log_lines.event_from_object({})),
    ]

    assert list(validate_log(entries, [], log_lines.parse_instant)) == []


def test_a_line_from_the_future_is_told() -> None:
    entries = log_lines.parse_log(log(GOOD, assigned(at=1), assigned("T2", at=30))).entries

    assert [each.line for each in check_future_times(entries, "2026-01-01T00:10:00")] == [3]
    assert all(each.warning for each in check_future_times(entries, ""))


def test_an_id_is_contested_when_two_lines_say_different_things_under_it() -> None:
    one, other = assigned(at=1), line("noop", BOB, id=assigned(at=1)["event_id"])
    nameless = [line("join", by) | {"event_id": ""} for by in (ANN, BOB)]

    assert conflicting_event_id(list(log_lines.parse_objects(log(GOOD, one, one, *nameless)))) == ""
    assert (
        conflicting_event_id(list(log_lines.parse_objects(log(GOOD, one, other))))
        == one["event_id"]
    )
