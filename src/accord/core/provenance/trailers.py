"""The trailers of a commit message, exactly as git finds them.

Only the last paragraph counts, and only if it is made of trailers, or holds a line of git's own
and is for at least a quarter trailers. The first paragraph never counts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

COMMENT = "#"
SCISSORS = "# ------------------------ >8 ------------------------\n"
# Lines that git itself adds; with one of them a block may hold other lines, too.
GENERATED = ("Signed-off-by: ", "(cherry picked from commit ")
SPACES = " \t\n\r"
IN_KEYS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"


class Trailer(NamedTuple):
    """A line such as `Decision-By: human:alice`; `line` is where it stands, counted from 1."""

    key: str
    value: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


class Block(NamedTuple):
    """Where the trailers are: lines from `start` to before `end`, counted from 0."""

    start: int
    end: int
    trailers: tuple[Trailer, ...]


def lines_of(text: str) -> list[str]:
    """The lines with their ends; no character but the line feed ends one."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def find(text: str) -> Block:
    """The trailers in a message, and where they stand."""
    lines = lines_of(text)
    end = _end(lines)
    start = _start(lines[:end])
    return Block(start, end, tuple(_parse(lines[start:end], start)))


def trailers_in(text: str) -> tuple[Trailer, ...]:
    """The trailers in a message."""
    return find(text).trailers


def _end(lines: Sequence[str]) -> int:
    """Before what is no part of the message: comments, old notes of conflicts, what is cut off."""
    cut = next((n for n, line in enumerate(lines) if line == SCISSORS), len(lines))
    tail = 0  # where the run of such lines began; at 0 there is no message to keep
    conflicts = False
    for number, line in enumerate(lines[:cut]):
        if line[0] in (COMMENT, "\n"):
            tail = tail or number
        elif line == "Conflicts:\n":
            conflicts, tail = True, tail or number
        elif not (conflicts and line[0] == "\t"):
            conflicts, tail = conflicts and not tail, 0
    return tail or cut


def _start(lines: Sequence[str]) -> int:
    """Where the last paragraph begins, if it is one of trailers; else the end."""
    count = _Count()
    for number in range(len(lines) - 1, _title(lines) - 1, -1):
        line = lines[number]
        if line[0] == COMMENT:
            count.settle()
        elif not line.strip(SPACES):
            if count.any_line:
                return number + 1 if count.is_block() else len(lines)
        else:
            count.add(line)
    return len(lines)


def _title(lines: Sequence[str]) -> int:
    """The blank line after the first paragraph."""
    blank = (n for n, line in enumerate(lines) if line[0] != COMMENT and not line.strip(SPACES))
    return next(blank, len(lines))


class _Count:
    """What the lines of a paragraph are, read from the last to the first."""

    def __init__(self) -> None:
        self.any_line = self.generated = False
        self.trailers = self.others = self.indented = 0

    def add(self, line: str) -> None:
        self.any_line = True
        generated = line.startswith(GENERATED)
        if generated or _key(line):
            # Indented lines below are its own.
            self.generated = self.generated or generated
            self.trailers, self.indented = self.trailers + 1, 0
        elif line[0] in SPACES:
            self.indented += 1
        else:
            self.others += 1
            self.settle()

    def settle(self) -> None:
        """Indented lines that belong to no trailer are other lines."""
        self.others, self.indented = self.others + self.indented, 0

    def is_block(self) -> bool:
        self.settle()
        if self.generated and self.trailers * 3 >= self.others:
            return True
        return self.trailers > 0 and self.others == 0


def _parse(lines: Sequence[str], offset: int) -> Iterator[Trailer]:
    """Each trailer with the indented lines that continue it; nothing else is continued."""
    at = 0
    while at < len(lines):
        key, after = _key(lines[at]), at + 1
        while key and after < len(lines) and lines[after][0] in SPACES:
            after += 1
        if key:
            value = lines[at].partition(":")[2]
            yield Trailer(key, _unfolded(value, lines[at + 1 : after]), offset + at + 1)
        at = after


def _key(line: str) -> str:
    """The key of a trailer that the line begins; empty where it begins none."""
    key, colon, _ = line.partition(":")
    key = key.rstrip(" \t")
    return "" if not colon or key.strip(IN_KEYS) else key


def _unfolded(first: str, more: Sequence[str]) -> str:
    """One line; what stands before a line's end stays, empty lines go."""
    rest = (line.lstrip(SPACES).removesuffix("\n") for line in more)
    return " ".join([first.removesuffix("\n"), *filter(None, rest)]).strip(SPACES)
