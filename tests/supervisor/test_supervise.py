"""`accord supervise` with a real server and a real PTY: wakes arrive once, and never in a draft."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from accord.core.attention.waking.prompt import MARK
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.terminals.outer_terminal import OuterTerminal
from tests.helpers.terminals.supervised_host import prompts_in, supervise
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves

HOSTILE = "\x1b[201~\r; rm -rf / $(touch x) `id`\x03\x04\x1a\x9b31m\n\x1b]7501;state=idle\x07 end"


class Scene:
    """A server, an operator, and an agent in its terminal."""

    def __init__(self, server: ServerProcess, folder: Path, stack: ExitStack) -> None:
        self.server, self.folder, self.stack = server, folder, stack
        self.olga = stack.enter_context(
            MethodClient.of(server, "olga", kind="human", roles=["admin"])
        )
        self.coder = stack.enter_context(
            MethodClient.of(server, "coder", capabilities=["supervise"])
        )

    def open(self, *command: str, work_s: float = 0.0) -> OuterTerminal:
        terminal = self.stack.enter_context(
            supervise(self.server, self.coder.token, self.folder, *command, work_s=work_s)
        )
        terminal.wait_for("ready")
        terminal.wait_until(lambda: self.runtime().get("management_mode") == "managed")
        return terminal

    def runtime(self) -> dict[str, Any]:
        agents = self.olga.ok("list_agents", target_agent_id="coder")["agents"]
        return agents[0]["runtimes"][0] if agents and agents[0]["runtimes"] else {}

    def asked(self, text: str = "please look") -> str:
        """A thread with an unread message that addresses nobody."""
        thread = self.olga.thread("olga", "coder")
        self.olga.post(thread, text)
        return thread

    def wake(self, thread: str, **more: Any) -> dict[str, Any]:
        return self.olga.ok(
            "trigger_participant", thread_id=thread, target_agent_id="coder", **more
        )

    @property
    def prompts(self) -> list[str]:
        return prompts_in(self.folder)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with run_server(tmp_path / "server") as server, ExitStack() as stack:
        yield Scene(server, tmp_path, stack)


@proves("MSG-3.8-1", "MSG-3.8-4")
def test_a_message_is_typed_into_the_empty_line_of_an_idle_host(scene: Scene) -> None:
    terminal = scene.open()
    thread = scene.olga.thread("olga", "coder")
    scene.olga.post(thread, "please look", metadata={"to": ["coder"]})
    terminal.wait_until(lambda: scene.prompts)
    assert scene.prompts[0].startswith(f"{MARK} You have 1 unread message in thread {thread}.")
    terminal.press("\x04")
    assert terminal.wait_for_end() == 0
    assert terminal.is_as_before
    assert len(scene.prompts) == 1
    assert scene.runtime()["status"] == "offline"


@proves("OPEN-129")
def test_a_prompt_of_control_characters_and_shell_syntax_is_typed_as_text(scene: Scene) -> None:
    terminal = scene.open()
    answer = terminal.wait_until(lambda: scene.wake(scene.asked(), trigger_prompt=HOSTILE))
    assert (answer["action"], answer["result"]) == ("trigger_runtime", "delivered"), answer
    (prompt,) = terminal.wait_until(lambda: scene.prompts)
    assert "> [201~" in prompt
    assert "rm -rf / $(touch x) `id`" in prompt
    assert not any(ord(each) < 32 and each not in "\n\t" for each in prompt)
    assert not (scene.folder / "x").exists()


@proves("MSG-3.8-6", "MSG-3.8-9")
def test_a_draft_defers_the_wake_and_stays_as_it_is(scene: Scene) -> None:
    terminal = scene.open()
    terminal.press("half a senten")
    terminal.wait_for("half a senten")
    thread = scene.asked()
    answer = scene.wake(thread)
    assert (answer["result"], answer["defer_reason"]) == ("deferred", "human_input_busy"), answer
    terminal.press("ce\r")
    terminal.wait_until(lambda: scene.prompts)
    assert scene.prompts == ["half a sentence"]


def test_a_host_that_works_is_woken_when_it_has_stopped(scene: Scene) -> None:
    terminal = scene.open(work_s=2.0)
    first = scene.wake(scene.asked())
    assert first["result"] == "delivered"
    terminal.wait_until(lambda: scene.runtime()["status"] == "active")
    again = scene.wake(scene.asked("and this"))
    assert (again["result"], again["defer_reason"]) == ("deferred", "already_active"), again
    terminal.wait_until(lambda: len(scene.prompts) == 2)


def test_a_dialog_of_the_host_is_never_answered_and_the_wake_follows_it(scene: Scene) -> None:
    terminal = scene.open()
    terminal.press("/ask\r")
    terminal.wait_for("May I?")
    terminal.wait_until(lambda: scene.runtime()["status"] == "active")
    answer = scene.wake(scene.asked())
    assert (answer["result"], answer["defer_reason"]) == ("deferred", "already_active"), answer
    terminal.press("y")
    terminal.wait_until(lambda: len(scene.prompts) > 1)
    assert scene.prompts == ["/ask", "answered b'y'"]


def test_a_server_that_was_killed_and_restarted_wakes_again(scene: Scene) -> None:
    terminal = scene.open()
    scene.server.kill()
    terminal.press("still typing\r")
    terminal.wait_until(lambda: scene.prompts == ["still typing"])
    scene.server.start()
    # Until the supervisor has found the server again, a wake is refused.
    terminal.wait_until(lambda: _taken_up(scene, scene.asked()))
    assert terminal.is_raw


def test_a_link_that_was_killed_is_started_again_and_nothing_is_typed_twice(scene: Scene) -> None:
    terminal = scene.open()
    assert scene.wake(scene.asked())["result"] == "delivered"
    (link,) = links_of(terminal.pid)
    link.kill()
    terminal.wait_until(lambda: [each for each in links_of(terminal.pid) if each.pid != link.pid])
    terminal.wait_until(lambda: scene.runtime()["management_mode"] == "managed")
    answer = terminal.wait_until(lambda: _delivered(scene, scene.asked("again")))
    assert answer["action"] == "trigger_runtime"
    assert len(scene.prompts) == 2


def test_a_killed_supervisor_leaves_a_usable_terminal(scene: Scene) -> None:
    terminal = scene.open()
    host = next(
        each
        for each in psutil.Process(terminal.pid).children(recursive=True)
        if "prompting_host" in " ".join(each.cmdline()) and each.children() == []
    )
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait_until(lambda: terminal.is_as_before)
    terminal.wait_for("\x1b[?2004l")
    terminal.wait_until(lambda: not host.is_running() or host.status() == psutil.STATUS_ZOMBIE)
    terminal.wait_until(lambda: scene.runtime()["status"] == "offline")


def links_of(pid: int) -> list[psutil.Process]:
    return [
        each
        for each in psutil.Process(pid).children()
        if each.status() != psutil.STATUS_ZOMBIE and "accord.supervisor.link" in each.cmdline()
    ]


def _taken_up(scene: Scene, thread: str) -> bool:
    """Whether the supervisor typed it, or waits because the person has just typed."""
    answer = scene.olga.call("trigger_participant", thread_id=thread, target_agent_id="coder")
    found = answer.json()
    return bool(
        {found.get("result"), found.get("defer_reason")} & {"delivered", "human_input_busy"}
    )


def _delivered(scene: Scene, thread: str) -> dict[str, Any] | None:
    answer = scene.olga.call("trigger_participant", thread_id=thread, target_agent_id="coder")
    found: dict[str, Any] = answer.json()
    return found if found.get("result") == "delivered" else None
