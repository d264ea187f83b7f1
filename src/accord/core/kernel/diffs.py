"""Unified diffs: apply one to a text, whole or not at all."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PREAMBLE = ("--- ", "+++ ", "diff ", "index ")
NO_NEWLINE = "\\"


class DiffError(ValueError):
    """The diff is not one, or does not fit the text."""


class Hunk(NamedTuple):
    """Lines to find at `start` (counted from 0), and lines to put there."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply(text: str, diff: str) -> str:
    """The text with every hunk applied exactly where it says; DiffError changes nothing."""
    lines = text.splitlines(keepends=True)
    done: list[str] = []
    at = 0
    for hunk in hunks(diff):
        found = tuple(lines[hunk.start : hunk.start + len(hunk.old)])
        if hunk.start < at or found != hunk.old:
            raise DiffError(f"the hunk at line {hunk.start + 1} does not fit")
        done += lines[at : hunk.start]
        done += hunk.new
        at = hunk.start + len(hunk.old)
    return "".join([*done, *lines[at:]])


def hunks(diff: str) -> Iterator[Hunk]:
    """The hunks of a diff, in order."""
    lines = diff.splitlines(keepends=True)
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
    first, many_old, many_new = int(head[1]), _count(head[2]), _count(head[4])
    old: list[str] = []
    new: list[str] = []
    while place < len(lines) and (len(old) < many_old or len(new) < many_new):
        _take(lines[place], old, new)
        place += 1
    if place < len(lines) and lines[place].startswith(NO_NEWLINE):
        _cut(lines[place - 1], old, new)
        place += 1
    if (len(old), len(new)) != (many_old, many_new):
        raise DiffError("a hunk has not as many lines as its head says")
    start = first - 1 if many_old else first
    return place, Hunk(max(0, start), tuple(old), tuple(new))


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)


def _take(line: str, old: list[str], new: list[str]) -> None:
    mark, rest = line[:1], line[1:]
    if mark in {" ", "\n"}:
        old.append(rest or "\n")
        new.append(rest or "\n")
    elif mark == "-":
        old.append(rest)
    elif mark == "+":
        new.append(rest)
    elif mark == NO_NEWLINE:
        _cut("-", old, new)
    else:
        raise DiffError(f"a line of a hunk begins with {mark!r}")


def _cut(before: str, old: list[str], new: list[str]) -> None:
    """`No newline at end of file` is about the line before it."""
    for side, marks in ((old, " -"), (new, " +")):
        if side and before[:1] in marks:
            side[-1] = side[-1].removesuffix("\n")
