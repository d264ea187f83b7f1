"""Facts: labels on the left, values beside them, in lines that fit."""

import re
from collections.abc import Iterable, Iterator

from accord.show import paint
from accord.show.text import unstyled, width

LABEL = 13
NARROWEST = 20
# What stands in backticks is to be copied, so it stays on one line.
_words = re.compile(r"(?:[^\s`]|`[^`]{1,60}`|`)+").findall
Fact = tuple[str, str]


def labelled(facts: Iterable[Fact], indent: str = "", label: int = LABEL) -> Iterator[str]:
    """Each label once; what is empty is left out, what is long goes on below itself."""
    before = ""
    for name, value in facts:
        if not value:
            continue
        said = "" if name == before else name
        before = name
        first, *rest = folded(value, width() - len(indent) - label)
        yield f"{indent}{paint.dim(said.ljust(label))}{first}"
        yield from (f"{indent}{' ' * label}{each}" for each in rest)


def folded(value: str, room: int) -> list[str]:
    """Words in lines that fit; a style that begins a value is as wide as nothing."""
    lines = [""]
    for word in _words(value):
        if lines[-1] and len(unstyled(lines[-1])) + 1 + len(unstyled(word)) > max(NARROWEST, room):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
