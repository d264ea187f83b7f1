"""What the audience sees: chapters, what is said as it is said, and what was checked."""

import sys
import time
from collections.abc import Iterable

from accord.show import paint
from accord.show.prose import INDENT, headline, railed, shown
from accord.show.text import safe, span, width
from accord.show.timeline import Timeline

MARGIN = "  "


class SceneFailedError(Exception):
    """Something did not happen as it should."""


def shortened(text: str, most: int) -> str:
    """At most so many letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Stage:
    """Prints the story and keeps count of what was proven."""

    def __init__(self) -> None:
        self.proven = 0
        self._chapters = 0
        self._began = time.monotonic()
        self._timeline = Timeline()
        self._column = 0

    def chapter(self, title: str) -> None:
        """What comes next."""
        self._chapters += 1
        self.write("", paint.bold(f"{self._chapters}  {title}"), "")

    def write(self, *lines: str) -> None:
        """Lines as they are."""
        for each in lines:
            print(each, flush=True)

    def fact(self, name: str, what: str) -> None:
        """Something about the stage."""
        self.write(f"{MARGIN}{paint.dim(name.ljust(12))}{what}")

    def aside(self, what: str, *, bad: bool = False) -> None:
        """What the room does not hear."""
        self.write(f"{MARGIN}{INDENT}{paint.red(what) if bad else what}")

    def typed(self, command: str, said: str, *, cut: bool = False) -> None:
        """A command and what it printed; `cut` keeps each line to one."""
        self.write(f"{MARGIN}{paint.dim('$')} {paint.bold(command)}")
        room = width() - len(MARGIN)
        for each in said.splitlines():
            self.write(f"{MARGIN}{shortened(each, room) if cut else each}".rstrip())

    def proved(self, what: str, holds: object) -> None:
        """Say that it was checked; the story ends where it does not hold."""
        if not holds:
            self.write(f"{MARGIN}{paint.red('✗')} {what}")
            raise SceneFailedError(what)
        self.proven += 1
        self.write(f"{MARGIN}{paint.green('✓')} {what}")

    def hear(self, said: dict[str, object]) -> None:
        """What was said in the room, as it is said."""
        kind, before = said["type"], len(self._timeline.turns)
        self._timeline.add(said)
        new = self._timeline.turns[before:]
        payload = said["payload"]
        match kind:
            case "response.start":
                self.write("", MARGIN + headline(new[0]))
                self._column = 0
            case "response.chunk" if isinstance(payload, dict):
                self._stream(safe(str(payload["text"])))
            case "response.end":
                self.write("", "")
            case "tool.output" if isinstance(payload, dict):
                self._show([headline(turn) for turn in new])
                self._show(railed(str(payload["text"])))
            case _:
                self._show(line for turn in new for line in shown(turn))

    def _show(self, lines: Iterable[str]) -> None:
        for each in lines:
            self.write(f"{MARGIN}{each}".rstrip())

    def _stream(self, text: str) -> None:
        """Words as they come, broken where the line ends."""
        left = f"{MARGIN}{INDENT}"
        if self._column == 0 or self._column + len(text.rstrip()) > width():
            sys.stdout.write(("\n" if self._column else "") + left)
            self._column = len(left)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._column += len(text)

    def curtain(self) -> None:
        """How it all went."""
        took = span(time.monotonic() - self._began)
        done = paint.green(paint.bold("Everything happened as it should."))
        self.write("", f"{done} {self.proven} things checked in {took}.")
