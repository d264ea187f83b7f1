"""A host in a terminal: the same hooks gate what a person types there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.hosts.hook_settings import HOOK_HOSTS, shell_call, write_hooks
from tests.helpers.hosts.scripted_model.script import Script, Step
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.hosts.turns import Agent, end_processes
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.spec import proves

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    pytest.mark.skipif("claude" not in chosen_hosts(), reason="Claude Code is not chosen"),
]

ROWS, COLUMNS = 40, 110
WAIT_S = 120.0
# How long a person looks before typing again.
LOOK_S = 5.0
# Anything else asks a classifier whether a permission is needed.
OPTIONS = ("--permission-mode", "default", "--allowedTools", "Bash")
PASTE, PASTE_END, ENTER, CLEAR_LINE = b"\x1b[200~", b"\x1b[201~", b"\r", b"\x15"


class Terminal:
    """The screen and keyboard of a program."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.shown = b""

    def wait_for(self, is_done: Callable[[], object]) -> None:
        """Read what is shown until a condition holds."""
        assert self.holds_within(WAIT_S, is_done), self.shown[-3000:].decode(errors="replace")

    def holds_within(self, seconds: float, is_done: Callable[[], object]) -> bool:
        """Read what is shown until a condition holds; False if it does not in time."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                return False
            if select.select([self._handle], [], [], 0.1)[0]:
                self.shown += os.read(self._handle, 1 << 16)
        return True

    def enter(self, text: str, model: ScriptedModel) -> None:
        """Paste a line and send it, as a person who looks whether it is there and was sent.

        What is typed while the program draws the end of a turn may be lost, also Enter alone.
        """
        asked = len(model.exchanges)
        deadline = time.monotonic() + WAIT_S
        while len(model.exchanges) == asked:
            assert time.monotonic() < deadline, self.shown[-3000:].decode(errors="replace")
            seen = len(self.shown)
            os.write(self._handle, CLEAR_LINE + PASTE + text.encode() + PASTE_END)
            if self.holds_within(LOOK_S, partial(self._shows, text, seen)):
                os.write(self._handle, ENTER)
                self.holds_within(LOOK_S, lambda: len(model.exchanges) > asked)

    def _shows(self, text: str, since: int) -> bool:
        """Whether the words are there; the program may move the cursor in place of a space."""
        return all(word in self.shown[since:] for word in text.encode().split())


@contextmanager
def on_terminal(agent: Agent, *options: str) -> Iterator[Terminal]:
    """Start the host as a person does."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [*agent.command, *options],
        cwd=agent.setup.project,
        env=agent.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        end_processes(process.pid, agent.setup.home)
        process.wait()
        os.close(ours)


@proves("PVP-14-1")
def test_claude_code_in_a_terminal_is_gated_and_runs_what_was_approved_once(
    make_agent: MakeAgent, server: ServerProcess
) -> None:
    people = People(server)
    call = shell_call("claude", "echo ran >> ran.txt")
    steps = [Step(calls=[call]), Step(say="Tried.")]
    with serve(Script({"go now": steps, "again please": steps, "once more": steps})) as model:
        agent = make_agent("claude", model, None)
        agent.prepare()
        gated = GatedAgent(people, agent.setup.home, HOOK_HOSTS["claude"], agent.setup.project)
        write_hooks(agent, gated.command)
        ran = agent.setup.project / "ran.txt"
        with on_terminal(agent, *OPTIONS) as terminal:
            terminal.wait_for(
                lambda: b"\x1b[?2004h" in terminal.shown and b"\xe2\x9d\xaf" in terminal.shown
            )
            terminal.enter("go now", model)
            terminal.wait_for(lambda: people.state.gates)
            assert not ran.exists()
            people.approve()
            terminal.wait_for(lambda: len(people.history("response.end")) == 1)
            terminal.enter("again please", model)
            terminal.wait_for(ran.exists)
            terminal.wait_for(lambda: len(people.history("response.end")) == 2)
            terminal.enter("once more", model)
            terminal.wait_for(lambda: people.state.gates)

    assert ran.read_text() == "ran\n"
    prompts = [getattr(each.body, "content", "") for each in people.history("prompt.submit")]
    assert prompts == ["go now", "again please", "once more"]
