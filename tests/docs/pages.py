"""Pages as a reader meets them: fenced blocks in order, each with what to do with it.

- A `console` block is typed, line by line, where a line begins with `$ `; what follows is what the
  reader sees.
- A `python` block is run; a block after `<!-- output -->` is what it prints.
- A block after `<!-- file: NAME -->` is saved under that name.
- A block after `<!-- not run: REASON -->` is only shown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RUN = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
TEXT = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<note>[^\n]*?) -->\n+)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
PROMPT = "$ "
GOES_ON = "> "


class Block(NamedTuple):
    """A fenced block, and the remark above it."""

    language: str
    text: str
    note: str
    line: int


class Step(NamedTuple):
    """Something the reader does, and what they are told to expect (None: nothing in particular)."""

    do: str
    expect: str | None
    line: int


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page."""
    for found in _BLOCK.finditer(text):
        indent = found["indent"]
        lines = [line.removeprefix(indent) for line in found["text"].splitlines()]
        at = text.count("\n", 0, found.start("language")) + 1
        yield Block(found["language"], "\n".join(lines), found["note"] or "", at)


def prose(text: str) -> str:
    """The page without its blocks."""
    return _BLOCK.sub("", text)


def steps(text: str) -> list[Step]:
    """Everything that a reader of the page does, in order."""
    made: list[Step] = []
    for block in blocks(text):
        kind, _, name = block.note.partition(": ")
        if kind == "not run":
            continue
        if kind == "file":
            made.append(save(name, block))
        elif kind == "output":
            made[-1] = made[-1]._replace(expect=block.text)
        elif block.language == "console":
            made += typed(block)
        elif block.language == "python":
            made.append(Step(heredoc("python -", block.text), None, block.line))
    return made


def save(name: str, block: Block) -> Step:
    """The block in a file."""
    return Step(heredoc(f"cat > {name}", block.text), None, block.line)


def heredoc(command: str, text: str) -> str:
    """The command with the text as its input."""
    return f"{command} <<'END OF BLOCK'\n{text}\nEND OF BLOCK"


def typed(block: Block) -> Iterator[Step]:
    """What is typed at each prompt; a line that begins with `> ` goes on with the one before."""
    command, seen, at = "", list[str](), 0
    for place, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith(PROMPT):
            if command:
                yield Step(command, "\n".join(seen) or None, at)
            command, seen, at = line.removeprefix(PROMPT), [], place
        elif line.startswith(GOES_ON) and not seen:
            command += f"\n{line.removeprefix(GOES_ON)}"
        else:
            seen.append(line)
    if command:
        yield Step(command, "\n".join(seen) or None, at)
