"""Applying a unified diff to a text, completely or not at all."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@")
_PREAMBLE = ("--- ", "+++ ", "diff ", "index ")
NO_NEWLINE_MARK = "\\"
# The first character of a line in a hunk tells whether it is in the old text, the new, or both.
OLD_SIDE_MARKS, NEW_SIDE_MARKS = frozenset(" -\n"), frozenset(" +\n")


class DiffError(ValueError):
    """The diff is malformed or does not match the text."""


class Hunk(NamedTuple):
    """The `old` lines at `start` (counted from 0), to be replaced with `new`."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply_diff(text: str, diff: str) -> str:
    """The text with every hunk applied at its exact line; DiffError if one does not match."""
    lines = split_lines(text)
    result: list[str] = []
    at = 0
    for hunk in parse_hunks(diff):
        end = hunk.start + len(hunk.old)
        if not at <= hunk.start <= len(lines) or tuple(lines[hunk.start : end]) != hunk.old:
            raise DiffError(f"the hunk at line {hunk.start + 1} does not match the text")
        result += [*lines[at : hunk.start], *hunk.new]
        at = end
    result += lines[at:]
    if not all(line.endswith("\n") for line in result[:-1]):
        raise DiffError("a line would follow one that has no newline")
    return "".join(result)


def split_lines(text: str) -> list[str]:
    """Lines including their line feeds; no other character ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def parse_hunks(diff: str) -> Iterator[Hunk]:
    """The hunks of a diff; raises DiffError if there are none or it has stray lines."""
    lines = split_lines(diff)
    index, any_hunk = 0, False
    while index < len(lines):
        line = lines[index]
        if head := _HUNK.match(line):
            index, hunk = _parse_hunk(lines, index + 1, head)
            any_hunk = True
            yield hunk
        elif line.startswith(_PREAMBLE) and not any_hunk:
            index += 1
        else:
            raise DiffError(f"line {index + 1} is not part of a hunk")
    if not any_hunk:
        raise DiffError("the diff has no hunk")


def _parse_hunk(lines: list[str], index: int, head: re.Match[str]) -> tuple[int, Hunk]:
    first, old_count, new_count = int(head[1]), _count(head[2]), _count(head[3])
    old: list[str] = []
    new: list[str] = []
    while index < len(lines) and (
        len(old) < old_count or len(new) < new_count or lines[index].startswith(NO_NEWLINE_MARK)
    ):
        _add_line(lines[index], lines[index - 1], old, new)
        index += 1
    if (len(old), len(new)) != (old_count, new_count):
        raise DiffError("a hunk does not have the number of lines that its header states")
    if old_count and not first:
        raise DiffError("a hunk starts at line 0; lines are counted from 1")
    return index, Hunk(first - 1 if old_count else first, tuple(old), tuple(new))


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)


def _add_line(line: str, before: str, old: list[str], new: list[str]) -> None:
    mark = line[0]
    if mark == NO_NEWLINE_MARK:
        _strip_newline(before[0], old, new)
        return
    if mark not in OLD_SIDE_MARKS | NEW_SIDE_MARKS:
        raise DiffError(f"a line of a hunk starts with {mark!r} instead of a space, + or -")
    rest = line[1:] or "\n"  # an empty context line whose leading space was trimmed
    if mark in OLD_SIDE_MARKS:
        old.append(rest)
    if mark in NEW_SIDE_MARKS:
        new.append(rest)


def _strip_newline(mark: str, old: list[str], new: list[str]) -> None:
    """Apply `No newline at end of file` to the line before it."""
    for side, marks in ((old, OLD_SIDE_MARKS), (new, NEW_SIDE_MARKS)):
        if side and mark in marks:
            side[-1] = side[-1].removesuffix("\n")
