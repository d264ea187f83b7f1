"""Markdown that looks the same wherever it is made."""

import re
from collections.abc import Iterable, Iterator


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table; a bar inside a cell stays inside it."""
    heads = tuple(heads)
    yield _row(heads)
    yield _row("---" for _ in heads)
    yield from (_row(row) for row in rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def code(text: object) -> str:
    """The text as code."""
    return f"`{text}`"


def codes(texts: Iterable[object]) -> str:
    """Each text as code, with commas between them."""
    return ", ".join(map(code, texts))


def fenced(text: str, language: str = "") -> Iterator[str]:
    """A block of code."""
    yield f"```{language}"
    yield from text.strip("\n").splitlines()
    yield "```"


def sentence(docstring: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    first = (docstring or "").strip().partition("\n\n")[0]
    return " ".join(first.split())


def first(text: str) -> str:
    """The first sentence of a text."""
    found = re.match(r".*?\.(?= |$)", text)
    return found[0] if found else text


def plain(text: str) -> str:
    """Without the marks that point into the specifications, which readers here do not have."""
    return re.sub(r"\s*\((?:OPEN|UNI|PVP|MSG)[- ][^)]*\)", "", text)


def capital(text: str) -> str:
    """The text as a sentence begins."""
    return text[:1].upper() + text[1:]
