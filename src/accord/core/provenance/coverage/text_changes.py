"""Changes of one text file, exactly as a call describes them; None is a file that is not there."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class CallDoesNotFitError(ValueError):
    """The call cannot be read, or cannot have been applied to this content."""


class TextChange(Protocol):
    """A change of one file."""

    def apply(self, content: str | None) -> str | None:
        """The content afterwards; raises CallDoesNotFitError if it does not apply."""
        ...

    def with_line_feeds(self) -> "TextChange":
        """The same change where git stores line feeds for the lines of the work tree."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the content afterwards does not depend on the content before."""
        ...


def with_line_feeds(text: str) -> str:
    """The text as git stores it where it converts line endings."""
    return text.replace("\r\n", "\n")


class WriteText(NamedTuple):
    """The whole content of the file."""

    content: str
    is_complete: bool = True

    def apply(self, content: str | None) -> str | None:
        del content
        return self.content

    def with_line_feeds(self) -> "WriteText":
        return WriteText(with_line_feeds(self.content))


class DeleteText(NamedTuple):
    """The file is removed."""

    is_complete: bool = False

    def apply(self, content: str | None) -> str | None:
        if content is None:
            raise CallDoesNotFitError
        return None

    def with_line_feeds(self) -> "DeleteText":
        return self


class ReplaceText(NamedTuple):
    """A text is replaced where it occurs, `times` times; None for as often as it occurs.

    An empty `old` creates a file that is not there.
    """

    old: str
    new: str
    times: int | None = 1
    is_complete: bool = False

    def apply(self, content: str | None) -> str | None:
        if content is None and not self.old:
            return self.new
        found = content.count(self.old) if content and self.old else 0
        if content is None or not found or self.times not in (None, found):
            raise CallDoesNotFitError
        return content.replace(self.old, self.new)

    def with_line_feeds(self) -> "ReplaceText":
        return ReplaceText(with_line_feeds(self.old), with_line_feeds(self.new), self.times)


class Chunk(NamedTuple):
    """Consecutive lines that are replaced, below an optional line that says where to look."""

    below: str | None
    old: tuple[str, ...]
    new: tuple[str, ...]
    is_at_end: bool = False


class PatchText(NamedTuple):
    """Chunks of lines, replaced in order; only lines that match exactly are found."""

    chunks: tuple[Chunk, ...]
    is_complete: bool = False

    def apply(self, content: str | None) -> str | None:
        if content is None:
            raise CallDoesNotFitError
        lines = content.split("\n")
        if lines[-1] == "":
            lines.pop()
        result: list[str] = []
        position = 0
        for chunk in self.chunks:
            start = _find_chunk(lines, chunk, position)
            result += [*lines[position:start], *chunk.new]
            position = start + len(chunk.old)
        result += lines[position:]
        return "".join(f"{line}\n" for line in result)

    def with_line_feeds(self) -> "PatchText":
        return self  # its lines were split at line feeds


def _find_chunk(lines: Sequence[str], chunk: Chunk, position: int) -> int:
    """Where the chunk's old lines begin; raises CallDoesNotFitError."""
    if chunk.below is not None:
        position = _find_lines(lines, (chunk.below,), position) + 1
    if not chunk.old:
        return len(lines)  # added lines without any context go to the end
    if chunk.is_at_end:
        start = len(lines) - len(chunk.old)
        if start < position or tuple(lines[start:]) != chunk.old:
            raise CallDoesNotFitError
        return start
    return _find_lines(lines, chunk.old, position)


def _find_lines(lines: Sequence[str], wanted: tuple[str, ...], position: int) -> int:
    for start in range(position, len(lines) - len(wanted) + 1):
        if tuple(lines[start : start + len(wanted)]) == wanted:
            return start
    raise CallDoesNotFitError
