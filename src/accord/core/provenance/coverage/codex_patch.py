"""The patch format of Codex's `apply_patch`.

*** Begin Patch
*** Add File: new.txt
+its first line
*** Update File: old.txt
*** Move to: renamed.txt
@@ def main():
 a line that stays
-a line that goes
+a line that comes
*** End of File
*** Delete File: gone.txt
*** End Patch
"""

from collections.abc import Iterator
from typing import NamedTuple

from accord.core.provenance.coverage.text_changes import (
    CallDoesNotFitError,
    Chunk,
    DeleteText,
    PatchText,
    TextChange,
    WriteText,
)

BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
ADD, DELETE, UPDATE, MOVE = (
    "*** Add File: ",
    "*** Delete File: ",
    "*** Update File: ",
    "*** Move to: ",
)
SECTION = "*** "
SEPARATOR = "@@"


class PatchPart(NamedTuple):
    """The change of one file; `source` is the file that it was moved from."""

    path: str
    change: TextChange
    source: str = ""


def parse_codex_patch(text: str) -> list[PatchPart]:
    """The changes in order; raises CallDoesNotFitError for anything but a well-formed patch."""
    lines = text.strip("\n").split("\n")
    if len(lines) < 3 or lines[0].rstrip() != BEGIN or lines[-1].rstrip() != END:
        raise CallDoesNotFitError
    parts: list[PatchPart] = []
    at = 1
    while at < len(lines) - 1:
        end = at + 1
        while not lines[end].startswith(SECTION) or lines[end].startswith((MOVE, END_OF_FILE)):
            end += 1
        parts += _parse_section(lines[at], lines[at + 1 : end])
        at = end
    return parts


def _parse_section(head: str, body: list[str]) -> Iterator[PatchPart]:
    if head.startswith(ADD):
        if not all(line.startswith("+") for line in body):
            raise CallDoesNotFitError
        yield PatchPart(
            head.removeprefix(ADD), WriteText("".join(f"{line[1:]}\n" for line in body))
        )
    elif head.startswith(DELETE) and not body:
        yield PatchPart(head.removeprefix(DELETE), DeleteText())
    elif head.startswith(UPDATE):
        yield from _parse_update(head.removeprefix(UPDATE), body)
    else:
        raise CallDoesNotFitError


def _parse_update(path: str, body: list[str]) -> Iterator[PatchPart]:
    moved = body[0].removeprefix(MOVE) if body and body[0].startswith(MOVE) else ""
    change = PatchText(tuple(_parse_chunks(body[1:] if moved else body)))
    if not change.chunks:
        raise CallDoesNotFitError
    yield PatchPart(moved or path, change, path if moved else "")
    if moved:
        yield PatchPart(path, DeleteText())


def _parse_chunks(lines: list[str]) -> Iterator[Chunk]:
    chunk = Chunk(None, (), ())
    is_open = False
    for line in lines:
        if line.startswith(SEPARATOR):
            if is_open:
                yield chunk
            chunk, is_open = Chunk(line[len(SEPARATOR) + 1 :] or None, (), ()), False
        elif line.rstrip() == END_OF_FILE and is_open:
            chunk = chunk._replace(is_at_end=True)
        else:
            chunk, is_open = _with_line(chunk, line), True
    if is_open:
        yield chunk


def _with_line(chunk: Chunk, line: str) -> Chunk:
    if chunk.is_at_end or line[:1] not in ("", " ", "+", "-"):
        raise CallDoesNotFitError
    stays, goes, comes = line[:1] in ("", " "), line[:1] == "-", line[:1] == "+"
    return chunk._replace(
        old=(*chunk.old, line[1:]) if stays or goes else chunk.old,
        new=(*chunk.new, line[1:]) if stays or comes else chunk.new,
    )
