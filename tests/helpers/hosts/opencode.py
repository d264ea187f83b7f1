"""OpenCode: a native program, configured in `~/.config/opencode/opencode.json`."""

from pathlib import Path
from typing import Any

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
    json_lines,
    to_json,
)
from tests.helpers.hosts.platform_names import npm_platform

SWITCHED_OFF = ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")


def program(directory: Path) -> tuple[str, ...]:
    """The build that runs on every processor of the platform."""
    modules = directory / "node_modules"
    return (str(modules / f"opencode-{npm_platform()}-baseline" / "bin" / "opencode"),)


def mcp_settings(server: McpServer) -> dict[str, Any]:
    """The server's entry."""
    if isinstance(server, HttpMcp):
        headers = bearer_header(f"{{env:{TOKEN_VARIABLE}}}")
        place = {"type": "remote", "url": server.url, "headers": headers, "oauth": False}
    else:
        environment = dict(server.env)
        place = {"type": "local", "command": list(server.command), "environment": environment}
    return {**place, "enabled": True}


def files(setup: Setup) -> dict[str, str]:
    """The model as a provider of its own kind."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "models": {"scripted": {"name": "Scripted", "tool_call": True}},
        "options": {"baseURL": setup.model_url + "/v1", "apiKey": MODEL_KEY},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": provider},
        "mcp": {MCP_NAME: mcp_settings(setup.mcp)} if setup.mcp else {},
    }
    return {".config/opencode/opencode.json": to_json(settings)}


def environment(setup: Setup) -> dict[str, str]:
    """Nothing is to be downloaded."""
    return {f"OPENCODE_DISABLE_{name}": "1" for name in SWITCHED_OFF}


def turn_arguments(prompt: str, resume: str) -> list[str]:
    """A headless turn."""
    return ["run", "--format", "json", *(["--session", resume] if resume else []), prompt]


def read_answer(output: str) -> Answer:
    """The last text among the events that are printed, one in a line."""
    text, session_id = "", ""
    for event in json_lines(output):
        session_id = event.get("sessionID") or session_id
        part = event.get("part") or {}
        if part.get("type") == "text":
            text = part.get("text", "")
    return Answer(text, session_id)


OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    installed_mb=190,
    program=program,
    files=files,
    environment=environment,
    turn_arguments=turn_arguments,
    read_answer=read_answer,
    stays_on_loopback=False,
)
