"""A server that wakes agents by a program of the test, and what came of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from accord.settings.server.loader import CONFIG_FILE
from accord.waking.machine import machine_name
from tests.helpers.servers.server_process import run_server
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.vendors import Vendor

WAIT_S = 30.0
# Each test has an agent of its own, because a wake has consequences for the next one.
RESUMABLE = ("coder", "mover", "sleeper", "chatty", "talker", "failing", "forced", "paused")
_numbers = count(1)


def next_number() -> int:
    """A number that was not used before."""
    return next(_numbers)


class Scene:
    """A server that may wake some agents by resuming them and `writer` by a new session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vendor = Vendor(folder / "vendor")
        self.work = folder / "work"
        self.work.mkdir()
        self.file = folder / "wake.toml"
        rows = [(id, True, False) for id in RESUMABLE]
        rows += [("writer", False, True), ("both", True, True)]
        self.file.write_text(
            "\n".join(
                f'[[agent]]\nid = "{id}"\nruntime = "codex_cli"\ndirectory = "{self.work}"\n'
                f'program = "{self.vendor.path}"\nresume = {str(resume).lower()}\n'
                f"spawn = {str(spawn).lower()}\n"
                for id, resume, spawn in rows
            )
        )
        self.file.chmod(0o600)
        self.clients = ExitStack()

    def client(self, id: str, **more: Any) -> MethodClient:
        return self.clients.enter_context(MethodClient.of(self.server, id, **more))

    @contextmanager
    def running(self, **settings: int) -> Iterator["Scene"]:
        home = self.folder / "server" / "home"
        home.mkdir(parents=True)
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (home / CONFIG_FILE).write_text("\n".join(lines))
        with run_server(self.folder / "server", "token", "--wake", str(self.file)) as server:
            self.server = server
            with self.clients:
                self.planner = self.client("planner")
                self.operator = self.client("olga", kind="human", roles=["admin"])
                yield self

    def starts_for(self, thread: str) -> list[list[str]]:
        """The commands that were run for a thread."""
        return [argv for argv in self.vendor.arguments if f"in thread {thread}." in argv[-1]]

    def settled(self, thread: str) -> None:
        """Wait until the server has reacted to everything posted so far."""
        other = self.planner.thread("planner", "probe")
        self.planner.post(other, "are you done?", metadata={"to": ["probe"]})
        eventually(lambda: self.operator.ok("list_agents", target_agent_id="probe")["agents"])

    def beat(self, client: MethodClient, **more: Any) -> dict[str, Any]:
        origin = {
            "runtime_ref": f"0199a1b2-c3d4-7e5f-8a9b-{next_number():012x}",
            "machine": machine_name(),
            "directory": str(self.work),
        }
        fields = {"runtime": "codex_cli", "status": "idle", "resumable": True, **origin, **more}
        return client.ok("heartbeat_session", **{k: v for k, v in fields.items() if v is not None})

    def asked(self, agent: str = "coder", **post: Any) -> str:
        """A thread in which the planner has written to the agent without addressing it."""
        thread = self.planner.thread("planner", agent)
        self.planner.post(thread, "please look", **post)
        return thread

    def trigger(self, thread: str, agent: str = "coder", **more: Any) -> dict[str, Any]:
        return self.planner.ok(
            "trigger_participant", thread_id=thread, target_agent_id=agent, **more
        )


def eventually(found: Callable[[], Any], wait_s: float = WAIT_S) -> Any:
    """What this returns once it is true; the server works at its own pace."""
    give_up = time.monotonic() + wait_s
    while not (value := found()):
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)
    return value


def notices(client: MethodClient, thread: str, notice: str) -> list[dict[str, Any]]:
    return [
        message
        for message in client.read(thread, limit=200)
        if message["kind"] == "system" and message.get("metadata", {}).get("notice") == notice
    ]
