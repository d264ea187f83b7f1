"""Prints the demonstration: chapters, messages as they arrive, and the results of checks."""

import sys
import time
from collections.abc import Iterable

from accord.show import style
from accord.show.text import escape_controls, format_duration, text_width
from accord.show.timeline.timeline import Timeline
from accord.show.transcript import INDENT, render_headline, render_listing, render_turn

MARGIN = "  "


class CheckFailedError(Exception):
    """A check of the demonstration failed."""


def truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


class Narrator:
    """Prints the demonstration and counts its checks."""

    def __init__(self) -> None:
        self.checks_passed = 0
        self._chapters = 0
        self._started = time.monotonic()
        self._timeline = Timeline()
        self._column = 0

    def print_chapter(self, title: str) -> None:
        """Print the heading of the next chapter."""
        self._chapters += 1
        self.print_lines("", style.bold(f"{self._chapters}  {title}"), "")

    def print_lines(self, *lines: str) -> None:
        for line in lines:
            print(line, flush=True)

    def print_fact(self, name: str, what: str) -> None:
        """Print a labelled line about the setup."""
        self.print_lines(f"{MARGIN}{style.dim(name.ljust(12))}{what}")

    def print_note(self, what: str, *, bad: bool = False) -> None:
        """Print something that is not a message of the session."""
        self.print_lines(f"{MARGIN}{INDENT}{style.red(what) if bad else what}")

    def print_command(self, command: str, output: str, *, cut: bool = False) -> None:
        """Print a command and its output; `cut` truncates long lines."""
        self.print_lines(f"{MARGIN}{style.dim('$')} {style.bold(command)}")
        max_chars = text_width() - len(MARGIN)
        for line in output.splitlines():
            self.print_lines(f"{MARGIN}{truncate(line, max_chars) if cut else line}".rstrip())

    def check(self, what: str, holds: object) -> None:
        """Print the result of a check; the demonstration ends at the first failure."""
        if not holds:
            self.print_lines(f"{MARGIN}{style.red('✗')} {what}")
            raise CheckFailedError(what)
        self.checks_passed += 1
        self.print_lines(f"{MARGIN}{style.green('✓')} {what}")

    def print_message(self, message: dict[str, object]) -> None:
        """Print a message of the session; responses appear as they are streamed."""
        kind, before = message["type"], len(self._timeline.turns)
        self._timeline.add(message)
        new = self._timeline.turns[before:]
        payload = message["payload"]
        match kind:
            case "response.start":
                self.print_lines("", MARGIN + render_headline(new[0]))
                self._column = 0
            case "response.chunk" if isinstance(payload, dict):
                self._print_streamed(escape_controls(str(payload["text"])))
            case "response.end":
                self.print_lines("", "")
            case "tool.output" if isinstance(payload, dict):
                self._print_indented([render_headline(turn) for turn in new])
                self._print_indented(render_listing(str(payload["text"])))
            case _:
                self._print_indented(line for turn in new for line in render_turn(turn))

    def _print_indented(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.print_lines(f"{MARGIN}{line}".rstrip())

    def _print_streamed(self, text: str) -> None:
        """Print words as they arrive, wrapped at the terminal's width."""
        left = f"{MARGIN}{INDENT}"
        if self._column == 0 or self._column + len(text.rstrip()) > text_width():
            sys.stdout.write(("\n" if self._column else "") + left)
            self._column = len(left)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._column += len(text)

    def print_summary(self) -> None:
        """Print the number of checks and the time taken."""
        took = format_duration(time.monotonic() - self._started)
        done = style.green(style.bold("Every check passed."))
        self.print_lines("", f"{done} {self.checks_passed} things checked in {took}.")
