"""Lines of a Pact log: written as every tool writes them, read whatever they are."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.dialects import pact
from accord.core.work import verbs
from accord.core.work.event import Draft, Entry
from accord.core.work.fold import fold
from accord.core.work.words import Kind
from tests.core.work.story import ANN, BOB, Team, assigned, line, log
from tests.spec import proves

SCHEMAS = Path(__file__).parents[2] / "data" / "pact" / "schemas"


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
    made = pact.write(
        [Draft(Kind.MERGE, {"note": "é\n"}, feature="F")], ["id"], "2026-01-01T00:00:00Z", ANN
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
    assert fold(pact.read(log(*more)).entries) == team.work
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
    reading = pact.read(data)

    assert [(fault.line, fault.sentence) for fault in reading.faults] == [
        (3, "The line is no JSON"),
        (4, "The line is no JSON object"),
        (5, "The line is no JSON"),
        (8, "The last line is torn: it has no end"),
    ]
    assert [entry.line for entry in reading.entries] == [1, 6, 7]
    assert reading.entries[2].event.payload.roles == "x"
    assert [number for number, _ in pact.objects(data)] == [1, 6, 7]


def test_a_line_is_too_long_wherever_it_stands() -> None:
    good = b'{"event_id":"1","ts":"2026-01-01T00:00:00Z"}\n'
    long = b'{"event_id":"2","ts":"2026-01-01T00:00:00Z","x":"' + b"x" * pact.LONGEST + b'"}\n'
    many = good * (2 * pact.LONGEST // len(good) + 1)

    for before, after in ((b"", b""), (good, good)):
        reading = pact.read(before + long + after)
        assert [fault.sentence for fault in reading.faults] == ["The line is over 16 MiB"]
        assert {entry.event.event_id for entry in reading.entries} <= {"1"}
        assert [found["event_id"] for _, found in pact.objects(long + good)] == ["1"]
    assert pact.read(many).faults == []


def test_a_byte_order_mark_is_called_by_its_name() -> None:
    (fault,) = pact.read(b"\xef\xbb\xbf{}\n").faults

    assert fault == (1, "The line begins with a byte order mark; save the file as plain UTF-8")


def test_nesting_without_end_is_no_event() -> None:
    deep = b'{"payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"

    assert [fault.line for fault in pact.read(deep).faults] == [1]
    assert list(pact.objects(deep)) == []


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
def test_times_compare_as_instants(ts: str, same: str) -> None:
    assert pact.instant(ts) == same


def test_a_time_that_is_none_counts_as_that_of_the_line_above() -> None:
    odd = line("join", BOB, at=1) | {"ts": "soon"}
    reading = pact.read(log(assigned(at=3), odd, line("accept", at=2)))

    assert [entry.line for entry in reading.entries] == [3, 1, 2]
    assert reading.last == "2026-01-01T00:03:00"
    assert pact.read(b"").last == ""


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
    assert pact.stamp(now, last) == written


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
    assert pact.last_line(data) == last


@given(st.lists(st.sampled_from([b"", b" ", b"one", b" two", b"three\r"]), max_size=6))
def test_writers_and_readers_of_links_mean_the_same_line(parts: list[bytes]) -> None:
    data = b"".join(part + b"\n" for part in parts)
    speaking = [raw for raw in pact.lines_of(data) if raw]

    assert pact.last_line(data) == (speaking[-1] if speaking else b"")


def test_what_another_ledger_lacks_is_found_by_id() -> None:
    one, two = line("join", at=1), line("join", at=2)
    nameless = line("join", at=3) | {"event_id": ""}
    here = log(one, two, nameless) + b"broken\n\n" + b"torn"

    assert pact.missing(log(one | {"more": 1}), here) == log(two, nameless) + b"broken\n"
    assert pact.missing(here, here) == b""


PIECES = st.sampled_from(
    [
        *(f'{{"event_id":"{n}","ts":"2026-01-01T00:00:0{n}Z"}}' for n in range(3)),
        *('{"ts":"2026-01-01T00:00:00+01:00"}', '{"ts":"?"}', "{}", '{"role":1,"task_id":2}'),
        *('{"ts":"2026-01-01T00:00:00Z\\n2026-01-01T00:00:00Z"}', '{"x":"}\\n{"}', "[]", "no"),
        *(" ", "", "\r", "\ufeff", '{"payload":', '{"payload":{"x":"\udc80"}}'),
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "", "\r\n", "\n\n", " "])


def one_by_one(data: bytes, first: int, at: str) -> pact.Reading:
    """A log as one would read it who has time."""
    *lines, torn = data.split(b"\n")
    entries, faults = list[Entry](), list[pact.Fault]()
    for number, raw in enumerate(lines, first):
        found = pact.event_in(raw)
        if isinstance(found, str):
            faults += [pact.Fault(number, found)] if found else []
        else:
            at = pact.instant(found.ts) or at
            entries.append(Entry(at, number, found))
    following = first + len(lines)
    if torn.strip():
        faults.append(pact.Fault(following, "The last line is torn: it has no end"))
    in_order = sorted(entries, key=lambda each: (each.at, each.line))
    return pact.Reading(in_order, faults, at, following)


@proves("PACT-1.2-1", "OPEN-106", "OPEN-103")
@given(
    st.lists(st.tuples(PIECES, ENDS), max_size=12),
    st.sampled_from([0, 50, 120, pact.PART]),
    st.sampled_from(["", "2026-01-01T00:00:01"]),
)
def test_a_log_read_in_parts_is_the_one_read_line_by_line(
    pieces: list[tuple[str, str]], size: int, at: str
) -> None:
    data = "".join(piece + end for piece, end in pieces).encode("utf-8", "surrogateescape")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pact, "PART", size)

        assert pact.read(data, 7, at) == one_by_one(data, 7, at)


@proves("PACT-1.2-1", "OPEN-106")
@given(st.lists(st.tuples(PIECES, ENDS), max_size=6))
def test_a_log_read_at_once_is_the_one_read_line_by_line(parts: list[tuple[str, str]]) -> None:
    """An empty line at its head, which counts as nothing, lets no log be read at once."""
    data = "".join(piece + end for piece, end in parts).encode("utf-8", "surrogateescape")

    assert pact.read(data, 2) == pact.read(b"\n" + data)
    assert pact.read(data, 2, "2026-01-01T00:00:01") == pact.read(
        b"\n" + data, 1, "2026-01-01T00:00:01"
    )
