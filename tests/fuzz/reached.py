"""What an input reached where the fuzzer cannot see it, as inside a decoder written in C."""

import re
from collections.abc import Callable, Hashable

# More of them than this teach nothing new, and atheris ends when it runs out of places to count.
MOST = 1024
NUMBERS = re.compile(r"[0-9]+|'.*'")


class Reached:
    """Each label counts like a branch of code that was taken."""

    def __init__(self) -> None:
        self.watched: Callable[[Callable[[], None]], Callable[[], None]] | None = None
        self.marks: dict[Hashable, Callable[[], None]] = {}

    def __call__(self, *label: Hashable) -> None:
        """This was reached."""
        if self.watched is None:
            return
        label = tuple(NUMBERS.sub("", each) if isinstance(each, str) else each for each in label)
        mark = self.marks.get(label)
        if mark is None and len(self.marks) < MOST:
            mark = self.marks[label] = self.watched(fresh())
        if mark is not None:
            mark()


def fresh() -> Callable[[], None]:
    """A function of its own."""

    def mark() -> None:
        return

    return mark


reached = Reached()
