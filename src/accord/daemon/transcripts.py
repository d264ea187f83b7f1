"""What a host's own transcript says about its last turn: the model, and the tokens it used.

Transcripts are the hosts' private files and change with their versions, so everything here is
optional: what is not found is left out.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.hosts.hook_events import CLAUDE_CODE, CODEX, GEMINI

# A turn is at the end of the file.
MAX_TAIL_BYTES = 1 << 20


class TurnUsage(NamedTuple):
    """What a turn used; `model` is empty where the transcript does not name it."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_usd: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether any tokens were counted."""
        return bool(self.input_tokens or self.output_tokens)


def read_usage(host: str, path: str, home: str) -> TurnUsage:
    """The usage of the last turn in this transcript."""
    reader = READERS.get(host)
    if reader is None:
        return TurnUsage()
    return reader(list(last_entries(path, home)))


def last_entries(path: str, home: str) -> Iterator[Mapping[str, Any]]:
    """The entries at the end of a transcript below the home directory."""
    try:
        real = Path(path).resolve()
        if not home or not real.is_relative_to(Path(home).resolve()):
            return
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                return
            file.seek(max(0, info.st_size - MAX_TAIL_BYTES))
            lines = file.read(MAX_TAIL_BYTES).splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:  # the first line may be cut
            continue
        if isinstance(entry, dict):
            yield entry


def claude_usage(entries: list[Mapping[str, Any]]) -> TurnUsage:
    """The sum over the messages since the last prompt; one may be written in several parts."""
    messages: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        message = mapping_of(entry, "message")
        content = message.get("content")
        if entry.get("type") == "user" and isinstance(content, str):
            messages.clear()
        if entry.get("type") == "assistant":
            messages[str(message.get("id", len(messages)))] = message
    usages = [mapping_of(each, "usage") for each in messages.values()]
    models = [model for each in messages.values() if (model := text_of(each, "model"))]
    input_keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return TurnUsage(
        model=models[-1] if models else "",
        input_tokens=sum(count_of(usage, key) for usage in usages for key in input_keys),
        output_tokens=sum(count_of(usage, "output_tokens") for usage in usages),
    )


def codex_usage(entries: list[Mapping[str, Any]]) -> TurnUsage:
    """The last request's count, which Codex writes after each."""
    model, usage = "", dict[str, Any]()
    for entry in entries:
        payload = mapping_of(entry, "payload")
        model = text_of(payload, "model") or model
        if payload.get("type") == "token_count":
            usage = mapping_of(mapping_of(payload, "info"), "last_token_usage") or usage
    return TurnUsage(
        model=model,
        input_tokens=count_of(usage, "input_tokens"),
        output_tokens=count_of(usage, "output_tokens"),
        thinking_tokens=count_of(usage, "reasoning_output_tokens"),
    )


def gemini_usage(entries: list[Mapping[str, Any]]) -> TurnUsage:
    """The sum over the answers since the last prompt."""
    answers: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.get("type") == "user":
            answers.clear()
        if entry.get("type") == "gemini":
            answers[str(entry.get("id", len(answers)))] = entry
    tokens = [mapping_of(each, "tokens") for each in answers.values()]
    models = [model for each in answers.values() if (model := text_of(each, "model"))]
    return TurnUsage(
        model=models[-1] if models else "",
        input_tokens=sum(count_of(each, "input") for each in tokens),
        output_tokens=sum(count_of(each, "output") for each in tokens),
        thinking_tokens=sum(count_of(each, "thoughts") for each in tokens),
    )


def mapping_of(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object of an entry; empty if it is something else."""
    value = fields.get(key)
    return value if isinstance(value, dict) else {}


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """A text of an entry; empty if it is something else."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def count_of(fields: Mapping[str, Any], key: str) -> int:
    """A number of an entry; 0 if it is something else."""
    value = fields.get(key)
    return value if isinstance(value, int) and value > 0 else 0


READERS: Mapping[str, Callable[[list[Mapping[str, Any]]], TurnUsage]] = {
    CLAUDE_CODE: claude_usage,
    CODEX: codex_usage,
    GEMINI: gemini_usage,
}
