"""Chunks of one stream become one message, in the place of the first."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.room.approval.tool_proposals import ToolOutput
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk
from accord.core.room.conversation.thinking import ThinkingChunk
from accord.core.views.folded_transcript import (
    OUTPUT_HEAD_CHARACTERS,
    OUTPUT_TAIL_CHARACTERS,
    fold_chunks,
    newest_turns,
)
from tests.helpers.room.scenario import prompt_submit


class Said:
    """A record as far as folding reads it."""

    def __init__(self, seq: int, said: Body, ref: str | None = None) -> None:
        self.seq, self.version, self.id, self.said, self.ref = seq, seq, f"m{seq}", said, ref


def records(*said: tuple[Body, str | None]) -> list[Record]:
    numbered: list[Any] = [Said(seq, body, ref) for seq, (body, ref) in enumerate(said, 1)]
    return numbered


def test_chunks_of_two_answers_at_once_are_two_messages() -> None:
    folded = fold_chunks(
        records(
            (ResponseChunk("a"), "x"),
            (ThinkingChunk("1"), "y"),
            (ResponseChunk("b"), "x"),
            (prompt_submit(), None),
            (ThinkingChunk("2"), "y"),
            (ResponseChunk("c"), "x"),
        )
    )

    assert [message.payload and message.payload["text"] for message in folded] == [
        "abc",
        "12",
        None,
    ]
    first = folded[0]
    assert first.record.id == "m6"
    assert first.payload is not None
    assert first.payload["folded"] == {"from": 1, "chunks": 3, "omitted": 0}


def test_a_single_chunk_stays_as_it_is() -> None:
    (only,) = fold_chunks(records((ResponseChunk("a"), None)))
    assert only.payload is None


def test_long_output_keeps_its_beginning_and_its_end_and_says_how_much_is_missing() -> None:
    half = OUTPUT_HEAD_CHARACTERS + OUTPUT_TAIL_CHARACTERS
    printed = ToolOutput("p", "stdout", "begin" + "x" * half, complete=False)
    last = ToolOutput("p", "stdout", "y" * half + "end", complete=True)
    error = ToolOutput("p", "stderr", "short", complete=False)

    out, err = fold_chunks(records((printed, None), (error, None), (last, None)))

    assert out.payload is not None
    assert out.payload["text"].startswith("begin")
    assert out.payload["text"].endswith("end")
    assert out.payload["folded"]["omitted"] == 2 * half + 8 - half
    assert "grant" not in out.payload
    assert err.payload is None
    (alone,) = fold_chunks(records((last, None)))
    assert alone.payload is not None


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.text(max_size=4)), max_size=30))
def test_no_letter_of_an_answer_is_lost(chunks: list[tuple[str, str]]) -> None:
    folded = fold_chunks(records(*((ResponseChunk(text), ref) for ref, text in chunks)))
    for stream in "xyz":
        whole = "".join(text for ref, text in chunks if ref == stream)
        shown = "".join(
            message.payload["text"] if message.payload else getattr(message.record.said, "text", "")
            for message in folded
            if message.record.ref == stream
        )
        assert shown == whole


def test_turns_begin_with_prompts() -> None:
    prompt: tuple[Body, None] = (prompt_submit(), None)
    all_said = records((ResponseChunk("a"), "x"), prompt, (ResponseChunk("b"), "x"), prompt)

    assert newest_turns(all_said, 1) == (all_said[3:], True)
    assert newest_turns(all_said, 2) == (all_said[1:], True)
    assert newest_turns(all_said, 3) == (all_said, False)
    assert newest_turns(all_said[1:], 2) == (all_said[1:], False)
    assert all(isinstance(each.said, PromptSubmit) for each in newest_turns(all_said, 1)[0])
