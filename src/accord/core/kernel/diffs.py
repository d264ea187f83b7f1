"""Unified diffs: apply one to a text, whole or not at all."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HUNK = re.compile(r"@@ -([0-9]{1,9})(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@")
_PREAMBLE = ("--- ", "+++ ", "diff ", "index ")
NO_NEWLINE = "\\"
# What the first character of a hunk's line says about the side it is on.
OLD, NEW = frozenset(" -\n"), frozenset(" +\n")


class DiffError(ValueError):
    """The diff is not one, or does not fit the text."""


class Hunk(NamedTuple):
    """Lines to find at `start` (counted from 0), and lines to put there."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply(text: str, diff: str) -> str:
    """The text with every hunk applied exactly where it says; DiffError changes nothing."""
    lines = split(text)
    done: list[str] = []
    at = 0
    for hunk in hunks(diff):
        end = hunk.start + len(hunk.old)
        if not at <= hunk.start <= len(lines) or tuple(lines[hunk.start : end]) != hunk.old:
            raise DiffError(f"the hunk at line {hunk.start + 1} does not fit")
        done += [*lines[at : hunk.start], *hunk.new]
        at = end
    done += lines[at:]
    if not all(line.endswith("\n") for line in done[:-1]):
        raise DiffError("something would follow a line that has no end")
    return "".join(done)


def split(text: str) -> list[str]:
    """Lines with their ends; a line ends with a line feed and with nothing else."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def hunks(diff: str) -> Iterator[Hunk]:
    """The hunks of a diff, in order."""
    lines = split(diff)
    place, seen = 0, False
    while place < len(lines):
        line = lines[place]
        if head := _HUNK.match(line):
            place, hunk = _hunk(lines, place + 1, head)
            seen = True
            yield hunk
        elif line.startswith(_PREAMBLE) and not seen:
            place += 1
        else:
            raise DiffError(f"line {place + 1} belongs to no hunk")
    if not seen:
        raise DiffError("there is no hunk in it")


def _hunk(lines: list[str], place: int, head: re.Match[str]) -> tuple[int, Hunk]:
    first, many_old, many_new = int(head[1]), _count(head[2]), _count(head[3])
    old: list[str] = []
    new: list[str] = []
    while place < len(lines) and (
        len(old) < many_old or len(new) < many_new or lines[place].startswith(NO_NEWLINE)
    ):
        _take(lines[place], lines[place - 1], old, new)
        place += 1
    if (len(old), len(new)) != (many_old, many_new):
        raise DiffError("a hunk has not as many lines as its head says")
    if many_old and not first:
        raise DiffError("there is no line 0")
    return place, Hunk(first - 1 if many_old else first, tuple(old), tuple(new))


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)


def _take(line: str, before: str, old: list[str], new: list[str]) -> None:
    mark = line[0]
    if mark == NO_NEWLINE:
        _cut(before[0], old, new)
        return
    if mark not in OLD | NEW:
        raise DiffError(f"a line of a hunk begins with {mark!r}")
    rest = line[1:] or "\n"  # an empty line whose mark somebody trimmed
    if mark in OLD:
        old.append(rest)
    if mark in NEW:
        new.append(rest)


def _cut(mark: str, old: list[str], new: list[str]) -> None:
    """`No newline at end of file` is about the line before it."""
    for side, marks in ((old, OLD), (new, NEW)):
        if side and mark in marks:
            side[-1] = side[-1].removesuffix("\n")
