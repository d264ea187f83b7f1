"""A ledger's bytes as events to mirror."""

import json
from pathlib import Path

import pytest

from accord.core.dialects import pact
from accord.core.dialects.pactbook import told
from accord.core.dialects.pactmirror import LONGEST_TEXT, MOST_FAULTS, mark_of, sources
from accord.core.work.fold import fold
from accord.core.work.mirror import LONGEST_LINE, key_of
from accord.core.work.words import Status
from tests.core.work.story import ANN, BOB, assigned, line, log
from tests.spec import proves

DATA = Path(__file__).parents[2] / "data" / "pact"
REAL = sorted(path.name for path in DATA.glob("*.jsonl"))


@proves("UNI-7", "OPEN-137")
@pytest.mark.parametrize("name", REAL)
def test_what_is_mirrored_of_a_real_log_comes_to_what_the_log_comes_to(name: str) -> None:
    data = (DATA / name).read_bytes()

    found = sources(data)

    assert found.faults == []
    assert told([each.line for each in found.found]).work() == fold(pact.read(data).entries)
    assert [each.line for each in found.found] == data.decode().splitlines()


@proves("UNI-11")
def test_an_event_is_known_by_its_id_and_comes_once() -> None:
    one = line("join", BOB, id="E1")

    found = sources(log(one, line("join", ANN, id="E2"), one))

    assert [each.key for each in found.found] == [key_of("E1"), key_of("E2")]
    assert found.faults == []
    assert sources(log(one), known={each.key: mark_of(each) for each in found.found}).found == []


@proves("UNI-11")
def test_an_id_that_comes_again_with_other_words_is_told() -> None:
    one, other = line("join", BOB, id="E1"), line("join", ANN, id="E1")

    within = sources(log(one, other))
    known = {each.key: mark_of(each) for each in sources(log(one)).found}
    later = sources(log(other), 2, known)

    for found in (within, later):
        assert [(fault.line, "id of another" in fault.sentence) for fault in found.faults] == [
            (2, True)
        ]
    assert [json.loads(each.line)["agent_id"] for each in within.found] == [BOB]
    assert later.found == []


def test_an_event_without_an_id_is_known_by_its_words() -> None:
    old = {"event_type": "join", "agent_id": BOB}

    found = sources(log(old, {**old, "agent_id": ANN}, old))

    assert len(found.found) == 2


def test_what_is_no_event_is_passed_by_with_its_number() -> None:
    data = b'{"event_id":"a"}\r\n\nnonsense\n[1]\n{"event_id":7}\n\xff\n{"event_id":"torn"'

    found = sources(data, first=10)

    assert [json.loads(each.line)["event_id"] for each in found.found] == ["a", 7]
    assert [fault.line for fault in found.faults] == [12, 13, 15]


def test_a_line_that_is_too_long_for_any_tool_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pact, "LONGEST", 100)

    found = sources(log(line("checkpoint", BOB, "T1", evidence="x" * 100)))

    assert [fault.sentence for fault in found.faults] == ["The line is over 16 MiB"]


@proves("UNI-19")
def test_a_long_line_is_kept_in_short_and_says_the_same_of_the_task() -> None:
    words = "x" * (LONGEST_LINE + 1)
    shown = line("checkpoint", BOB, "T1", evidence=words, reason="")
    shown["payload"]["deps"] = ["y" * (2 * LONGEST_TEXT)]

    whole, cut = sources(log(assigned("T1"), shown)).found
    task = told([whole.line, cut.line]).tasks["T1"]

    assert len(cut.line) < 3 * LONGEST_TEXT
    assert task.status is Status.AWAITING_REVIEW
    assert task.evidence == "x" * LONGEST_TEXT + "…"
    assert json.loads(cut.line)["payload"]["deps"] is None
    assert cut.key == key_of(shown["event_id"])


def test_what_is_no_log_is_not_read_to_its_end() -> None:
    found = sources(b"x\n" * (2 * MOST_FAULTS) + log(line("join", BOB)))

    assert (len(found.faults), found.found) == (MOST_FAULTS + 1, [])
