"""Claude Code: a native program, configured in `~/.claude.json`."""

import json
from pathlib import Path
from typing import Any

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
    bearer_header,
    to_json,
)
from tests.helpers.hosts.platform_names import npm_platform

# Claude Code remembers a key that the user has agreed to by its last characters.
KEY_SUFFIX = MODEL_KEY[-20:]


def program(directory: Path) -> tuple[str, ...]:
    """The platform's own program; the one in `.bin` needs an install script."""
    package = f"@anthropic-ai/claude-code-{npm_platform()}"
    return (str(directory / "node_modules" / package / "claude"),)


def mcp_settings(server: McpServer) -> dict[str, Any]:
    """The server's entry; without `alwaysLoad` the model has to search for its tools."""
    if isinstance(server, HttpMcp):
        headers = bearer_header(f"${{{TOKEN_VARIABLE}}}")
        return {"type": "http", "url": server.url, "headers": headers, "alwaysLoad": True}
    command, *arguments = server.command
    return {
        "type": "stdio",
        "command": command,
        "args": arguments,
        "env": dict(server.env),
        "alwaysLoad": True,
    }


def files(setup: Setup) -> dict[str, str]:
    """The state of a user who has been through the first start and trusts the project."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY_SUFFIX], "rejected": []},
        "projects": {str(setup.project): trusted},
        "mcpServers": {MCP_NAME: mcp_settings(setup.mcp)} if setup.mcp else {},
    }
    return {".claude.json": to_json(state)}


def environment(setup: Setup) -> dict[str, str]:
    """Where the model is, and that nothing else may be contacted."""
    return {
        "ANTHROPIC_BASE_URL": setup.model_url,
        "ANTHROPIC_API_KEY": MODEL_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "MCP_TIMEOUT": str(MCP_TIMEOUT_S * 1000),
    }


def turn_arguments(prompt: str, resume: str) -> list[str]:
    """A headless turn in which the MCP server's tools need no permission."""
    session = ["--resume", resume] if resume else []
    allowed = ["--allowedTools", f"mcp__{MCP_NAME}__*"]
    return ["-p", prompt, "--output-format", "json", *session, *allowed]


def read_answer(output: str) -> Answer:
    """The one JSON object that is printed."""
    try:
        printed = json.loads(output)
    except ValueError:
        return Answer()
    return Answer(str(printed.get("result", "")), str(printed.get("session_id", "")))


CLAUDE = Host(
    name="claude",
    title="Claude Code",
    installed_mb=370,
    program=program,
    files=files,
    environment=environment,
    turn_arguments=turn_arguments,
    read_answer=read_answer,
)
