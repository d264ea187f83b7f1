"""A conversation for the terminal: when, who, what; the words below, the machine's on a rail."""

from collections.abc import Iterable, Iterator

from accord.show import paint
from accord.show.text import line, moment, safe, width, wrapped
from accord.show.timeline import SYSTEM, Turn

INDENT = " " * 10
RAIL = "│ "
GOES_ON = "│↪ "  # a line of others never begins so: behind their rail is a space
MOST_CODE = 40
ALWAYS_WHOLE = frozenset({"proposal"})  # what is to be approved is never cut

MOODS: dict[str, paint.Paint] = {
    "good": paint.green,
    "bad": paint.red,
    "wait": paint.yellow,
}
SPEECH = frozenset({"prompt", "answer", "thought"})
LOUD = SPEECH | {"proposal", "interrupt"}


class Teller:
    """Tells a conversation turn by turn: a new day has a line of its own, speech has air."""

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._day = ""
        self._before = ""

    def tell(self, turn: Turn) -> Iterator[str]:
        """The lines of the next turn."""
        today = f"{moment(turn.at):%A, %d %B %Y}"
        if today != self._day:
            yield from (*([""] if self._day else []), paint.dim(today), "")
        elif turn.kind in LOUD or self._before in SPEECH:
            yield ""
        self._day, self._before = today, turn.kind
        yield from shown(turn, whole=self._whole)


def conversation(turns: Iterable[Turn], *, whole: bool = False) -> Iterator[str]:
    """All of it."""
    teller = Teller(whole=whole)
    for turn in turns:
        yield from teller.tell(turn)


def shown(turn: Turn, *, whole: bool = False) -> Iterator[str]:
    """One turn."""
    yield headline(turn)
    if turn.kind == "note":
        return
    if turn.text.strip():
        yield from wrapped(turn.text, INDENT)
    if turn.listing.strip():
        most = None if whole or turn.kind in ALWAYS_WHOLE else MOST_CODE
        yield from railed(turn.listing, most)


def headline(turn: Turn) -> str:
    """`20:01:10  alice asks claude`."""
    at = paint.dim(f"{moment(turn.at):%H:%M:%S}")
    who = "" if turn.who == SYSTEM else f"{paint.bold(line(turn.who))} "
    title = MOODS.get(turn.mood, str)(line(turn.title))
    extra = paint.dim(f" · {line(turn.text)}") if turn.kind == "note" and turn.text else ""
    where = paint.dim(f" · in {line(turn.fork)}") if turn.fork else ""
    return f"{at}  {who}{title}{where}{extra}"


def railed(code: str, most: int | None = None, indent: str = INDENT) -> Iterator[str]:
    """Preformatted text on a rail; long lines go on below, and what is cut is counted."""
    rail = f"{indent}{RAIL}"
    room = max(20, width() - len(rail))
    pieces = [
        f"{paint.dim(indent + (GOES_ON if place else RAIL))}{piece}".rstrip()
        for each in safe(code).rstrip("\n").split("\n")
        for place, piece in enumerate(folded(each, room))
    ]
    shown_pieces = pieces if most is None else pieces[:most]
    yield from shown_pieces
    if hidden := len(pieces) - len(shown_pieces):
        more = "1 more line" if hidden == 1 else f"{hidden} more lines"
        yield paint.dim(f"{rail}… {more}; --full shows all")


def folded(text: str, room: int) -> Iterator[str]:
    """One line in pieces, cut before a space where one is near; together they are the line."""
    while len(text) > room:
        space = text.rfind(" ", room // 2, room + 1)
        cut = space if space > 0 else room
        yield text[:cut]
        text, room = text[cut:], room - 1 if room > 19 else room
    yield text
