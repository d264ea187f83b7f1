"""A ledger's bytes as events to mirror."""

import json
from pathlib import Path

import pytest

from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from accord.core.work.format.mirror_lines import (
    MAX_FAULTS,
    MAX_TEXT_LENGTH,
    digest_prefix,
    parse_sources,
)
from accord.core.work.mirror import MAX_LINE_LENGTH, event_key
from accord.core.work.vocabulary import TaskStatus
from accord.pact.mirror.mirrored_work import fold_lines
from tests.core.work.story import ANN, BOB, assigned, line, log
from tests.spec import proves

DATA = Path(__file__).parents[3] / "data" / "pact"
REAL = sorted(path.name for path in DATA.glob("*.jsonl"))


@proves("UNI-7", "OPEN-137")
@pytest.mark.parametrize("name", REAL)
def test_what_is_mirrored_of_a_real_log_comes_to_what_the_log_comes_to(name: str) -> None:
    data = (DATA / name).read_bytes()

    found = parse_sources(data)

    assert found.faults == []
    assert fold_lines([each.line for each in found.events]).work() == fold(
        log_lines.parse_log(data).entries
    )
    assert [each.line for each in found.events] == data.decode().splitlines()


@proves("UNI-11")
def test_an_event_is_known_by_its_id_and_comes_once() -> None:
    one = line("join", BOB, id="E1")

    found = parse_sources(log(one, line("join", ANN, id="E2"), one))

    assert [each.key for each in found.events] == [event_key("E1"), event_key("E2")]
    assert found.faults == []
    assert (
        parse_sources(
            log(one), known={each.key: digest_prefix(each) for each in found.events}
        ).events
        == []
    )


@proves("UNI-11")
def test_an_id_that_comes_again_with_other_words_is_told() -> None:
    one, other = line("join", BOB, id="E1"), line("join", ANN, id="E1")

    within = parse_sources(log(one, other))
    known = {each.key: digest_prefix(each) for each in parse_sources(log(one)).events}
    later = parse_sources(log(other), 2, known)

    for found in (within, later):
        assert [(fault.line, "same id as another" in fault.sentence) for fault in found.faults] == [
            (2, True)
        ]
    assert [json.loads(each.line)["agent_id"] for each in within.events] == [BOB]
    assert later.events == []


def test_an_event_without_an_id_is_known_by_its_words() -> None:
    old = {"event_type": "join", "agent_id": BOB}

    found = parse_sources(log(old, {**old, "agent_id": ANN}, old))

    assert len(found.events) == 2


def test_what_is_no_event_is_passed_by_with_its_number() -> None:
    data = b'{"event_id":"a"}\r\n\nnonsense\n[1]\n{"event_id":7}\n\xff\n{"event_id":"torn"'

    found = parse_sources(data, first=10)

    assert [json.loads(each.line)["event_id"] for each in found.events] == ["a", 7]
    assert [fault.line for fault in found.faults] == [12, 13, 15, 16]


def test_a_line_that_is_too_long_for_any_tool_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MAX_LINE_BYTES", 100)

    found = parse_sources(log(line("checkpoint", BOB, "T1", evidence="x" * 100)))

    assert [fault.sentence for fault in found.faults] == ["The line is longer than 16 MiB"]


@proves("UNI-19")
def test_a_long_line_is_kept_in_short_and_says_the_same_of_the_task() -> None:
    words = "x" * (MAX_LINE_LENGTH + 1)
    shown = line("checkpoint", BOB, "T1", evidence=words, reason="")
    shown["payload"]["deps"] = ["y" * (2 * MAX_TEXT_LENGTH)]

    whole, cut = parse_sources(log(assigned("T1"), shown)).events
    task = fold_lines([whole.line, cut.line]).tasks["T1"]

    assert len(cut.line) < 3 * MAX_TEXT_LENGTH
    assert task.status is TaskStatus.AWAITING_REVIEW
    assert task.evidence == "x" * MAX_TEXT_LENGTH + "…"
    assert json.loads(cut.line)["payload"]["deps"] is None
    assert cut.key == event_key(shown["event_id"])


def test_what_is_no_log_is_not_read_to_its_end() -> None:
    found = parse_sources(b"x\n" * (2 * MAX_FAULTS) + log(line("join", BOB)))

    assert (len(found.faults), found.events) == (MAX_FAULTS + 1, [])
