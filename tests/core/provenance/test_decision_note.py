"""The whole record of a decision, as a note."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.redaction import REDACTED, redactor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.decision_commit import (
    ConversationThread,
    Utterance,
    decision_note,
    decisions_of,
    thread_of,
)
from accord.core.provenance.notes.note import (
    MAX_NOTE_BYTES,
    format_note,
    merge_notes,
    note_size,
    parse_note,
    shrink_to_fit,
)
from tests.core.provenance.decision_samples import DECISION, NOTES, THREAD
from tests.spec import proves


@proves("PVP-18.2-1", "PVP-18.2-4", "PVP-5.2-1")
def test_a_decision_has_every_field_and_comes_back_from_its_note() -> None:
    note = parse_note(format_note(decision_note(DECISION, THREAD)))

    assert decisions_of(note) == (DECISION,)
    assert thread_of(note) == THREAD
    fields = note["decisions"][0]
    for name in (
        *("git_sha", "pvp_session", "pvp_messages", "decision_type", "confidence_score"),
        *("alternatives_considered", "tool_executions", "approvals", "files_changed"),
    ):
        assert fields[name]


@proves("GIT-NOTES-4", "GIT-NOTES-5", "GIT-NOTES-6", "GIT-NOTES-7", "GIT-NOTES-8")
def test_the_note_has_the_shape_that_others_read() -> None:
    note = decision_note(DECISION, THREAD)

    assert note["version"] == 1
    assert note["session"] == {
        "id": "01HX7K9P4QZCVD3N8MYW6R5T2B",
        "name": "Auth Implementation Sprint",
    }
    assert note["conversation"]["thread_id"] == "thread-abc"
    assert note["conversation"]["messages"][0] == {
        "id": "msg-01",
        "type": "prompt.submit",
        "sender": "human:alice",
        "content": "Implement JWT validation",
        "timestamp": "2026-01-06T10:00:00Z",
    }
    assert note["tools"]["executions"][0] == {
        "id": "tool-01",
        "name": "write_file",
        "path": "src/auth/jwt.ts",
        "approved_by": ["human:alice"],
        "duration_ms": 150,
    }
    assert note["tools"]["executions"][1] == {
        "id": "tool-02",
        "name": "write_file",
        "approved_by": [],
    }
    assert note["alternatives"] == [
        {
            "id": "oauth2",
            "branch": "explore/oauth2",
            "reason_abandoned": "Too complex for MVP timeline",
            "commits": ["abc123", "def456"],
        }
    ]
    assert note["metrics"] == {"output_tokens": 1200}


def test_what_nobody_said_is_not_in_the_note() -> None:
    bare = decisions.DecisionCommit(id="dec_1", pvp_session="s")

    note = decision_note(bare)

    assert note.keys() == {"version", "session", "decisions", "tools"}
    assert note["decisions"] == [{"id": "dec_1", "pvp_session": "s"}]
    assert thread_of(note) == ConversationThread("")


@proves("PVP-18.2-3", "OPEN-60")
@pytest.mark.parametrize("score", [-0.01, 1.01, "high"])
def test_a_confidence_outside_its_range_is_nobodys(score: object) -> None:
    note = decision_note(DECISION)
    note["decisions"][0]["confidence_score"] = score

    assert decisions_of(note) == ()


@pytest.mark.parametrize("found", [None, {}, [1], [{"id": 1}], [{"\ud800": 1}]])
def test_decisions_that_cannot_be_read_are_left_out(found: object) -> None:
    assert decisions_of({"version": 1, "decisions": found}) == ()


def test_a_later_versions_fields_do_not_hide_a_decision() -> None:
    note = decision_note(DECISION)
    note["decisions"][0]["mood"] = "bright"

    assert decisions_of(note) == (DECISION,)


@proves("UNI-29", "OPEN-74")
def test_no_secret_reaches_a_note() -> None:
    said = Utterance("m", "prompt.submit", "human:alice", "use open sesame", "t")
    token = "ghp_" + "a1" * 18
    decision = msgspec.structs.replace(DECISION, session_name=token)

    text = format_note(
        decision_note(decision, ConversationThread("t", (said,)), redactor(["open sesame"]))
    )

    assert "sesame" not in text
    assert token not in text
    assert text.count(REDACTED) == 3


def test_decisions_of_two_notes_stand_side_by_side() -> None:
    other = msgspec.structs.replace(DECISION, id="dec_2", decided_at="2026-01-05T00:00:00.000Z")

    both = merge_notes(decision_note(DECISION), decision_note(other))

    assert decisions_of(both) == (other, DECISION)


@proves("PVP-18.3-1")
def test_a_hook_is_told_what_the_trailers_need_and_nothing_that_was_said() -> None:
    assert decisions.trailer_context(DECISION) == {
        "session": "01HX7K9P4QZCVD3N8MYW6R5T2B",
        "decision": "dec_01HX7K9P4QZCVD3N8MYW6R5T2B",
        "messages": ["msg-01", "msg-05", "msg-12"],
        "ends": ["msg-01", "msg-12"],
        "decision_type": "bugfix",
        "confidence": 0.9,
        "decision_by": ["ai:claude", "human:alice"],
        "reviewed_by": [],
        "approved_by": ["human:alice", "human:bob"],
        "assisted_by": [],
        "tools": ["write_file"],
    }


# Size


def long(count: int, length: int) -> ConversationThread:
    words = ("word " * (length // 5 + 1))[:length]
    return ConversationThread(
        "t",
        tuple(Utterance(f"m{n}", "prompt.submit", "human:a", words, "") for n in range(count)),
    )


@proves("OPEN-74")
@pytest.mark.parametrize(
    ("thread", "most"),
    [
        (long(20, 100_000), MAX_NOTE_BYTES),
        (long(5000, 100), MAX_NOTE_BYTES),
        (long(20, 1000), 6000),
        (long(20, 1000), 500),
        (long(20, 1000), 200),
    ],
    ids=["long texts", "many messages", "small", "smaller", "least"],
)
def test_a_note_that_is_too_large_is_shortened_and_says_so(
    thread: ConversationThread, most: int
) -> None:
    note = decision_note(DECISION, thread, max_bytes=most)

    assert note_size(note) <= most
    assert note["truncated"] is True
    assert note["version"] == 1
    if most > 200:
        assert note["decisions"][0]["id"] == DECISION.id
    else:
        assert note["left_out"] == 1


def test_shortening_keeps_the_question_and_the_last_answer() -> None:
    messages = thread_of(decision_note(DECISION, long(5000, 100))).messages

    assert (messages[0].id, messages[-1].id) == ("m0", "m4999")


def test_only_what_lost_something_is_marked() -> None:
    thread = ConversationThread("t", (*long(1, 400_000).messages, THREAD.messages[0]))

    first, second = decision_note(DECISION, thread)["conversation"]["messages"]

    assert first["truncated"] is True
    assert first["content"].endswith("wor…")
    assert "truncated" not in second


@given(NOTES, st.integers(120, 400))
def test_any_decision_note_is_shortened_to_the_limit(note: dict[str, Any], most: int) -> None:
    short = shrink_to_fit({**note, "decisions": note.get("session")}, most)

    assert note_size(short) <= most


# Threads


@proves("PVP-18.6-1", "OPEN-59")
def test_a_thread_has_three_forms() -> None:
    trailer = decisions.thread_to_trailer(THREAD)
    elsewhere = decisions.external_reference("https://example.org/t/1")

    assert decisions.thread_from_json(decisions.thread_to_json(THREAD)) == THREAD
    assert decisions.thread_from_trailer(trailer) == THREAD
    assert trailer.isascii()
    assert len(trailer.split()) == 1
    assert decisions.external_uri(elsewhere) == "https://example.org/t/1"
    assert decisions.external_uri(decisions.thread_to_json(THREAD)) is None
    assert decisions.external_uri(None) is None
    assert decisions.thread_from_json(elsewhere) == ConversationThread("")


@pytest.mark.parametrize("value", [None, [], {"messages": 3}, {"messages": [1, {"id": 2}]}])
def test_a_conversation_of_another_shape_is_empty(value: object) -> None:
    assert decisions.thread_from_json(value) == ConversationThread("")


def test_a_long_conversation_belongs_in_the_note() -> None:
    noise = "".join(chr(33 + n * n % 90) + str(n) for n in range(20_000))
    thread = ConversationThread("t", (Utterance("m", "prompt.submit", "human:a", noise, ""),))

    with pytest.raises(Refused) as no:
        decisions.thread_to_trailer(thread)

    assert no.value.reason is Reason.TOO_LARGE


@pytest.mark.parametrize("text", ["", "no!", "aGVsbG8=", "é"])
def test_a_trailer_that_is_no_thread_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        decisions.thread_from_trailer(text)


def test_a_trailer_that_unpacks_to_too_much_is_refused() -> None:
    bomb = ConversationThread("t", long(1, 1 << 20).messages)

    with pytest.raises(Refused) as no:
        decisions.thread_from_trailer(decisions.thread_to_trailer(bomb))

    assert no.value.reason is Reason.TOO_LARGE


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_words_survive_the_trailer(words: str) -> None:
    thread = ConversationThread("t", (Utterance("m", "prompt.submit", "human:a", words, ""),))

    assert decisions.thread_from_trailer(decisions.thread_to_trailer(thread)) == thread
    assert json.loads(json.dumps(decisions.thread_to_json(thread))) == decisions.thread_to_json(
        thread
    )
