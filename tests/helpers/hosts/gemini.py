"""Gemini CLI: a JavaScript program, configured in `~/.gemini/settings.json`."""

import json
from pathlib import Path
from typing import Any

from tests.helpers.git.npm_programs import NODE_DIR
from tests.helpers.hosts.host import (
    MCP_NAME,
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

# With a model named, no router is asked first which one to take.
MODEL = "gemini-2.5-flash"


def program(directory: Path) -> tuple[str, ...]:
    """The bundle, run by the Node that the tests have."""
    bundle = directory / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    return (str(NODE_DIR / "node"), str(bundle))


def mcp_settings(server: McpServer) -> dict[str, Any]:
    """The server's entry; headless, tools are offered only with `trust`."""
    if isinstance(server, HttpMcp):
        headers = bearer_header(f"${{{TOKEN_VARIABLE}}}")
        return {"type": "http", "url": server.url, "headers": headers, "trust": True}
    command, *arguments = server.command
    return {"command": command, "args": arguments, "env": dict(server.env), "trust": True}


def files(setup: Setup) -> dict[str, str]:
    """Settings of a user with an API key; no updates, no statistics."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "mcpServers": {MCP_NAME: mcp_settings(setup.mcp)} if setup.mcp else {},
    }
    return {".gemini/settings.json": to_json(settings)}


def environment(setup: Setup) -> dict[str, str]:
    """Where the model is."""
    return {
        "GEMINI_API_KEY": MODEL_KEY,
        "GOOGLE_GEMINI_BASE_URL": setup.model_url,
        "NO_BROWSER": "1",
    }


def turn_arguments(prompt: str, resume: str) -> list[str]:
    """A headless turn."""
    session = ["--resume", resume] if resume else []
    mode = ["-m", MODEL, "--approval-mode", "yolo"]
    return ["-p", prompt, "--output-format", "json", *mode, *session]


def read_answer(output: str) -> Answer:
    """The one JSON object that is printed."""
    try:
        printed = json.loads(output)
    except ValueError:
        return Answer()
    return Answer(str(printed.get("response", "")), str(printed.get("session_id", "")))


GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    installed_mb=100,
    program=program,
    files=files,
    environment=environment,
    turn_arguments=turn_arguments,
    read_answer=read_answer,
)
