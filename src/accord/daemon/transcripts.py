"""What a host's own transcript says about its last turn: the model, and the tokens it used.

Transcripts are the hosts' private files and change with their versions, so everything here is
optional: what is not found is left out.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.hosts.hook_events import CLAUDE_CODE, CODEX, GEMINI

# A turn is at the end of the file.
MAX_TAIL_BYTES = 1 << 20
# Hosts write the last answer at about the time when they run the hook for the end of a turn.
COMPLETE_TIMEOUT_S = 1.0
COMPLETE_POLL_S = 0.05


class TurnUsage(NamedTuple):
    """What a turn used; `model` is empty where the transcript does not name it.

    It is not complete while the transcript ends with a call of a tool, or before the count of the
    last answer.
    """

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    is_complete: bool = True

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


def read_complete_usage(host: str, path: str, home: str) -> TurnUsage:
    """The usage of the turn that just ended, once the host has written all of it."""
    deadline = time.monotonic() + COMPLETE_TIMEOUT_S
    while not (usage := read_usage(host, path, home)).is_complete and time.monotonic() < deadline:
        time.sleep(COMPLETE_POLL_S)
    return usage


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
    last = list(messages.values())[-1] if messages else {}
    input_keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return TurnUsage(
        model=models[-1] if models else "",
        input_tokens=sum(count_of(usage, key) for usage in usages for key in input_keys),
        output_tokens=sum(count_of(usage, "output_tokens") for usage in usages),
        is_complete=last.get("stop_reason") != "tool_use",
    )


def codex_usage(entries: list[Mapping[str, Any]]) -> TurnUsage:
    """The sum of the requests' counts since the turn began; each count follows its answer."""
    model, usages, is_complete = "", list[dict[str, Any]](), True
    for entry in entries:
        payload = mapping_of(entry, "payload")
        model = text_of(payload, "model") or model
        match payload.get("type"):
            case "task_started":
                usages.clear()
            case "token_count":
                usages.append(mapping_of(mapping_of(payload, "info"), "last_token_usage"))
                is_complete = True
            case "message" if payload.get("role") == "assistant":
                is_complete = False
    return TurnUsage(
        model=model,
        input_tokens=sum(count_of(each, "input_tokens") for each in usages),
        output_tokens=sum(count_of(each, "output_tokens") for each in usages),
        thinking_tokens=sum(count_of(each, "reasoning_output_tokens") for each in usages),
        is_complete=is_complete,
    )


def gemini_usage(entries: list[Mapping[str, Any]]) -> TurnUsage:
    """The sum over the answers since the last prompt; results of tools are the user's too."""
    answers: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.get("type") == "user" and not is_tool_result(entry):
            answers.clear()
        if entry.get("type") == "gemini":
            answers[str(entry.get("id", len(answers)))] = entry
    tokens = [mapping_of(each, "tokens") for each in answers.values()]
    models = [model for each in answers.values() if (model := text_of(each, "model"))]
    last = list(answers.values())[-1] if answers else {}
    return TurnUsage(
        model=models[-1] if models else "",
        input_tokens=sum(count_of(each, "input") for each in tokens),
        output_tokens=sum(count_of(each, "output") for each in tokens),
        thinking_tokens=sum(count_of(each, "thoughts") for each in tokens),
        is_complete=not last.get("toolCalls"),
    )


def is_tool_result(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of Gemini's user is what a tool returned."""
    content = entry.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and "functionResponse" in part for part in parts)


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
