"""The screen of a terminal, as far as finding a prompt needs it.

It keeps characters, three properties of each (faint, reversed, its colour), the cursor, the title
and a few modes. What it does not know it skips, as terminals do.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from wcwidth import wcwidth

from accord.supervisor.escape_parser import EscapeParser, Token, TokenKind

TAB = 8
BLANK = " "
# The second half of a wide character.
CONTINUED = ""
MAX_PARAMETER = 9999
MAX_TITLE = 512
Numbers = tuple[int, ...]
ALTERNATE_SCREENS = frozenset({47, 1047, 1049})


class Style(NamedTuple):
    """How a character looks, as far as it matters; `colour` is of the text, as it was set."""

    faint: bool = False
    reverse: bool = False
    colour: str = ""


PLAIN = Style()
# What the numbers of a style sequence (SGR) change.
STYLES: dict[int, dict[str, Any]] = {
    0: PLAIN._asdict(),
    2: {"faint": True},
    22: {"faint": False},
    7: {"reverse": True},
    27: {"reverse": False},
    39: {"colour": ""},
}
COLOURS = frozenset({*range(30, 38), *range(90, 98)})
TEXT_COLOUR = 38
OTHER_COLOURS = frozenset({48, 58})


class Cell(NamedTuple):
    """One position."""

    text: str = BLANK
    style: Style = PLAIN


EMPTY = Cell()


class Cursor(NamedTuple):
    """Where the next character goes; `wraps`: the last one filled the line."""

    row: int = 0
    column: int = 0
    wraps: bool = False


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    return wcwidth(character)


@lru_cache(maxsize=4096)
def _parameters(text: str) -> Numbers:
    """The numbers of a sequence; what is missing is 0, and colons count as semicolons."""
    digits = text.lstrip("?>=<").replace(":", ";").split(";")
    return tuple(min(int(one), MAX_PARAMETER) if one.isdecimal() else 0 for one in digits)


class Screen:
    """Takes in what a program writes; `rows` and `columns` are those of its terminal."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self._parser = EscapeParser()
        self.rows, self.columns = rows, columns
        self.title = ""
        self.modes: set[int] = set()
        self.cursor = Cursor()
        self.cells = self._blank()
        # Whether everything on the screen was written while we looked.
        self.is_complete = True
        self.on_osc: list[Callable[[str], None]] = []
        self._style = PLAIN
        self._saved = Cursor()
        self._main: list[list[Cell]] | None = None
        self._top, self._bottom = 0, rows - 1
        self._handlers: dict[TokenKind, Callable[[Token], None]] = {
            TokenKind.TEXT: self._on_text,
            TokenKind.CONTROL: self._on_control,
            TokenKind.CSI: self._on_csi,
            TokenKind.OSC: self._on_osc,
            TokenKind.ESCAPE: self._on_escape,
        }
        self._sequences: dict[str, Callable[[Numbers], None]] = {
            "A": partial(self._by, -1, 0),
            "B": partial(self._by, 1, 0),
            "C": partial(self._by, 0, 1),
            "D": partial(self._by, 0, -1),
            "E": partial(self._to_line_start, 1),
            "F": partial(self._to_line_start, -1),
            "G": self._to_column,
            "`": self._to_column,
            "d": self._to_row,
            "H": self._to,
            "f": self._to,
            "J": self._erase_display,
            "K": self._erase_line,
            "X": self._erase_characters,
            "@": self._insert_characters,
            "P": self._delete_characters,
            "L": self._insert_lines,
            "M": self._delete_lines,
            "S": partial(self._scroll_region, 1),
            "T": partial(self._scroll_region, -1),
            "r": self._set_region,
            "m": self._set_style,
            "s": self._save_cursor,
            "u": self._restore_cursor,
        }

    def _blank(self) -> list[list[Cell]]:
        return [[EMPTY] * self.columns for _ in range(self.rows)]

    # What can be seen

    def line(self, row: int) -> str:
        """The text of a row, without blanks at its end."""
        return "".join(cell.text for cell in self.cells[row]).rstrip()

    @property
    def lines(self) -> list[str]:
        """The text of all rows."""
        return [self.line(row) for row in range(self.rows)]

    # What changes it

    def feed(self, data: bytes) -> None:
        """Take in what the program wrote."""
        for token in self._parser.feed(data):
            self._handlers[token.kind](token)

    def resize(self, rows: int, columns: int) -> None:
        """The terminal has another size; the program will draw again."""
        if (rows, columns) == (self.rows, self.columns):
            return
        old, self.rows, self.columns = self.cells, rows, columns
        below = max(0, self.cursor.row + 1 - rows)  # the line with the cursor stays in sight
        self.cells = [_fitted(row, columns) for row in old[below : below + rows]]
        self.cells += [[EMPTY] * columns for _ in range(rows - len(self.cells))]
        self._main = None if self._main is None else self._blank()
        self._top, self._bottom = 0, rows - 1
        self._move(self.cursor.row - below, self.cursor.column)

    def _on_text(self, token: Token) -> None:
        for character in token.text:
            width = 1 if character.isascii() else _width(character)
            if width > 0:
                self._put(character, min(width, self.columns))

    def _put(self, character: str, width: int) -> None:
        row, column, wraps = self.cursor
        if wraps or column + width > self.columns:
            self._line_feed()
            row, column = self.cursor.row, 0
        line = self.cells[row]
        line[column] = Cell(character, self._style)
        if width == 2:
            line[column + 1] = Cell(CONTINUED, self._style)
        after = column + width
        full = after >= self.columns
        self.cursor = Cursor(row, self.columns - 1 if full else after, full)

    def _on_control(self, token: Token) -> None:
        row, column, _ = self.cursor
        match token.text:
            case "\r":
                self._move(row, 0)
            case "\n" | "\v" | "\f":
                self._line_feed()
            case "\b":
                self._move(row, column - 1)
            case "\t":
                self._move(row, (column // TAB + 1) * TAB)
            case _:
                pass

    def _on_escape(self, token: Token) -> None:
        match token.text:
            case "7":
                self._save_cursor()
            case "8":
                self._restore_cursor()
            case "D":
                self._line_feed()
            case "E":
                self._line_feed()
                self._move(self.cursor.row, 0)
            case "M":
                self._reverse_line_feed()
            case "c":
                self._reset()
            case _:
                pass

    def _reset(self) -> None:
        self.cells, self._main, self.is_complete = self._blank(), None, True
        self.cursor, self._style, self._saved = Cursor(), PLAIN, Cursor()
        self._top, self._bottom = 0, self.rows - 1
        self.modes.clear()

    def _on_osc(self, token: Token) -> None:
        number, _, rest = token.text.partition(";")
        if number in {"0", "2"}:
            self.title = rest[:MAX_TITLE]
        for listener in self.on_osc:
            listener(token.text)

    def _on_csi(self, token: Token) -> None:
        numbers = _parameters(token.text)
        if token.text.startswith("?"):
            if token.final in "hl":
                self._set_modes(numbers, on=token.final == "h")
            return
        if token.text and not token.text[-1].isdecimal() and token.text[-1] not in ";:":
            return  # an intermediate character or a private marker: none that changes the screen
        handler = self._sequences.get(token.final)
        if handler is not None:
            handler(numbers)

    def _set_modes(self, numbers: Numbers, *, on: bool) -> None:
        for mode in numbers:
            if on:
                self.modes.add(mode)
            else:
                self.modes.discard(mode)
            if mode in ALTERNATE_SCREENS:
                self._switch_screen(alternate=on)

    def _switch_screen(self, *, alternate: bool) -> None:
        if alternate and self._main is None:
            self._main, self._saved = self.cells, self.cursor
            self.cells = self._blank()
        elif not alternate and self._main is not None:
            self.cells, self._main = self._main, None
            self._move(self._saved.row, self._saved.column)

    # Moving

    def _move(self, row: int, column: int) -> None:
        self.cursor = Cursor(max(0, min(row, self.rows - 1)), max(0, min(column, self.columns - 1)))

    def _line_feed(self) -> None:
        row, column, _ = self.cursor
        if row == self._bottom:
            self._scroll(self._top, 1)
            self.cursor = Cursor(row, column)
        else:
            self._move(row + 1, column)

    def _reverse_line_feed(self) -> None:
        row, column, _ = self.cursor
        if row == self._top:
            self._scroll(self._top, -1)
        else:
            self._move(row - 1, column)

    def _scroll(self, top: int, lines: int) -> None:
        """Move the lines from `top` to the end of the region up, or down if negative."""
        count = min(abs(lines), self._bottom - top + 1)
        fresh = [[EMPTY] * self.columns for _ in range(count)]
        if lines > 0:
            del self.cells[top : top + count]
            self.cells[self._bottom - count + 1 : self._bottom - count + 1] = fresh
        else:
            del self.cells[self._bottom - count + 1 : self._bottom + 1]
            self.cells[top:top] = fresh

    # Sequences; `numbers` has at least one

    def _to(self, numbers: Numbers) -> None:
        row, column = (*numbers, 0)[:2]
        self._move(max(row, 1) - 1, max(column, 1) - 1)

    def _to_column(self, numbers: Numbers) -> None:
        self._move(self.cursor.row, max(numbers[0], 1) - 1)

    def _to_row(self, numbers: Numbers) -> None:
        self._move(max(numbers[0], 1) - 1, self.cursor.column)

    def _save_cursor(self, _: Numbers = ()) -> None:
        self._saved = self.cursor

    def _restore_cursor(self, _: Numbers = ()) -> None:
        self._move(self._saved.row, self._saved.column)

    def _scroll_region(self, direction: int, numbers: Numbers) -> None:
        self._scroll(self._top, direction * max(numbers[0], 1))

    def _by(self, rows: int, columns: int, numbers: Numbers) -> None:
        count = max(numbers[0], 1)
        self._move(self.cursor.row + rows * count, self.cursor.column + columns * count)

    def _to_line_start(self, rows: int, numbers: Numbers) -> None:
        self._move(self.cursor.row + rows * max(numbers[0], 1), 0)

    def _erase_display(self, numbers: Numbers) -> None:
        row, column, _ = self.cursor
        below, above = range(row + 1, self.rows), range(row)
        erased = {0: below, 1: above}.get(numbers[0], range(self.rows))
        for each in erased:
            self.cells[each] = [EMPTY] * self.columns
        if numbers[0] in {0, 1}:
            self._erase_line(numbers)
        whole = numbers[0] in {2, 3} or (numbers[0] == 0 and (row, column) == (0, 0))
        self.is_complete = self.is_complete or whole

    def _erase_line(self, numbers: Numbers) -> None:
        row, column, _ = self.cursor
        first, last = {0: (column, self.columns), 1: (0, column + 1)}.get(
            numbers[0], (0, self.columns)
        )
        self.cells[row][first:last] = [EMPTY] * (last - first)

    def _erase_characters(self, numbers: Numbers) -> None:
        row, column, _ = self.cursor
        count = min(max(numbers[0], 1), self.columns - column)
        self.cells[row][column : column + count] = [EMPTY] * count

    def _insert_characters(self, numbers: Numbers) -> None:
        row, column, _ = self.cursor
        count = min(max(numbers[0], 1), self.columns - column)
        line = self.cells[row]
        line[column:column] = [EMPTY] * count
        del line[self.columns :]

    def _delete_characters(self, numbers: Numbers) -> None:
        row, column, _ = self.cursor
        count = min(max(numbers[0], 1), self.columns - column)
        line = self.cells[row]
        del line[column : column + count]
        line.extend([EMPTY] * count)

    def _insert_lines(self, numbers: Numbers) -> None:
        if self._top <= self.cursor.row <= self._bottom:
            self._scroll(self.cursor.row, -max(numbers[0], 1))

    def _delete_lines(self, numbers: Numbers) -> None:
        if self._top <= self.cursor.row <= self._bottom:
            self._scroll(self.cursor.row, max(numbers[0], 1))

    def _set_region(self, numbers: Numbers) -> None:
        top, bottom = (*numbers, 0)[:2]
        first, last = max(top, 1) - 1, min(bottom or self.rows, self.rows) - 1
        if first < last:
            self._top, self._bottom = first, last
            self._move(0, 0)

    def _set_style(self, numbers: Numbers) -> None:
        style, rest = self._style, list(numbers)
        while rest:
            number = rest.pop(0)
            if number in STYLES:
                style = style._replace(**STYLES[number])
            elif number in COLOURS:
                style = style._replace(colour=str(number))
            elif number == TEXT_COLOUR:
                style = style._replace(colour=_take_colour(rest))
            elif number in OTHER_COLOURS:
                _take_colour(rest)
        self._style = style


def _take_colour(rest: list[int]) -> str:
    """The colour after 38 or 48: an index, or three values; takes it out of `rest`."""
    count = {5: 2, 2: 4}.get(rest[0] if rest else 0, 1)
    taken, rest[:count] = rest[:count], []
    return ";".join(map(str, taken))


def _fitted(row: list[Cell], columns: int) -> list[Cell]:
    return (row + [EMPTY] * columns)[:columns]
