"""Headless turns of a real host: a clean home, the scripted model, and a deadline.

with serve(script) as model:
    agent = Agent(CLAUDE, ensure_installed(CLAUDE), tmp_path, model, mcp)
    turn = agent.run("report")
    assert turn.result_of("post_message").json()["seq"] == 1
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.helpers.hosts.host import TOKEN_VARIABLE, Answer, Host, HttpMcp, McpServer, Setup
from tests.helpers.hosts.scripted_model.script import ToolCall, ToolResult
from tests.helpers.hosts.scripted_model.server import Exchange, ScriptedModel

# A turn takes seconds; a machine under load may need many times as long.
TURN_TIMEOUT_S = 240.0


@dataclass(frozen=True)
class Turn:
    """How a turn ended, and what happened between the host and the model."""

    exit_code: int
    answer: Answer
    output: str
    errors: str
    seconds: float
    exchanges: tuple[Exchange, ...]
    outside: tuple[str, ...]

    @property
    def offered_tools(self) -> frozenset[str]:
        """The names of all tools that the model was offered."""
        return frozenset(tool.name for each in self.exchanges for tool in each.request.tools)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that the model made."""
        return tuple(call for each in self.exchanges for call in each.reply.calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of the script's calls that the model was shown, in order."""
        shown = (each.request.own_results for each in self.exchanges)
        return max(shown, key=len, default=())

    def results_of(self, tool: str) -> list[ToolResult]:
        """The results of one tool, by its name on the MCP server."""
        return [each for each in self.results if each.tool.endswith(tool)]

    def result_of(self, tool: str) -> ToolResult:
        """The only result of a tool."""
        (result,) = self.results_of(tool)
        return result


@dataclass(frozen=True)
class Agent:
    """A host with a home of its own below `root`, which talks to nothing but model and server."""

    host: Host
    command: tuple[str, ...]
    root: Path
    model: ScriptedModel
    mcp: McpServer | None = None
    model_name: str = ""

    @property
    def setup(self) -> Setup:
        """The host's directories and servers."""
        return Setup(self.root, self.model.url, self.mcp, self.model_name)

    def run(self, prompt: str, *, resume: str = "", timeout_s: float = TURN_TIMEOUT_S) -> Turn:
        """One turn, asserted to end well and to stay on loopback."""
        turn = self.try_run(prompt, resume=resume, timeout_s=timeout_s)
        assert turn.exit_code == 0, f"{self.host.title} exited with {turn.exit_code}: {turn}"
        assert not (turn.outside and self.host.stays_on_loopback), turn.outside
        return turn

    def try_run(self, prompt: str, *, resume: str = "", timeout_s: float = TURN_TIMEOUT_S) -> Turn:
        """One turn, with any exit code."""
        return self.run_arguments(self.host.turn_arguments(prompt, resume), timeout_s)

    def run_arguments(self, arguments: Sequence[str], timeout_s: float = TURN_TIMEOUT_S) -> Turn:
        """Run the host with these arguments; killed, if it takes too long."""
        self.prepare()
        seen, seen_outside = len(self.model.exchanges), len(self.model.outside)
        started_at = time.monotonic()
        exit_code = self._run([*self.command, *arguments], timeout_s)
        output = (self.root / "output").read_text("utf-8", "replace")
        return Turn(
            exit_code=exit_code,
            answer=self.host.read_answer(output),
            output=output,
            errors=(self.root / "errors").read_text("utf-8", "replace"),
            seconds=time.monotonic() - started_at,
            exchanges=tuple(self.model.exchanges[seen:]),
            outside=tuple(self.model.outside[seen_outside:]),
        )

    def prepare(self) -> None:
        """Write the host's settings into its home, and make its project a repository."""
        setup = self.setup
        if not setup.project.exists():
            setup.project.mkdir(parents=True)
            setup.temporary.mkdir()
            subprocess.run(["git", "init", "--quiet", str(setup.project)], check=True, timeout=60)
            for name, text in self.host.files(setup).items():
                path = setup.home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")

    def environment(self) -> dict[str, str]:
        """All variables that the host gets: none of ours, and a proxy that refuses everything."""
        proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        return {
            "HOME": str(self.setup.home),
            "TMPDIR": str(self.setup.temporary),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            **dict.fromkeys(proxies, self.model.url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            **({TOKEN_VARIABLE: self.mcp.token} if isinstance(self.mcp, HttpMcp) else {}),
            **self.host.environment(self.setup),
        }

    def _run(self, words: list[str], timeout_s: float) -> int:
        """Run to the end or the deadline; output goes to files, which no child can hold open."""
        with (self.root / "output").open("wb") as out, (self.root / "errors").open("wb") as err:
            process = subprocess.Popen(
                words,
                cwd=self.setup.project,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with (self.root / "errors").open("ab") as err:
                err.write(f"\nkilled after {timeout_s:.0f} s\n".encode())
        finally:
            end_processes(process.pid, self.setup.home)
        return process.wait()


def end_processes(group: int, home: Path) -> None:
    """Kill the processes of a group, and those that have left it but have that home directory."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                process.kill()
