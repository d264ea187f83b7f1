"""Prints which source files one `tool.propose` crosses on its way to a git note.

An agent proposes `git commit` in a real session on a real server, a person approves it, the agent's
executor runs it, git runs our hooks, and they write the note. A file counts if one of its functions
runs in the server or in a hook between the proposal and the result that follows the note. What runs
at import time does not count, nor do functions that also run while nothing is asked of the server.

    python tools/trace_files.py              the files of each package
    python tools/trace_files.py --functions  with the functions that ran
"""

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accord.agents import executor, shell
from accord.agents.loop import session_environment
from accord.client import Client, Session
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
from accord.data_dir import DATABASE_NAME
from accord.git.hooks.dispatch import HOOK_NAMES
from tests.helpers.git.hook_timeout import HOOK_IMPORT, extend_hook_timeout
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import Process, ServerProcess
from tools.call_recorder import PHASE_FILE

RECORDER = Path(__file__).with_name("call_recorder.py")
NOTHING, IDLE, ON_THE_PATH = range(3)
SETTLE_S = 0.5  # what starting a server leaves to be done is not idleness
IDLE_S = 1.3  # longer than the interval of every periodic task that a short scenario would meet
ANSWER_TIMEOUT_S = 60
COMMIT = ("git", "commit", "-q", "-m", "feat: give the parser a title")

FunctionsOfFiles = Mapping[str, frozenset[str]]


class Recording:
    """A directory into which traced processes write what they call."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        (directory / PHASE_FILE).write_bytes(bytes([NOTHING]))

    def set_phase(self, phase: int) -> None:
        """Say what happens from now on."""
        with (self.directory / PHASE_FILE).open("r+b") as file:  # mapped by others: never empty
            file.write(bytes([phase]))

    def spawn(self, words: list[str], log: Path) -> Process:
        """Start `python -m MODULE …` so that it is recorded."""
        python, option, *rest = words
        _expect(option == "-m", f"a module was expected to run: {words}")
        traced = [python, str(RECORDER), str(self.directory), "server", *rest]
        with log.open("ab") as file:
            return subprocess.Popen(traced, stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def patch_hooks(self, hooks: Path) -> None:
        """Make the installed hooks record themselves."""
        for name in HOOK_NAMES:
            path, folder, into = hooks / name, str(RECORDER.parent), str(self.directory)
            record = (
                f"sys.path.insert(0, {json.dumps(folder)}); import call_recorder; sys.path.pop(0)"
                f"; call_recorder.record({json.dumps(into)}, {json.dumps(name)}); {HOOK_IMPORT}"
            )
            path.write_text(path.read_text("utf-8").replace(HOOK_IMPORT, record, 1), "utf-8")

    def functions_of_files(self) -> FunctionsOfFiles:
        """The functions on the path, by file, without those of periodic tasks."""
        calls: dict[int, set[tuple[str, str]]] = defaultdict(set)
        for path in self.directory.glob("*.calls"):
            for line in path.read_text("utf-8").splitlines():
                phase, file, function = line.split(" ", 2)
                calls[int(phase)].add((file, function))
        found: dict[str, set[str]] = defaultdict(set)
        for file, function in calls[ON_THE_PATH] - calls[IDLE]:
            found[file].add(function)
        return {file: frozenset(names) for file, names in sorted(found.items())}


def trace() -> FunctionsOfFiles:
    """Run the scenario; the functions that ran, by file."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        recording = Recording(folder / "calls")
        server = ServerProcess(folder / "server")
        server.spawn = recording.spawn
        work = _work_tree(folder, server, recording)
        server.start()
        try:
            _record_idleness(server, recording)
            asyncio.run(_commit_with_approval(server, work, recording))
        finally:
            server.stop()
        _expect(bool(work.note()), "the hooks wrote no note")
        _expect("Approved-By" in work.trailers(), f"the commit is not covered: {work.message()}")
        return recording.functions_of_files()


def _record_idleness(server: ServerProcess, recording: Recording) -> None:
    """Record what a server does by itself, signing what was stored before among it."""
    time.sleep(SETTLE_S)
    signed = _signed_heads(server)
    server.issue_token("watcher")
    time.sleep(SETTLE_S / 5)
    recording.set_phase(IDLE)
    time.sleep(IDLE_S)
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while _signed_heads(server) == signed:
        _expect(time.monotonic() < deadline, "the server signed nothing")
        time.sleep(SETTLE_S / 5)
    recording.set_phase(NOTHING)


def _signed_heads(server: ServerProcess) -> int:
    with closing(sqlite3.connect(server.home / DATABASE_NAME)) as log:
        return int(log.execute("SELECT count(*) FROM heads").fetchone()[0])


def _work_tree(folder: Path, server: ServerProcess, recording: Recording) -> WorkTree:
    """A repository with hooks and a staged file."""
    work = WorkTree.create(folder).with_environment(ACCORD_HOME=str(server.home))
    work.git("config", "user.email", "alice@example.org")
    work.commit("chore: begin")
    _expect(work.accord("git", "install").code == 0, "the hooks could not be installed")
    hooks = work.path / ".git" / "hooks"
    extend_hook_timeout(hooks)
    recording.patch_hooks(hooks)
    work.write("title.txt", "The parser\n")
    return work


async def _commit_with_approval(
    server: ServerProcess, work: WorkTree, recording: Recording
) -> None:
    alice_token = server.issue_token("alice", roles=["admin"])
    claude_token = server.issue_token("claude", "agent", ["driver"])
    async with (
        asyncio.timeout(ANSWER_TIMEOUT_S),
        Client(server.url, token=alice_token) as for_alice,
        Client(server.url, token=claude_token) as for_claude,
    ):
        alice = await for_alice.create(name="Titles")
        claude = await for_claude.join(alice.id)
        prompt = await alice.prompt("Commit the title", "claude")
        recording.set_phase(ON_THE_PATH)
        await _propose_and_commit(alice, claude, prompt, work)
        recording.set_phase(NOTHING)


async def _propose_and_commit(alice: Session, claude: Session, prompt: str, work: WorkTree) -> None:
    """From `tool.propose` to `tool.result`; git and the hooks run in between."""
    tree = work.git("write-tree")
    body = ToolPropose(
        tool_name="shell",
        arguments={"argv": list(COMMIT), "tree": tree},
        agent="claude",
        risk_level=Risk.LOW,
        description="Commit the staged title",
        requires_approval=True,
        category=Category.SHELL_EXECUTE,
    )
    proposal = (await claude.send(body, prompt)).id
    async for message in alice.messages():
        if isinstance(message.body, GateRequest):
            await alice.approve(message.id, "Yes")
            break
    granted = await claude.decision(proposal)
    environment = {**work.env, **session_environment(claude.id, None)}
    done = await executor.run_granted(
        claude, granted, body, work.path, shell.CommandLimits(), environment
    )
    _expect(done.success, f"the commit failed: {done}")


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, not an option
    if not holds:
        raise SystemExit(f"The scenario did not go as planned: {otherwise}")


def package_of(file: str) -> str:
    """The folder of a file, at most two levels deep."""
    return "/".join(file.split("/")[:-1][:2]) or "."


def render(files: FunctionsOfFiles, *, functions: bool = False) -> str:
    """The files of each package, and how many there are."""
    lines = []
    for package, group in groupby(
        sorted(files, key=lambda file: (package_of(file), file)), package_of
    ):
        members = list(group)
        lines.append(f"{package}  {len(members)}")
        for file in members:
            names = f": {', '.join(sorted(files[file]))}" if functions else ""
            lines.append(f"    {file}{names}")
    lines.append(f"{len(files)} files")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--functions", action="store_true", help="with the functions that ran")
    print(render(trace(), functions=parser.parse_args().functions))
