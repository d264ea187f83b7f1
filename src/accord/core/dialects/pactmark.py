"""A book as it was some events ago: lines that git puts in later begin there, and not at the start.

A union merge brings both sides' lines since the two parted. Their times go to and fro; what was
said before that stays as it is.
"""

from collections.abc import Sequence

from accord.core.dialects.pactbook import Book

# Events between two marks; copying a book takes as long as reading some hundred events.
EVERY = 4096
KEPT = 2


class Bookmark:
    """A copy of a book whose lines stood in the order of their time, and what came since."""

    def __init__(self, book: Book) -> None:
        self.count = book.lines
        self._book = book.copy()
        self._since: dict[str, str] = {}

    def note(self, key: str, line: str) -> None:
        """An event that came behind it."""
        self._since.setdefault(key, line)

    def again(self, order: Sequence[str]) -> Book | None:
        """The book of the events in this order, if what the mark holds is as it was.

        None where something behind it is older than it, or is not known here.
        """
        lines = [self._since.get(key) for key in order[self.count :]]
        known = [line for line in lines if line is not None]
        if len(known) < len(lines):
            return None
        book = self._book.copy()
        return book if book.add(known) else None


class Bookmarks:
    """The last few marks in a book, the oldest first."""

    def __init__(self) -> None:
        self._marks: list[Bookmark] = []

    def note(self, key: str, line: str) -> None:
        """An event that was added at the end."""
        for mark in self._marks:
            mark.note(key, line)

    def put(self, book: Book) -> None:
        """Mark where the book is now, if that is far enough from the last mark."""
        if not self._marks or book.lines - self._marks[-1].count >= EVERY:
            self._marks = [*self._marks[1 - KEPT :], Bookmark(book)]

    def moved(self, at: int) -> None:
        """Events from this place on stand otherwise; marks behind it are of another order."""
        self._marks = [mark for mark in self._marks if mark.count <= at]

    def again(self, order: Sequence[str]) -> Book | None:
        """The book of the events in this order, from the last mark that still holds."""
        while self._marks:
            if book := self._marks[-1].again(order):
                return book
            self._marks.pop()
        return None
