"""Gemini CLI: hooks and the MCP server in `~/.gemini/settings.json`.

Without `trust`, a headless turn is not offered our tools at all. Hooks of a project are dropped
under `--skip-trust`, those of the user are not.
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
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.hook_events import GEMINI, HookEvent

SETTINGS = JsonFile(comments=True)
HOME_VARIABLE = "GEMINI_CLI_HOME"
HOOK_NAME = "accord"
MILLISECONDS = 1000
WITH_MATCHER = frozenset({"BeforeTool", "AfterTool"})


def settings_path(env: Mapping[str, str]) -> Path:
    return directory(env, HOME_VARIABLE, "") / ".gemini" / "settings.json"


def hook(command: str, event: HookEvent) -> dict[str, Any]:
    """The hook of one event; Gemini counts milliseconds."""
    one = {
        "name": HOOK_NAME,
        "type": "command",
        "command": command,
        "timeout": timeout_of(event) * MILLISECONDS,
    }
    matcher = {"matcher": "*"} if event.name in WITH_MATCHER else {}
    return {**matcher, "hooks": [one]}


def files(env: Mapping[str, str], record: Path) -> tuple[ConfigFile, ...]:
    """Hooks, and the MCP server."""
    program, *words = mcp_words(record, GEMINI)
    server = {"command": program, "args": words, "trust": True}
    mcp = Entry(path=("mcpServers",), key=MCP_NAME, value=server)
    entries = (mcp, *hook_entries(GEMINI, record, hook))
    return (ConfigFile(settings_path(env), SETTINGS, entries),)


def disabled_by(env: Mapping[str, str], root: Path) -> Iterator[str]:
    """Settings that switch hooks off, all of them or ours."""
    places = [(settings_path(env), SETTINGS), (root / ".gemini" / "settings.json", SETTINGS)]
    for path, values in settings_in(places):
        if value_at(values, "hooksConfig", "enabled") is False:
            yield f"hooksConfig.enabled is false in {path}"
        disabled = value_at(values, "hooksConfig", "disabled")
        if isinstance(disabled, list) and HOOK_NAME in disabled:
            yield f"hooksConfig.disabled names {HOOK_NAME} in {path}"


ADAPTER = HostAdapter(
    name=GEMINI,
    title="Gemini CLI",
    programs=("gemini",),
    version="0.61.0",
    files=files,
    limits=(
        "Gemini CLI lets a call pass when it ends our hook because of its own timeout.",
        STARTED_ELSEWHERE,
    ),
    disabled_by=disabled_by,
    next_step="Start it in this repository as always: gemini",
)
