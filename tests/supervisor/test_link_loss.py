"""A link that dies between two steps of a prompt: the person's line is theirs, and no wake is lost.

The relay, its links and the host are processes of their own.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.terminals.outer_terminal import OuterTerminal
from tests.helpers.terminals.scripted_link import PROMPT
from tests.helpers.terminals.supervised_host import HOST, prompts_in
from tests.spec import proves
from tests.supervisor.test_transparency import ENV, ROOT

WAIT_S = 60.0


class Run:
    """One host under a relay whose links follow a plan."""

    def __init__(self, folder: Path, terminal: OuterTerminal) -> None:
        self.folder, self.terminal = folder, terminal

    def answers(self, count: int) -> list[str]:
        """What the relay has said, once it has said so much."""
        file = self.folder / "said"

        def said() -> list[str]:
            return file.read_text("utf-8").split() if file.exists() else []

        self.terminal.wait_until(lambda: len(said()) >= count, WAIT_S)
        return said()

    def sends(self, line: str) -> None:
        """The person sends a line; it arrives as it was typed, and nothing with it."""
        before = prompts_in(self.folder)
        self.terminal.press(f"{line}\r")
        self.terminal.wait_until(lambda: prompts_in(self.folder) != before, WAIT_S)
        assert prompts_in(self.folder) == [*before, line]


@contextmanager
def links(folder: Path, *plans: str) -> Iterator[Run]:
    (folder / "plan").write_text("\n".join(plans))
    program = (sys.executable, "-m", "tests.helpers.terminals.scripted_link")
    files = (str(folder / "plan"), str(folder / "said"))
    host = (sys.executable, str(HOST), str(folder / "prompts"))
    argv = [*program, *files, *host]
    with OuterTerminal(argv, {**ENV, "PYTHONPATH": str(ROOT)}, ROOT, (24, 80)) as terminal:
        terminal.wait_for("ready", WAIT_S)
        yield Run(folder, terminal)


@proves("OPEN-127")
def test_a_wake_is_sent_once_whatever_frame_was_the_last_of_its_link(tmp_path: Path) -> None:
    with links(tmp_path, "PASTE", "ENTER", "PASTE ENTER", "PASTE", "ENTER") as run:
        said = run.answers(6)
        assert said == ["pasted", "erased", "pasted", "entered", "already", "already"]
        run.terminal.wait_until(lambda: prompts_in(tmp_path), WAIT_S)
        assert prompts_in(tmp_path) == [PROMPT]
        run.sends("my own line")


@pytest.mark.parametrize("last", ["PASTE KEY", "PASTE KEY ABANDON", "PASTE KEY FREEZE"])
def test_what_the_person_typed_follows_no_prompt_that_was_not_sent(
    last: str, tmp_path: Path
) -> None:
    """The link dies, gives up, or does nothing for longer than keys may be kept back."""
    with links(tmp_path, last) as run:
        assert run.answers(1) == ["pasted"]
        run.sends("my own line")


def test_an_enter_is_refused_if_there_is_output_that_was_not_seen(tmp_path: Path) -> None:
    with links(tmp_path, "PASTE STALE-ENTER ENTER") as run:
        assert run.answers(3) == ["pasted", "outdated", "entered"]
        run.terminal.wait_until(lambda: prompts_in(tmp_path) == [PROMPT], WAIT_S)
