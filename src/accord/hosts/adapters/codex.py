"""Codex: hooks and the MCP server in `~/.codex/config.toml`.

Headless, Codex refuses tools that write unless they are approved by default, and goes on without
the tools of a server that is not ready unless the server is required.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accord.hosts.adapters.host import (
    MCP_NAME,
    STARTED_ELSEWHERE,
    ConfigFile,
    HostAdapter,
    directory,
    hook_entries,
    mcp_words,
    settings_in,
    timeout_of,
    value_at,
)
from accord.hosts.configuration.entry import Entry
from accord.hosts.configuration.toml_entries import TomlFile
from accord.hosts.hook_events import CODEX, HookEvent

DIRECTORY_VARIABLE = "CODEX_HOME"
CONFIG = TomlFile()
# A server that starts on a busy machine gets more time than Codex gives it by default.
STARTUP_TIMEOUT_S = 60


def config_path(env: Mapping[str, str]) -> Path:
    return directory(env, DIRECTORY_VARIABLE, ".codex") / "config.toml"


def hook(command: str, event: HookEvent) -> dict[str, Any]:
    """The hook of one event."""
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout_of(event)}]}


def files(env: Mapping[str, str], record: Path) -> tuple[ConfigFile, ...]:
    """The MCP server and hooks, as tables at the end."""
    program, *words = mcp_words(record, CODEX)
    server = {
        "command": program,
        "args": words,
        "default_tools_approval_mode": "approve",
        "required": True,
        "startup_timeout_sec": STARTUP_TIMEOUT_S,
    }
    mcp = Entry(path=("mcp_servers",), key=MCP_NAME, value=server)
    return (ConfigFile(config_path(env), CONFIG, (mcp, *hook_entries(CODEX, record, hook))),)


def disabled_by(env: Mapping[str, str], root: Path) -> Iterator[str]:
    """Settings that switch hooks off."""
    places = [(config_path(env), CONFIG), (root / ".codex" / "config.toml", CONFIG)]
    for path, values in settings_in(places):
        if value_at(values, "features", "hooks") is False:
            yield f"features.hooks is false in {path}"


TYPED_INPUT = (
    "What is typed into a program that is already running (`write_stdin`) passes no hook; the "
    "gate therefore refuses commands that open an interactive prompt."
)
CHOSEN_SHELL = (
    "The model may choose bash, zsh, sh or PowerShell for a call (`shell`), which no hook is told; "
    "commands are read as bash reads them."
)
ADAPTER = HostAdapter(
    name=CODEX,
    title="Codex",
    programs=("codex",),
    version="0.169.0",
    files=files,
    limits=(
        "Codex runs a hook only after you have trusted it, and says nothing when it skips one.",
        TYPED_INPUT,
        CHOSEN_SHELL,
        "Codex lets a call pass when it ends our hook because of its own timeout.",
        "The person who starts it can leave the gate out: `codex --disable hooks`.",
        STARTED_ELSEWHERE,
    ),
    disabled_by=disabled_by,
    next_step="Start it in this repository as always: codex",
)
