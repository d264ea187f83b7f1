"""The prompting host under `accord supervise`, at a real server."""

import json
import os
import sys
from pathlib import Path

from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.terminals.outer_terminal import OuterTerminal

HOST = Path(__file__).with_name("prompting_host.py")


def supervise(
    server: ServerProcess, token: str, folder: Path, *command: str, work_s: float = 0.0
) -> OuterTerminal:
    """A person's terminal with the host, or another command, in it."""
    file = folder / "supervisor-token"
    file.write_text(token)
    file.chmod(0o600)
    host = command or (sys.executable, str(HOST), str(folder / "prompts"), str(work_s))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    options = ("--runtime", "claude_code", "--url", server.url, "--token-file", str(file))
    program = (sys.executable, "-m", "accord", "supervise", *options, "--", *host)
    return OuterTerminal(program, env, folder, (24, 80))


def prompts_in(folder: Path) -> list[str]:
    """What was sent to the host, in order."""
    file = folder / "prompts"
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]
