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
# Anything else asks a classifier whether a permission is needed.
OPTIONS = ("--permission-mode", "default", "--allowedTools", "Bash")
PASTE, PASTE_END, ENTER = b"\x1b[200~", b"\x1b[201~", b"\r"


class Terminal:
    """The screen and keyboard of a program."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.shown = b""

    def wait_for(self, is_done: Callable[[], object]) -> None:
        """Read what is shown until a condition holds."""
        deadline = time.monotonic() + WAIT_S
        while not is_done():
            assert time.monotonic() < deadline, self.shown[-3000:].decode(errors="replace")
            if select.select([self._handle], [], [], 0.1)[0]:
                self.shown += os.read(self._handle, 1 << 16)

    def enter(self, text: str, model: ScriptedModel) -> None:
        """Paste a line and send it; the program takes it when its input line is there."""
        asked = len(model.exchanges)
        seen = len(self.shown)
        os.write(self._handle, PASTE + text.encode() + PASTE_END)
        self.wait_for(lambda: text.encode() in self.shown[seen:] or len(self.shown) > seen + 200)
        os.write(self._handle, ENTER)
        self.wait_for(lambda: len(model.exchanges) > asked)


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
