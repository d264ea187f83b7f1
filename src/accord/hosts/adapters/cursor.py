"""Cursor: hooks in `~/.cursor/hooks.json`, the MCP server in `~/.cursor/mcp.json`.

This follows Cursor's documentation; no test runs Cursor itself.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from accord.hosts.adapters.host import (
    MCP_NAME,
    STARTED_ELSEWHERE,
    ConfigFile,
    HostAdapter,
    home_of,
    hook_entries,
    mcp_words,
    timeout_of,
)
from accord.hosts.configuration.entry import Entry
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.hook_events import CURSOR, HookEvent

SETTINGS = JsonFile(comments=False)
FORMAT_VERSION = 1


def hook(command: str, event: HookEvent) -> dict[str, Any]:
    """The hook of one event; `failClosed` makes its failure a refusal."""
    closed = {"failClosed": True} if event.is_gate else {}
    return {"command": command, "timeout": timeout_of(event), **closed}


def files(env: Mapping[str, str], record: Path) -> tuple[ConfigFile, ...]:
    """Hooks, and the MCP server."""
    folder = home_of(env) / ".cursor"
    version = Entry(path=(), key="version", value=FORMAT_VERSION, if_missing=True)
    program, *words = mcp_words(record, CURSOR)
    mcp = Entry(path=("mcpServers",), key=MCP_NAME, value={"command": program, "args": words})
    hooks = (version, *hook_entries(CURSOR, record, hook))
    return (
        ConfigFile(folder / "hooks.json", SETTINGS, hooks),
        ConfigFile(folder / "mcp.json", SETTINGS, (mcp,)),
    )


def disabled_by(_env: Mapping[str, str], _root: Path) -> Iterable[str]:
    """Its documentation names no setting for this."""
    return ()


UNTESTED = (
    "UNTESTED: this follows Cursor's documentation. Try a command that must be refused before "
    "you rely on it."
)
ADAPTER = HostAdapter(
    name=CURSOR,
    title="Cursor",
    programs=("cursor-agent", "cursor"),
    version="",
    files=files,
    limits=(UNTESTED, STARTED_ELSEWHERE),
    disabled_by=disabled_by,
    next_step="Restart Cursor, and open this repository in it",
)
