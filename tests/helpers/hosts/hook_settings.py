"""Hooks in the settings of a real host, and a headless turn in which its shell needs no leave."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accord.hosts.hook_events import CLAUDE_CODE, CODEX, GEMINI, HOOK_EVENTS
from tests.helpers.hosts.scripted_model.script import Call
from tests.helpers.hosts.turns import Agent

# Our names of the hosts, by those of the tests.
HOOK_HOSTS = {"claude": CLAUDE_CODE, "codex": CODEX, "gemini": GEMINI}
# The host's own name of the shell, and of the argument that is its command.
SHELLS = {
    "claude": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
}
BYPASS_TRUST = "--dangerously-bypass-hook-trust"
CommandOf = Callable[[str], str]


def shell_call(name: str, command: str) -> Call:
    """A call of the host's shell."""
    tool, argument = SHELLS[name]
    return Call(tool, {argument: command})


def write_hooks(agent: Agent, command_of: CommandOf, timeout_s: int = 60) -> None:
    """Configure a command for each event of ours; the empty command configures none."""
    agent.prepare()
    events = {
        each.name: command_of(each.event) for each in HOOK_EVENTS[HOOK_HOSTS[agent.host.name]]
    }
    hooks = {event: command for event, command in events.items() if command}
    WRITERS[agent.host.name](agent.setup.home, hooks, timeout_s)


def write_claude(home: Path, hooks: Mapping[str, str], timeout_s: int) -> None:
    add_json(home / ".claude" / "settings.json", hooks, timeout_s, onFailure="block")


def write_gemini(home: Path, hooks: Mapping[str, str], timeout_s: int) -> None:
    add_json(home / ".gemini" / "settings.json", hooks, timeout_s * 1000)


def add_json(path: Path, hooks: Mapping[str, str], timeout: int, **more: Any) -> None:
    settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
    settings["hooks"] = {
        event: [
            {
                "matcher": "*",
                "hooks": [{"type": "command", "command": command, "timeout": timeout, **more}],
            }
        ]
        for event, command in hooks.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), "utf-8")


def write_codex(home: Path, hooks: Mapping[str, str], timeout_s: int) -> None:
    lines = []
    for event, command in hooks.items():
        lines += [f"[[hooks.{event}]]", f"[[hooks.{event}.hooks]]", 'type = "command"']
        lines += [f"command = {json.dumps(command)}", f"timeout = {timeout_s}"]
    with (home / ".codex" / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join([*lines, ""]))


WRITERS: Mapping[str, Callable[[Path, Mapping[str, str], int], None]] = {
    "claude": write_claude,
    "codex": write_codex,
    "gemini": write_gemini,
}


def turn_words(agent: Agent, prompt: str, *more: str, trusted: bool = True) -> list[str]:
    """A headless turn in which nothing but our hook keeps the shell from running."""
    words = list(agent.host.turn_arguments(prompt, ""))
    match agent.host.name:
        case "claude":
            return [*words, "--allowedTools", "Bash", *more]
        case "codex":
            trust = [BYPASS_TRUST] if trusted else []
            free = ["--dangerously-bypass-approvals-and-sandbox"]
            return [*more, words[0], *trust, *free, *words[1:]]
        case _:
            return [*words, *more]
