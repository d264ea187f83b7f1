"""Labels on the left, values beside them, wrapped to the terminal."""

import re
from collections.abc import Iterable, Iterator

from accord.show import style
from accord.show.columns import column_width, pad
from accord.show.text import strip_styles, text_width

LABEL_WIDTH = 13
MIN_VALUE_WIDTH = 20
# Text in backticks is meant to be copied, so it stays on one line.
_split_words = re.compile(r"(?:[^\s`]|`[^`]{1,60}`|`)+").findall
LabelledValue = tuple[str, str]


def render_labelled(
    facts: Iterable[LabelledValue], indent: str = "", label: int = LABEL_WIDTH
) -> Iterator[str]:
    """Print repeated labels once, leave out empty values, and wrap long ones below themselves."""
    before = ""
    for name, value in facts:
        if not value:
            continue
        shown_label = "" if name == before else name
        before = name
        first, *rest = wrap_words(value, text_width() - len(indent) - label)
        yield f"{indent}{style.dim(pad(shown_label, label))}{first}"
        yield from (f"{indent}{' ' * label}{line}" for line in rest)


def wrap_words(value: str, width: int) -> list[str]:
    """Wrap words to the width; styles count as no characters."""
    lines = [""]
    for word in _split_words(value):
        joined = column_width(strip_styles(f"{lines[-1]} {word}"))
        if lines[-1] and joined > max(MIN_VALUE_WIDTH, width):
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
