"""The server, the link and the relay of a supervised agent are killed while a wake is under way.

Each wake is typed once. If its terminal was killed, it was typed there, or a notice in its thread
says that it failed, or the agent is still awaited, of which people are told; and it is never typed
twice. The daemon takes no part in this:
a wake goes from the server to the link, from there to the relay, and into the host. The link and
the relay are the two processes of a supervisor; they are not killed within one second, because the
one gives the person's terminal back after the other.

Five moments, and 50 with `ACCORD_LONG=1`; the seed of a failure is in its message.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest

from accord.settings.server.loader import CONFIG_FILE
from tests.helpers.servers.server_process import run_server
from tests.helpers.terminals.outer_terminal import OuterTerminal
from tests.helpers.terminals.supervised_host import prompts_in, supervise
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
VICTIMS = ("server", "stopped server", "link", "server and link", "relay")
ROUNDS = 10 if LONG else 1
SEED = int(os.environ.get("ACCORD_SEED", "7"))
# From the message to the report of what came of its wake.
UNDER_WAY_S = 1.0
WAIT_S = 120.0


class Scene:
    """A server, a person who writes, and an agent in a terminal that is opened again if killed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        home = folder / "server" / "home"
        home.mkdir(parents=True)
        (home / CONFIG_FILE).write_text("wakes_per_hour = 1000\n")
        self.server = stack.enter_context(run_server(folder / "server"))
        of = MethodClient.of
        self.olga = stack.enter_context(of(self.server, "olga", kind="human", roles=["admin"]))
        self.coder = stack.enter_context(of(self.server, "coder", capabilities=["supervise"]))
        self.open()

    def open(self) -> None:
        opened = supervise(self.server, self.coder.token, self.folder)
        self.terminal: OuterTerminal = self.stack.enter_context(opened)
        self.terminal.wait_for("ready", WAIT_S)
        self.terminal.wait_until(lambda: self.link_works() and self.is_managed(), WAIT_S)

    def is_managed(self) -> bool:
        agents = self.olga.ok("list_agents", target_agent_id="coder")["agents"]
        modes = [each["management_mode"] for agent in agents for each in agent["runtimes"]]
        return "managed" in modes

    def address(self) -> str:
        thread = self.olga.thread("olga", "coder")
        self.olga.post(thread, "please look", metadata={"to": ["coder"]})
        return thread

    def kill(self, victim: str) -> None:
        if "link" in victim:
            for each in self.links():
                each.kill()
        if victim == "relay":
            os.kill(self.terminal.pid, signal.SIGKILL)
            self.terminal.wait_until(lambda: self.terminal.is_as_before, WAIT_S)
        elif victim == "stopped server":
            self.server.stop()
            self.server.start()
        elif "server" in victim:
            self.server.restart()

    def links(self) -> list[psutil.Process]:
        living = (
            each
            for each in psutil.Process(self.terminal.pid).children()
            if each.status() != psutil.STATUS_ZOMBIE
        )
        return [each for each in living if "accord.supervisor.link" in each.cmdline()]

    def link_works(self) -> bool:
        """Whether one has asked the server: only a link gives a killed relay's terminal back."""
        return any(each.net_connections("tcp") for each in self.links())

    def typed(self, thread: str) -> int:
        return sum(f"in thread {thread}." in prompt for prompt in prompts_in(self.folder))

    def is_awaited(self, thread: str) -> bool:
        (agent,) = self.olga.ok("list_agents", target_agent_id="coder")["agents"]
        return thread in agent["awaited_in"]

    def failed(self, thread: str) -> bool:
        notices = [each.get("metadata", {}) for each in self.olga.read(thread)]
        return any(
            (each.get("notice"), each.get("result")) == ("wake_ended", "failed") for each in notices
        )


def is_past(moment: float) -> bool:
    return time.monotonic() >= moment


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(tmp_path, stack)


@proves("OPEN-129")
def test_no_wake_is_lost_or_typed_twice_whatever_is_killed(scene: Scene) -> None:
    chance = random.Random(SEED)
    of_killed_terminals, of_living = list[str](), list[str]()
    for victim in VICTIMS * ROUNDS:
        if victim == "relay":
            scene.terminal.wait_until(scene.link_works, WAIT_S)
        thread = scene.address()
        after = chance.uniform(0, UNDER_WAY_S)
        moment = time.monotonic() + after
        scene.terminal.wait_until(partial(is_past, moment))
        scene.kill(victim)
        about = f"seed {SEED}: {victim} after {after:.3f} s"
        if victim == "relay":
            scene.open()
            of_killed_terminals.append(thread)
            assert scene.typed(thread) or scene.failed(thread) or scene.is_awaited(thread), about
        else:
            of_living.append(thread)
            scene.terminal.wait_until(partial(scene.typed, thread), WAIT_S, about)
            assert scene.terminal.is_raw, about
    # What comes after them shows that nothing of them is still to come.
    last = scene.address()
    scene.terminal.wait_until(lambda: scene.typed(last), WAIT_S)
    assert [scene.typed(each) for each in (*of_living, last)] == [1] * (len(of_living) + 1)
    assert all(scene.typed(each) <= 1 for each in of_killed_terminals)
    scene.terminal.press("my own line\r")
    scene.terminal.wait_until(lambda: prompts_in(scene.folder)[-1] == "my own line", WAIT_S)
    scene.terminal.press("\x04")
    assert scene.terminal.wait_for_end(WAIT_S) == 0
    assert scene.terminal.is_as_before
