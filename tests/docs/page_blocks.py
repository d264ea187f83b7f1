"""Pages as a reader meets them: fenced blocks in order, each with what to do with it.

- A `console` block is typed, line by line, where a line begins with `$ `; what follows is what the
  reader sees.
- A `python` block is run; a block after `<!-- output -->` is what it prints.
- A block after the line ``File `NAME`:`` is saved under that name.
- A block after `<!-- not run: REASON -->` is only shown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EXECUTED_PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
# These need a real host, so `tests/hosts` runs them.
HOST_PAGES = {
    name: ROOT / "docs" / "how-to" / f"connect-{page}.md"
    for name, page in {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}.items()
}
ALL_PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:^[ ]*(?:<!-- (?P<note>[^\n]*?) -->|File `(?P<file>[^\n`]+)`:)\n+)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
PROMPT = "$ "
CONTINUATION = "> "


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


def parse_blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page."""
    for found in _BLOCK.finditer(text):
        indent = found["indent"]
        lines = [line.removeprefix(indent) for line in found["text"].splitlines()]
        at = text.count("\n", 0, found.start("language")) + 1
        note = f"file: {found['file']}" if found["file"] else found["note"] or ""
        yield Block(found["language"], "\n".join(lines), note, at)


def strip_blocks(text: str) -> str:
    """The page without its blocks."""
    return _BLOCK.sub("", text)


def parse_steps(text: str) -> list[Step]:
    """Everything that a reader of the page does, in order."""
    made: list[Step] = []
    for block in parse_blocks(text):
        kind, _, name = block.note.partition(": ")
        if kind == "not run":
            continue
        if kind == "file":
            made.append(save_step(name, block))
        elif kind == "output":
            made[-1] = made[-1]._replace(expect=block.text)
        elif block.language == "console":
            made += parse_console(block)
        elif block.language == "python":
            made.append(Step(heredoc("python -", block.text), None, block.line))
    return made


def save_step(name: str, block: Block) -> Step:
    """The block in a file."""
    return Step(heredoc(f"cat > {name}", block.text), None, block.line)


def heredoc(command: str, text: str) -> str:
    """The command with the text as its input."""
    return f"{command} <<'END OF BLOCK'\n{text}\nEND OF BLOCK"


def parse_console(block: Block) -> Iterator[Step]:
    """What is typed at each prompt; a line that begins with `> ` goes on with the one before."""
    command, seen, at = "", list[str](), 0
    for place, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith(PROMPT):
            if command:
                yield Step(command, "\n".join(seen) or None, at)
            command, seen, at = line.removeprefix(PROMPT), [], place
        elif line.startswith(CONTINUATION) and not seen:
            command += f"\n{line.removeprefix(CONTINUATION)}"
        else:
            seen.append(line)
    if command:
        yield Step(command, "\n".join(seen) or None, at)
