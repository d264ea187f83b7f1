"""A transcript in which the chunks of each stream are one message, for those who come late."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.room.approval.tool_proposals import ToolOutput
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk
from accord.core.room.conversation.thinking import ThinkingChunk

# Of one stream of a tool's output; its beginning and its end are what people read.
OUTPUT_HEAD_CHARACTERS = 8_000
OUTPUT_TAIL_CHARACTERS = 24_000


class FoldedMessage(NamedTuple):
    """A message; `payload` replaces that of the record where chunks were joined.

    The record is then the last of them, so that a connection can resume behind it.
    """

    record: Record
    payload: dict[str, Any] | None = None


class _JoinedChunks:
    def __init__(self, place: int, record: Record) -> None:
        self.place = place
        self.first_seq = record.seq
        self.last = record
        self.texts: list[str] = []

    def add(self, record: Record, text: str) -> None:
        self.last = record
        self.texts.append(text)

    def message(self) -> FoldedMessage:
        said = self.last.said
        assert said is not None  # noqa: S101 - only chunks are joined
        if len(self.texts) == 1 and not _is_too_long(said):
            return FoldedMessage(self.last)
        text, omitted = _shortened(said, "".join(self.texts))
        folded = {"from": self.first_seq, "chunks": len(self.texts), "omitted": omitted}
        fields = {name: getattr(said, name) for name in said.__struct_fields__ if name != "grant"}
        return FoldedMessage(self.last, {**fields, "text": text, "folded": folded})


def _is_too_long(said: Body) -> bool:
    most = OUTPUT_HEAD_CHARACTERS + OUTPUT_TAIL_CHARACTERS
    return isinstance(said, ToolOutput) and len(said.text) > most


def _shortened(said: Body, text: str) -> tuple[str, int]:
    """Output without its middle where it is too long, and how many characters that had."""
    omitted = len(text) - OUTPUT_HEAD_CHARACTERS - OUTPUT_TAIL_CHARACTERS
    if not isinstance(said, ToolOutput) or omitted <= 0:
        return text, 0
    head, tail = text[:OUTPUT_HEAD_CHARACTERS], text[-OUTPUT_TAIL_CHARACTERS:]
    return f"{head}\n[{omitted} characters left out]\n{tail}", omitted


def _stream_of(record: Record) -> str:
    """What the chunk belongs to; empty for a message that is none."""
    match record.said:
        case ResponseChunk() | ThinkingChunk():
            return record.ref or record.id
        case ToolOutput(tool_proposal=proposal, stream=stream):
            return f"{proposal} {stream}"
        case _:
            return ""


def fold_chunks(records: Iterable[Record]) -> list[FoldedMessage]:
    """The records in order; the chunks of a stream as one message in the place of the first."""
    messages: list[FoldedMessage] = []
    joined: dict[str, _JoinedChunks] = {}
    for record in records:
        stream, text = _stream_of(record), getattr(record.said, "text", "")
        if not stream:
            messages.append(FoldedMessage(record))
            continue
        if stream not in joined:
            joined[stream] = _JoinedChunks(len(messages), record)
            messages.append(FoldedMessage(record))
        joined[stream].add(record, text)
    for chunks in joined.values():
        messages[chunks.place] = chunks.message()
    return messages


def newest_turns(records: Sequence[Record], limit: int) -> tuple[Sequence[Record], bool]:
    """The last `limit` turns, and whether others come before; a prompt on the trunk begins one."""
    starts = [
        place for place, record in enumerate(records) if isinstance(record.said, PromptSubmit)
    ]
    if len(starts) < limit or not starts[-limit]:
        return records, False
    return records[starts[-limit] :], True
