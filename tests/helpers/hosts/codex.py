"""Codex: a native program, configured in `~/.codex/config.toml`."""

import json
from pathlib import Path

from tests.helpers.hosts.host import (
    MCP_NAME,
    MCP_TIMEOUT_S,
    MODEL_KEY,
    TOKEN_VARIABLE,
    Answer,
    Host,
    HttpMcp,
    McpServer,
    Setup,
    json_lines,
)
from tests.helpers.hosts.platform_names import npm_platform

KEY_VARIABLE = "SCRIPTED_MODEL_KEY"
# The tools on offer depend on the model's name. With the first, MCP tools have to be searched for;
# with the other, JavaScript calls them.
MODEL = "gpt-5.5"
MODEL_THAT_WRITES_CODE = "gpt-6-sol"


def program(directory: Path) -> tuple[str, ...]:
    """The platform's own program."""
    vendor = directory / "node_modules" / f"@openai/codex-{npm_platform()}" / "vendor"
    found = sorted(vendor.glob("*/bin/codex"))
    return (str(found[0] if found else vendor / "codex"),)


def mcp_settings(server: McpServer) -> list[str]:
    """The server's table.

    Headless, tools that write are refused without `approve`, and those of a server that starts
    slowly are missing without `required`.
    """
    if isinstance(server, HttpMcp):
        place = [
            f"url = {json.dumps(server.url)}",
            f"bearer_token_env_var = {json.dumps(TOKEN_VARIABLE)}",
        ]
    else:
        command, *arguments = server.command
        variables = ", ".join(f"{name} = {json.dumps(text)}" for name, text in server.env.items())
        place = [
            f"command = {json.dumps(command)}",
            f"args = {json.dumps(arguments)}",
            f"env = {{ {variables} }}",
        ]
    return [
        f"[mcp_servers.{MCP_NAME}]",
        *place,
        'default_tools_approval_mode = "approve"',
        "required = true",
        f"startup_timeout_sec = {MCP_TIMEOUT_S}",
        f"tool_timeout_sec = {MCP_TIMEOUT_S}",
    ]


def files(setup: Setup) -> dict[str, str]:
    """The model as a provider, the project as trusted, and nothing that contacts the vendor."""
    lines = [
        f"model = {json.dumps(setup.model_name or MODEL)}",
        'model_provider = "scripted"',
        'approval_policy = "never"',
        'sandbox_mode = "workspace-write"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[features]",
        "daemon_auto_start = false",
        "plugins = false",
        "[model_providers.scripted]",
        'name = "Scripted"',
        f"base_url = {json.dumps(setup.model_url + '/v1')}",
        f"env_key = {json.dumps(KEY_VARIABLE)}",
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
        f"[projects.{json.dumps(str(setup.project))}]",
        'trust_level = "trusted"',
        *(mcp_settings(setup.mcp) if setup.mcp else ()),
    ]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def environment(setup: Setup) -> dict[str, str]:
    """The key that the configuration names."""
    return {KEY_VARIABLE: MODEL_KEY}


def turn_arguments(prompt: str, resume: str) -> list[str]:
    """A headless turn."""
    return ["exec", *(["resume", resume] if resume else []), "--json", prompt]


def read_answer(output: str) -> Answer:
    """The last message among the events that are printed, one in a line."""
    text, session_id = "", ""
    for event in json_lines(output):
        session_id = event.get("thread_id") or session_id
        item = event.get("item") or {}
        if item.get("type") == "agent_message":
            text = item.get("text", "")
    return Answer(text, session_id)


CODEX = Host(
    name="codex",
    title="Codex",
    installed_mb=420,
    program=program,
    files=files,
    environment=environment,
    turn_arguments=turn_arguments,
    read_answer=read_answer,
)
