"""Claude Code: hooks in `~/.claude/settings.json`, the MCP server in `~/.claude.json`.

`onFailure` makes a hook that crashes, is missing or takes too long a refusal. Without `alwaysLoad`
the model has to search for our tools before it can call them; without the permission it is asked
for each of them, and headless it does not get it.
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
    home_of,
    hook_entries,
    mcp_words,
    settings_in,
    timeout_of,
    value_at,
)
from accord.hosts.configuration.entry import Entry
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.hook_events import CLAUDE_CODE, PRE_TOOL, HookEvent

DIRECTORY_VARIABLE = "CLAUDE_CONFIG_DIR"
SETTINGS = JsonFile(comments=False)
# These events have a matcher for the tool's name.
WITH_MATCHER = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})
# Our own tools run nothing: what they propose waits at a gate.
OWN_TOOLS = Entry(path=("permissions", "allow"), value=f"mcp__{MCP_NAME}__*")
PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")


def settings_path(env: Mapping[str, str]) -> Path:
    return directory(env, DIRECTORY_VARIABLE, ".claude") / "settings.json"


def state_path(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps MCP servers, beside much else that it writes itself."""
    given = env.get(DIRECTORY_VARIABLE)
    return (Path(given).expanduser() if given else home_of(env)) / ".claude.json"


def hook(command: str, event: HookEvent) -> dict[str, Any]:
    """The hook of one event."""
    one: dict[str, Any] = {"type": "command", "command": command, "timeout": timeout_of(event)}
    if event.event == PRE_TOOL:
        one["onFailure"] = "block"
    matcher = {"matcher": "*"} if event.name in WITH_MATCHER else {}
    return {**matcher, "hooks": [one]}


def files(env: Mapping[str, str], record: Path) -> tuple[ConfigFile, ...]:
    """Hooks, and the MCP server."""
    program, *words = mcp_words(record, CLAUDE_CODE)
    server = {"type": "stdio", "command": program, "args": words, "alwaysLoad": True}
    mcp = Entry(path=("mcpServers",), key=MCP_NAME, value=server)
    hooks = hook_entries(CLAUDE_CODE, record, hook)
    return (
        ConfigFile(settings_path(env), SETTINGS, (OWN_TOOLS, *hooks)),
        ConfigFile(state_path(env), SETTINGS, (mcp,)),
    )


def disabled_by(env: Mapping[str, str], root: Path) -> Iterator[str]:
    """Settings that switch all hooks off."""
    project = [(root / name, SETTINGS) for name in PROJECT_SETTINGS]
    for path, values in settings_in([(settings_path(env), SETTINGS), *project]):
        if value_at(values, "disableAllHooks") is True:
            yield f"disableAllHooks is true in {path}"


LAUNCH_FLAGS = (
    "The person who starts it can leave the gate out: `claude --bare`, `--safe-mode`, "
    "`--setting-sources project` and `--settings` with disableAllHooks run no hook of ours."
)
ADAPTER = HostAdapter(
    name=CLAUDE_CODE,
    title="Claude Code",
    programs=("claude",),
    version="2.1.326",
    files=files,
    limits=(LAUNCH_FLAGS, STARTED_ELSEWHERE),
    disabled_by=disabled_by,
    next_step="Start it in this repository as always: claude",
)
