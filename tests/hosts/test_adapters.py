"""What each host's settings get: the form that the host documents, and nothing secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.hosts.adapters.host import ConfigFile
from accord.hosts.adapters.table import HOSTS
from accord.hosts.hook_events import HOOK_EVENTS, PRE_TOOL

HOME = "/home/ann"
ENV = {"HOME": HOME}
RECORD = Path(HOME) / ".config/accord/connections/x-0011aabb.json"


def written(host: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """What new files of the host mean, by their path."""

    def content(file: ConfigFile) -> Any:
        return file.format.values(file.format.add(file.format.new_text, file.entries).text)

    return {str(file.path): content(file) for file in HOSTS[host].files(env or ENV, RECORD)}


def commands_of(host: str) -> dict[str, str]:
    """The command of each event."""
    hooks = next(each["hooks"] for each in written(host).values() if "hooks" in each)
    return {event: group.get("hooks", [group])[0]["command"] for event, (group,) in hooks.items()}


@pytest.mark.parametrize("host", sorted(HOOK_EVENTS))
def test_every_event_of_a_host_has_our_command(host: str) -> None:
    events = {event.name: event.event for event in HOOK_EVENTS[host]}

    assert {event: text.split()[-1] for event, text in commands_of(host).items()} == events
    assert all(str(RECORD) in text for text in commands_of(host).values())
    gate = next(event.name for event in HOOK_EVENTS[host] if event.event == PRE_TOOL)
    assert "exit 2" in commands_of(host)[gate]


def test_claude_code_blocks_when_the_hook_fails_and_loads_our_tools_at_once() -> None:
    files = written("claude-code")
    (gate,) = files[f"{HOME}/.claude/settings.json"]["hooks"]["PreToolUse"]
    (hook,) = gate["hooks"]

    assert gate["matcher"] == "*"
    assert (hook["type"], hook["onFailure"], hook["timeout"]) == ("command", "block", 60)
    allowed = files[f"{HOME}/.claude/settings.json"]["permissions"]["allow"]
    assert allowed == ["mcp__accord__*"]
    server = files[f"{HOME}/.claude.json"]["mcpServers"]["accord"]
    assert (server["type"], server["alwaysLoad"]) == ("stdio", True)


def test_codex_requires_our_server_and_approves_its_tools() -> None:
    content = written("codex")[f"{HOME}/.codex/config.toml"]
    server = content["mcp_servers"]["accord"]

    assert server["required"] is True
    assert server["default_tools_approval_mode"] == "approve"
    (hook,) = content["hooks"]["PreToolUse"][0]["hooks"]
    assert (hook["type"], hook["timeout"]) == ("command", 60)


def test_gemini_trusts_our_server_and_counts_milliseconds() -> None:
    content = written("gemini")[f"{HOME}/.gemini/settings.json"]

    assert content["mcpServers"]["accord"]["trust"] is True
    (hook,) = content["hooks"]["BeforeTool"][0]["hooks"]
    assert hook["timeout"] == 60_000


def test_opencode_gets_the_server_alone_and_says_so() -> None:
    content = written("opencode")[f"{HOME}/.config/opencode/opencode.json"]
    server = content["mcp"].pop("accord")

    assert content == {"mcp": {}}
    assert (server["type"], server["enabled"]) == ("local", True)
    assert "NOT gated" in HOSTS["opencode"].limits[0]


def test_opencode_s_file_with_comments_is_used_where_it_is(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").touch()

    (file,) = HOSTS["opencode"].files({"HOME": str(tmp_path)}, RECORD)

    assert file.path == folder / "opencode.jsonc"


def test_cursor_has_the_files_of_its_documentation() -> None:
    """`version`, hooks as lists of commands, `failClosed`; servers by `command` and `args`."""
    files = written("cursor")
    hooks = files[f"{HOME}/.cursor/hooks.json"]

    assert hooks["version"] == 1
    (gate,) = hooks["hooks"]["preToolUse"]
    assert set(gate) == {"command", "timeout", "failClosed"}
    assert gate["failClosed"] is True
    (server,) = files[f"{HOME}/.cursor/mcp.json"]["mcpServers"].values()
    assert set(server) == {"command", "args"}
    assert HOSTS["cursor"].limits[0].startswith("UNTESTED")


def test_cursor_s_version_stays_as_it_is() -> None:
    file = HOSTS["cursor"].files(ENV, RECORD)[0]
    added = file.format.add('{"version": 2, "hooks": {}}', file.entries)

    assert json.loads(added.text)["version"] == 2


@pytest.mark.parametrize(
    ("host", "variable", "path"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "/elsewhere/settings.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "/elsewhere/.claude.json"),
        ("codex", "CODEX_HOME", "/elsewhere/config.toml"),
        ("gemini", "GEMINI_CLI_HOME", "/elsewhere/.gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "/elsewhere/opencode/opencode.json"),
    ],
)
def test_the_host_s_own_variable_moves_its_files(host: str, variable: str, path: str) -> None:
    assert path in written(host, {**ENV, variable: "/elsewhere"})


@pytest.mark.parametrize(
    ("host", "file", "text", "said"),
    [
        ("claude-code", ".claude/settings.local.json", '{"disableAllHooks": true}', "disableAll"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false", "features.hooks"),
        ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "enabled"),
        ("gemini", ".gemini/settings.json", '{"hooksConfig": {"disabled": ["accord"]}}', "names"),
    ],
)
def test_settings_that_switch_our_hook_off_are_found(
    host: str, file: str, text: str, said: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / file).parent.mkdir(parents=True)
    env = {"HOME": str(tmp_path / "home")}
    assert list(HOSTS[host].disabled_by(env, project)) == []

    (project / file).write_text(text)

    (reason,) = HOSTS[host].disabled_by(env, project)
    assert said in reason


@pytest.mark.parametrize("host", ["opencode", "cursor"])
def test_hosts_without_such_settings_name_none(host: str, tmp_path: Path) -> None:
    assert list(HOSTS[host].disabled_by(ENV, tmp_path)) == []
