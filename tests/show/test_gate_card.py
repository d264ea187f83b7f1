"""Gate cards: what they say, and that no text of others reaches their margin."""

import io
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from accord.show.card import ASCII_GLYPHS, UNICODE_GLYPHS
from accord.show.columns import column_width
from accord.show.gate_card import (
    MAX_CALL_LINES,
    QUORUM_UNREACHABLE,
    describe_ended,
    render_gate,
    time_left,
)

NOW = "2001-01-01T00:00:00.000Z"
FIRST_LETTERS = (UNICODE_GLYPHS.bar, ASCII_GLYPHS.bar)
HOSTILE = st.lists(
    st.text()
    | st.sampled_from(
        [
            *("\x1b[2J", "\x9b31m", "\u202e", "\u2066", "\r", "\r\n", "\n", "\t", "\0", "\x85"),
            *("\u2028", "\u200b", "\u200d", "\u0301", "\u0489" * 9, "漢" * 60, "x" * 300),
            *("▌ ✓ approved by alice", "│ $ ls", "\U0001f469\u200d\U0001f467", "\ufe0f", "\u1161"),
        ]
    ),
    max_size=6,
).map("".join)


def gate(word: str = "bob", action: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "01M7PR8JARY6QR4WV32VBPKRMH",
        "initiator": word,
        "request": {
            "action_type": "merge",
            "action_ref": "m",
            "quorum": {"type": "any", "count": 2},
            "timeout_seconds": 0,
            "message": f"May I {word}?",
        },
        "approvals": ["alice"],
        "approvals_received": 1,
        "approvals_required": 2,
        "lacks": [{"rule": {"type": "any", "count": 2}, "missing": 1, "possible": True}],
        "waits_for": [word],
        "expires_at": None,
        "action": action,
        "fork": word,
        "fork_name": word,
        "people": {word: word, "alice": word},
        **more,
    }


def proposal(word: str = "shell", arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "p",
        "agent": word,
        "tool_name": word,
        "category": word,
        "risk_level": word,
        "description": word,
        "arguments": {"argv": ["ls", word]} if arguments is None else arguments,
        **more,
    }


ARGUMENTS = (
    lambda word: {"argv": [word]},
    lambda word: {"command": word},
    lambda word: {word: [word, {word: word}]},
    lambda word: {"path": word, "content": word},
    lambda word: {"path": word, "old_string": word, "new_string": f"{word}{word}"},
    lambda word: {"patch": word},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@given(word=HOSTILE, which=st.integers(0, len(ARGUMENTS) - 1), full=st.booleans())
def test_every_line_begins_with_the_margin_and_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, word: str, which: int, full: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    action = proposal(word, ARGUMENTS[which](word))

    for card in (gate(word), gate(word, action)):
        for line in render_gate(card, word, full=full):
            assert line.startswith(UNICODE_GLYPHS.bar.rstrip())
            assert line.isprintable() or "\u200d" in line
            assert "\n" not in line
            assert column_width(line) <= columns
            assert wcswidth(line) <= columns


@given(word=HOSTILE)
def test_words_of_others_stand_behind_a_second_margin(word: str) -> None:
    description = f"{word}\n{word}"
    ours = len(list(render_gate(gate(action=proposal("x", {}, description="")), "s")))
    lines = list(render_gate(gate(action=proposal("x", {}, description=description)), "s"))

    quoted = [line for line in lines if line.startswith("▌ “")]
    assert len(quoted) == len(lines) - ours


def test_a_name_in_a_sentence_begins_no_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lie = "wait " * 6 + "✓ approved by alice"

    lines = list(render_gate(gate(lie, proposal(lie)), lie))

    assert [line for line in lines if line.startswith("▌ ✓")] == [
        line for line in lines if line.startswith("▌ ✓ approved by alice (wait")
    ]


def test_a_card_says_everything_there_is_to_decide_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    action = proposal("shell", {"argv": ["git", "push"]}, agent="claude", description="Publish")
    action |= {"risk_level": "high", "category": "shell_execute"}
    card = gate(
        "claude", action, waits_for=["bob"], fork="f", fork_name="Try", people={"bob": "Bob"}
    )

    assert list(render_gate(card, "Fix the parser")) == [
        "▌ claude wants to run shell",
        "▌ in Fix the parser, fork Try",
        "▌ │ $ git push",
        "▌ “ Publish",
        "▌ high risk, shell_execute: claimed by claude, not checked by the server",
        "▌ ✓ approved by alice",
        "▌ ○ needs 1 more approval (1 of 2 so far); bob (Bob) may approve",
        "▌ no time limit",
        "▌ 01M7PR8JARY6QR4WV32VBPKRMH",
    ]


def test_long_arguments_are_folded_and_say_how_to_see_all() -> None:
    action = proposal("write", {"path": "a", "content": "\n".join(map(str, range(100)))})

    folded = list(render_gate(gate(action=action)))
    whole = list(render_gate(gate(action=action), full=True))

    (note,) = [line for line in folded if "not shown" in line]
    assert note == "▌ … 62 more lines not shown; `accord gates --full` shows all"
    assert len([line for line in folded if line.startswith("▌ │")]) == MAX_CALL_LINES
    assert whole[whole.index("▌ │ + 99") + 1] == "▌ │ (no line break at the end)"


def test_a_continued_line_cannot_be_taken_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    action = proposal("shell", {"command": "echo " + "x" * 60 + "\n↪ done"})

    lines = [line for line in render_gate(gate(action=action)) if line.startswith("▌ │")]

    assert [line[:4] for line in lines] == ["▌ │ ", "▌ │↪", "▌ │ "] or [
        line[:4] for line in lines
    ] == ["▌ │ ", "▌ │↪", "▌ │↪", "▌ │ "]


def test_omitted_arguments_are_said_to_be_omitted() -> None:
    lines = "\n".join(render_gate(gate(action=proposal(arguments={}, arguments_omitted=True))))
    assert "too large for a list" in lines


def test_a_quorum_that_cannot_be_met_is_said_and_many_voters_are_counted() -> None:
    lack = {"rule": {"type": "label", "label": "x", "count": 1}, "missing": 1, "possible": False}
    card = gate(lacks=[lack], waits_for=[f"v{number}" for number in range(9)])

    shown = " ".join(" ".join(render_gate(card)).replace("▌", " ").split())

    assert QUORUM_UNREACHABLE in shown
    assert "v5 and 3 others may approve" in shown


def test_without_utf8_a_card_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))

    lines = list(render_gate(gate("漢"), "漢"))

    assert all(line.isascii() and line.startswith("#") for line in lines)
    assert "# > May I \\u6f22?" in lines


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("approved", "shell of claude was approved by alice (Alice) at Mon 01 Jan 00:00"),
        ("rejected", "shell of claude was rejected by alice (Alice) at Mon 01 Jan 00:00: Not now"),
        ("timed_out", "shell of claude timed out at Mon 01 Jan 00:00 without enough approvals"),
        ("session_ended", "shell of claude ended with the session at Mon 01 Jan 00:00"),
        ("a newer one", "shell of claude ended at Mon 01 Jan 00:00"),
    ],
)
def test_an_ended_gate_says_how_and_when(
    monkeypatch: pytest.MonkeyPatch, outcome: str, said: str
) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    ended = {
        "tool_name": "shell",
        "initiator": "claude",
        "outcome": outcome,
        "by": ["alice"],
        "reason": "Not now",
        "ended_at": NOW,
        "people": {"alice": "Alice"},
    }
    assert describe_ended(ended) == said


def test_time_that_is_up_is_said() -> None:
    assert time_left(gate(expires_at=NOW)) == "time is up"
    assert ", until " in time_left(gate(expires_at="2999-01-01T00:00:00.000Z"))
