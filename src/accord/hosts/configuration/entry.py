"""What Accord adds to a host's configuration file, and what adding it changed in the text."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

Path = tuple[str, ...]
Span = tuple[int, int]  # where inserted text begins and ends


class ConfigurationError(ValueError):
    """The file cannot be changed; the message says why and what to do."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry: `value` under `key` in the object at `path`, or as one more in the list there.

    `mark` is text in the value by which the entry is found again after an edit. An entry
    `if_missing` is what the host needs in the file anyway: it is added only where it is missing.
    """

    path: Path
    value: Any
    key: str = ""
    mark: str = ""
    if_missing: bool = False

    @property
    def place(self) -> str:
        """Where the entry is, as a person writes it."""
        return ".".join((*self.path, *([self.key] if self.key else [])))

    def is_marked(self, value: Any) -> bool:
        """Whether a value of the file is this entry, perhaps edited since."""
        return value == self.value or (bool(self.mark) and contains_text(value, self.mark))


class Addition(msgspec.Struct, frozen=True):
    """A text with entries added: which spans are new, and which containers were created."""

    text: str
    spans: tuple[Span, ...] = ()
    created: tuple[Path, ...] = ()


def contains_text(value: Any, mark: str) -> bool:
    """Whether any text inside a value contains the mark."""
    if isinstance(value, str):
        return mark in value
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return any(contains_text(each, mark) for each in inner)


def insert(text: str, at: int, run: str, spans: Sequence[Span]) -> tuple[str, tuple[Span, ...]]:
    """Insert a run, and keep the spans of what was inserted before in step."""
    size = len(run)
    moved: list[Span] = []
    is_inside = False
    for start, end in spans:
        if end <= at:
            moved.append((start, end))
        elif at <= start:
            moved.append((start + size, end + size))
        else:
            moved.append((start, end + size))
            is_inside = True
    if not is_inside:
        moved.append((at, at + size))
    return text[:at] + run + text[at:], tuple(sorted(moved))


def without_spans(text: str, spans: Iterable[Span]) -> str:
    """The text before the spans were inserted."""
    kept, last = [], 0
    for start, end in sorted(spans):
        kept.append(text[last:start])
        last = end
    return "".join([*kept, text[last:]])


def newline_of(text: str) -> str:
    """How the lines of this text end."""
    return "\r\n" if "\r\n" in text else "\n"
