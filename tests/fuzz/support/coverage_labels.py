"""What an input reached where the fuzzer cannot see it, as inside a decoder written in C."""

import re
from collections.abc import Callable, Hashable

# More of them than this teach nothing new, and atheris ends when it runs out of places to count.
MAX_LABELS = 1024
NUMBERS = re.compile(r"[0-9]+|'.*'")


class CoverageLabels:
    """Each label counts like a branch of code that was taken."""

    def __init__(self) -> None:
        self.instrument: Callable[[Callable[[], None]], Callable[[], None]] | None = None
        self.marks: dict[Hashable, Callable[[], None]] = {}

    def __call__(self, *label: Hashable) -> None:
        """This was reached."""
        if self.instrument is None:
            return
        label = tuple(NUMBERS.sub("", each) if isinstance(each, str) else each for each in label)
        mark = self.marks.get(label)
        if mark is None and len(self.marks) < MAX_LABELS:
            mark = self.marks[label] = self.instrument(new_mark())
        if mark is not None:
            mark()


def new_mark() -> Callable[[], None]:
    """A function of its own."""

    def mark() -> None:
        return

    return mark


mark_reached = CoverageLabels()
