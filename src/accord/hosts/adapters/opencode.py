"""OpenCode: the MCP server in `~/.config/opencode/opencode.json`.

OpenCode has no hooks but plugins, which it installs packages for from a registry. No gate is
written for it: what it runs is not asked about, and `accord connect` says so.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from accord.hosts.adapters.host import (
    MCP_NAME,
    ConfigFile,
    HostAdapter,
    directory,
    mcp_words,
)
from accord.hosts.configuration.entry import Entry
from accord.hosts.configuration.json_entries import JsonFile

OPENCODE = "opencode"
CONFIG = JsonFile(comments=True)
CONFIG_NAMES = ("opencode.jsonc", "opencode.json")


def config_path(env: Mapping[str, str]) -> Path:
    """The configuration that is there; OpenCode reads either name."""
    folder = directory(env, "XDG_CONFIG_HOME", ".config") / OPENCODE
    found = [folder / name for name in CONFIG_NAMES if (folder / name).exists()]
    return found[0] if found else folder / CONFIG_NAMES[-1]


def files(env: Mapping[str, str], record: Path) -> tuple[ConfigFile, ...]:
    """The file with the MCP server; OpenCode has no hooks."""
    server = {"type": "local", "command": mcp_words(record, OPENCODE), "enabled": True}
    mcp = Entry(path=("mcp",), key=MCP_NAME, value=server)
    return (ConfigFile(config_path(env), CONFIG, (mcp,)),)


def disabled_by(_env: Mapping[str, str], _root: Path) -> Iterable[str]:
    """There is no hook that could be switched off."""
    return ()


NOT_GATED = (
    "OpenCode is NOT gated: it gets Accord's tools over MCP, but its own commands and edits "
    "run without approval."
)
ADAPTER = HostAdapter(
    name=OPENCODE,
    title="OpenCode",
    programs=("opencode",),
    version="1.18.33",
    files=files,
    limits=(NOT_GATED,),
    disabled_by=disabled_by,
    next_step="Start it in this repository as always: opencode",
)
