"""Lines of a Pact log: written as every tool writes them, read whatever they are."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.work import verbs
from accord.core.work.event import EventDraft, LogEntry
from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from accord.core.work.vocabulary import EventKind
from tests.core.work.story import ANN, BOB, Team, assigned, line, log
from tests.spec import proves

SCHEMAS = Path(__file__).parents[3] / "data" / "pact" / "schemas"


@proves(
    "PACT-2-1",
    "PACT-2.1-1",
    "PACT-2.1-3",
    "PACT-2.1-6",
    "PACT-2.1-7",
    "PACT-2.1-9",
    "OPEN-104",
    "UNI-25",
)
def test_a_line_is_written_compact_in_the_order_of_the_specification() -> None:
    made = log_lines.encode_events(
        [EventDraft(EventKind.MERGE, {"note": "é\n"}, feature="F")],
        ["id"],
        "2026-01-01T00:00:00Z",
        ANN,
    )

    assert (
        made
        == (
            '{"event_id":"id","ts":"2026-01-01T00:00:00Z","agent_id":"ann","role":"orchestrator",'
            '"event_type":"merge","task_id":"","feature":"F","payload":{"note":"é\\n"}}\n'
        ).encode()
    )


@proves("PACT-2.1-10", "PACT-9-2", "PACT-2.1-4", "PACT-2.1-8", "PACT-6.2-4")
@proves("PACT-2.3-1", "PACT-2.3-2", "PACT-2.3-3")
@pytest.mark.parametrize("name", ["event.schema.frozen-v1.json", "event.schema.json"])
def test_what_the_verbs_record_validates_against_the_published_schema(name: str) -> None:
    schema = jsonschema_rs.validator_for((SCHEMAS / name).read_text("utf-8"))
    seat = jsonschema_rs.validator_for((SCHEMAS / "seat.schema.json").read_text("utf-8"))
    team = Team()
    team.assign()
    team.by(BOB, verbs.join, BOB, "worker")
    team.by(BOB, verbs.checkpoint, "T1", "one")
    team.by(ANN, verbs.changes, "T1", "more")
    team.by(BOB, verbs.checkpoint, "T1", "two")
    team.by(ANN, verbs.accept, "T1")
    team.by(ANN, verbs.merge, "F")

    lines = [json.loads(each) for each in team.data.splitlines()]

    assert {each["event_type"]: each["role"] for each in lines} == {
        "init": "orchestrator",
        "assign": "orchestrator",
        "merge": "orchestrator",
        "join": "worker",
        "checkpoint": "worker",
        "accept": "reviewer",
        "changes_requested": "reviewer",
    }
    more = (each | {"payload": each["payload"] | {"else": [1]}} for each in lines)
    assert fold(log_lines.parse_log(log(*more)).entries) == team.work
    for each in lines:
        schema.validate(each)
        assert len(each) == 8
    for each in lines[0]["payload"]["seats"]:
        seat.validate(each)


@proves("OPEN-106", "PACT-8-3")
def test_lines_that_are_no_events_are_told_by_their_number() -> None:
    data = b"\n".join(
        [
            log(line("join")).strip(),
            b"",
            b"{not json}",
            b"[1]",
            b"\xff",
            log(line("join", at=1)).strip() + b"\r",
            b'{"event_id": 4, "payload": {"evidence": 3, "roles": "x", "else": 1}}',
            b'{"torn": ',
        ]
    )
    reading = log_lines.parse_log(data)

    assert [(fault.line, fault.sentence) for fault in reading.faults] == [
        (3, "The line is not valid JSON"),
        (4, "The line is not a JSON object"),
        (5, "The line is not valid JSON"),
        (8, "The last line is incomplete: it does not end with a line break"),
    ]
    assert [entry.line for entry in reading.entries] == [1, 6, 7]
    assert reading.entries[2].event.payload.roles == "x"
    assert [number for number, _ in log_lines.parse_objects(data)] == [1, 6, 7]


def test_a_line_is_too_long_wherever_it_stands() -> None:
    good = b'{"event_id":"1","ts":"2026-01-01T00:00:00Z"}\n'
    long = (
        b'{"event_id":"2","ts":"2026-01-01T00:00:00Z","x":"'
        + b"x" * log_lines.MAX_LINE_BYTES
        + b'"}\n'
    )
    many = good * (2 * log_lines.MAX_LINE_BYTES // len(good) + 1)

    for before, after in ((b"", b""), (good, good)):
        reading = log_lines.parse_log(before + long + after)
        assert [fault.sentence for fault in reading.faults] == ["The line is longer than 16 MiB"]
        assert {entry.event.event_id for entry in reading.entries} <= {"1"}
        assert [found["event_id"] for _, found in log_lines.parse_objects(long + good)] == ["1"]
    assert log_lines.parse_log(many).faults == []


def test_a_byte_order_mark_is_called_by_its_name() -> None:
    (fault,) = log_lines.parse_log(b"\xef\xbb\xbf{}\n").faults

    assert fault == (1, "The line begins with a byte order mark; save the file as plain UTF-8")


def test_nesting_without_end_is_no_event() -> None:
    deep = b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"

    assert [fault.line for fault in log_lines.parse_log(deep).faults] == [1]
    assert list(log_lines.parse_objects(deep)) == []


@proves("OPEN-104")
@pytest.mark.parametrize(
    ("ts", "same"),
    [
        ("2026-06-09T10:00:00Z", "2026-06-09T10:00:00"),
        ("2026-06-09t10:00:00z", "2026-06-09T10:00:00"),
        ("2026-06-09T12:00:00+02:00", "2026-06-09T10:00:00"),
        ("2026-06-09T10:00:00.250Z", "2026-06-09T10:00:00.25"),
        ("2026-06-09T10:00:00", ""),
        ("2026-06-31T10:00:00Z", ""),
        ("0001-01-01T00:00:00+12:00", ""),
        ("today", ""),
    ],
)
def test_log_times_with_different_offsets_compare_as_instants(ts: str, same: str) -> None:
    assert log_lines.parse_instant(ts) == same


def test_a_time_that_is_none_counts_as_that_of_the_line_above() -> None:
    odd = line("join", BOB, at=1) | {"ts": "soon"}
    reading = log_lines.parse_log(log(assigned(at=3), odd, line("accept", at=2)))

    assert [entry.line for entry in reading.entries] == [3, 1, 2]
    assert reading.latest == "2026-01-01T00:03:00"
    assert log_lines.parse_log(b"").latest == ""


@proves("OPEN-103", "OPEN-104")
@pytest.mark.parametrize(
    ("now", "last", "written"),
    [
        ("2026-01-01T00:00:05.123Z", "2026-01-01T00:00:04", "2026-01-01T00:00:05Z"),
        ("2026-01-01T00:00:05Z", "2026-01-01T00:00:09", "2026-01-01T00:00:09Z"),
        ("2026-01-01T00:00:05Z", "2026-01-01T00:00:59.5", "2026-01-01T00:01:00Z"),
        ("2026-01-01T00:00:05Z", "", "2026-01-01T00:00:05Z"),
        ("2026-01-01T00:00:05Z", "9999-12-31T23:59:59.5", "9999-12-31T23:59:59.5Z"),
    ],
)
def test_writers_never_go_back_in_time(now: str, last: str, written: str) -> None:
    assert log_lines.stamp(now, last) == written


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (b"", b""),
        (b"\n \r\n", b""),
        (b"one\n", b"one"),
        (b"one\ntwo\n", b"two"),
        (b"one\r\n  two \r\n\n \n", b"two"),
        (b"one\ntorn", b"torn"),
    ],
)
def test_a_signature_is_linked_to_the_last_line_that_says_anything(
    data: bytes, last: bytes
) -> None:
    assert log_lines.last_line(data) == last


@given(st.lists(st.sampled_from([b"", b" ", b"one", b" two", b"three\r"]), max_size=6))
def test_writers_and_readers_of_links_mean_the_same_line(parts: list[bytes]) -> None:
    data = b"".join(part + b"\n" for part in parts)
    speaking = [raw for raw in log_lines.split_lines(data) if raw]

    assert log_lines.last_line(data) == (speaking[-1] if speaking else b"")


def test_what_another_ledger_lacks_is_found_by_id() -> None:
    one, two = line("join", at=1), line("join", at=2)
    nameless = line("join", at=3) | {"event_id": ""}
    here = log(one, two, nameless) + b"broken\n\n" + b"torn"

    assert log_lines.missing_lines(log(one | {"more": 1}), here) == log(two, nameless) + b"broken\n"
    assert log_lines.missing_lines(here, here) == b""


PIECES = st.sampled_from(
    [
        *(f'{{"event_id":"{n}","ts":"2026-01-01T00:00:0{n}Z"}}' for n in range(3)),
        *('{"ts":"2026-01-01T00:00:00+01:00"}', '{"ts":"?"}', "{}", '{"role":1,"task_id":2}'),
        *('{"ts":"2026-01-01T00:00:00Z\\n2026-01-01T00:00:00Z"}', '{"x":"}\\n{"}', "[]", "no"),
        *(" ", "", "\r", "\ufeff", '{"payload":', '{"payload":{"x":"\udc80"}}'),
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "", "\r\n", "\n\n", " "])


def one_by_one(data: bytes) -> log_lines.ParsedLog:
    """A log as one would read it who has time."""
    entries, faults, at = list[LogEntry](), list[log_lines.LineFault](), ""
    lines = data.split(b"\n")
    for number, raw in enumerate(lines, 1):
        found = log_lines.parse_event(raw)
        if isinstance(found, str):
            sentence = found if number < len(lines) else log_lines.INCOMPLETE_LINE
            faults += [log_lines.LineFault(number, sentence)] if found else []
        else:
            at = log_lines.parse_instant(found.ts) or at
            entries.append(LogEntry(at, number, found))
    in_order = sorted(entries, key=lambda each: (each.at, each.line))
    return log_lines.ParsedLog(in_order, faults)


@proves("PACT-1.2-1", "OPEN-106", "OPEN-103")
@given(st.lists(st.tuples(PIECES, ENDS), max_size=12))
def test_a_log_read_whole_is_the_one_read_line_by_line(pieces: list[tuple[str, str]]) -> None:
    data = "".join(piece + end for piece, end in pieces).encode("utf-8", "surrogateescape")

    assert log_lines.parse_log(data) == one_by_one(data)


@proves("OPEN-106")
def test_a_last_line_without_a_line_break_counts_if_it_is_complete() -> None:
    events = [assigned("T1"), line("join", BOB, at=1)]
    whole = log(*events)

    for data in (whole, whole[:-1], whole[:-1] + b" "):
        reading = log_lines.parse_log(data)
        assert [entry.line for entry in reading.entries] == [1, 2]
        assert (reading.faults, log_lines.is_torn(data)) == ([], False)
        assert [event for _, event in log_lines.parse_objects(data)] == events
        assert log_lines.missing_lines(b"", data) == whole
        more = log_lines.append_lines(data, log(line("join", at=2)))
        assert [entry.line for entry in log_lines.parse_log(more).entries] == [1, 2, 3]
    torn = whole[:-2]
    assert log_lines.is_torn(torn)
    assert log_lines.parse_log(torn).faults == [log_lines.LineFault(2, log_lines.INCOMPLETE_LINE)]
    assert log_lines.missing_lines(b"", torn) == log(events[0])
    assert log_lines.append_lines(b"", whole) == whole
