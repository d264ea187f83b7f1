"""What a host's screen says: whether it waits for input, and whether its input line is empty.

One row for each host, from what the programs really draw. What is not recognised counts as a line
in use: nothing is typed there.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from accord.supervisor.screen import Screen

BRACKETED_PASTE = 2004
OSC_STATE = "7501"
# The question of a program whether the terminal knows this sequence, and the answer.
STATE_QUESTION = b"\x1b]7501;?"
STATE_ANSWER = b"\x1b]7501;?\x1b\\"


class HostState(StrEnum):
    """What a host is doing."""

    IDLE = "idle"
    WORKING = "working"
    BLOCKED = "blocked"  # it asks a person something
    UNKNOWN = "unknown"


STATES = {
    "idle": HostState.IDLE,
    "done": HostState.IDLE,
    "working": HostState.WORKING,
    "blocked": HostState.BLOCKED,
}


class PromptForm(NamedTuple):
    """How a host draws its empty input line, and what its title says.

    `mark` is everything before the cursor. `frame` is what the rows above and below must look like;
    `hint` the text that the host shows in an empty line and in no other, `faint_hint` that it is
    drawn faint.
    """

    mark: re.Pattern[str]
    frame: re.Pattern[str]
    hint: re.Pattern[str]
    faint_hint: bool
    titles: tuple[tuple[re.Pattern[str], HostState], ...] = ()


_NOTHING = re.compile("")
_SPINNER = re.compile("[\u2801-\u28ff◐◑◒◓✦]")
PROMPT_FORMS: Mapping[str, PromptForm] = {
    "claude_code": PromptForm(
        mark=re.compile("❯[ \u00a0]"),
        frame=re.compile("─{3,}.*"),
        hint=re.compile(".*"),
        faint_hint=True,
        titles=((_SPINNER, HostState.WORKING), (re.compile("✳"), HostState.IDLE)),
    ),
    "codex_cli": PromptForm(
        mark=re.compile("› "),
        frame=_NOTHING,
        # A draft of blank lines has none.
        hint=re.compile(r"\S.*"),
        faint_hint=True,
        titles=((_SPINNER, HostState.WORKING),),
    ),
    "gemini_cli": PromptForm(
        mark=re.compile(" [>*] "),
        frame=re.compile("[▄▀─]{3,}"),
        hint=re.compile(r" +Type your message.*"),
        faint_hint=False,
        titles=((re.compile("✦"), HostState.WORKING), (re.compile("◇"), HostState.IDLE)),
    ),
}


class View(NamedTuple):
    """What is seen at one moment; `line` is the first row of the input, after the host's mark."""

    state: HostState = HostState.UNKNOWN
    is_empty: bool = False
    line: str = ""

    @property
    def takes_prompts(self) -> bool:
        """Whether a prompt can be typed, as far as the screen says."""
        return self.state is HostState.IDLE and self.is_empty


NOTHING_SEEN = View()


class HostScreen:
    """The screen of one host with what the host says of itself."""

    def __init__(self, runtime: str, rows: int, columns: int) -> None:
        self.screen = Screen(rows, columns)
        self._form = PROMPT_FORMS.get(runtime)
        self._reported = HostState.UNKNOWN
        self.screen.on_osc.append(self._on_osc)

    def _on_osc(self, text: str) -> None:
        number, _, rest = text.partition(";")
        if number != OSC_STATE:
            return
        fields = dict(part.partition("=")[::2] for part in rest.split(":"))
        self._reported = STATES.get(fields.get("state", ""), self._reported)

    @property
    def state(self) -> HostState:
        """By the host's own report, else by its title."""
        if self._reported is not HostState.UNKNOWN or self._form is None:
            return self._reported
        found = (state for pattern, state in self._form.titles if pattern.search(self.screen.title))
        return next(found, HostState.UNKNOWN)

    @property
    def view(self) -> View:
        """What is seen now."""
        return View(self.state, self._is_empty(), self._line())

    def _line(self) -> str:
        """The first row of the box that the cursor is in, without the mark."""
        form = self._form
        if form is None:
            return ""
        for row in range(self.screen.cursor.row, 0, -1):
            text = self.screen.line(row)
            found = form.mark.match(f"{text} ")
            if form.frame.fullmatch(text):
                break
            if found and form.frame.fullmatch(self.screen.line(row - 1)):
                return text[found.end() :]
        return ""

    def _is_empty(self) -> bool:
        screen, form = self.screen, self._form
        if form is None or not screen.is_complete or BRACKETED_PASTE not in screen.modes:
            return False
        row, column, _ = screen.cursor
        if not 0 < row < screen.rows - 1:
            return False
        before = "".join(cell.text for cell in screen.cells[row][:column])
        framed = all(form.frame.fullmatch(screen.line(each)) for each in (row - 1, row + 1))
        if not form.mark.fullmatch(before) or not framed:
            return False
        after = screen.cells[row][column:]
        hint = "".join(cell.text for cell in after).rstrip()
        if not form.hint.fullmatch(hint):
            return False
        # The cursor may be drawn as a block over the first character.
        return not form.faint_hint or all(
            cell.style.faint or cell.text.isspace() or (cell.style.reverse and not at)
            for at, cell in enumerate(after)
        )
