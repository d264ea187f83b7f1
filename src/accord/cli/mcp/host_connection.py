"""`accord mcp --host`: which connection a host's MCP server works for, by its working directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import Any

    from accord.hosts.connections import Connection

NEWEST_REVISION = "2025-11-25"
METHOD_NOT_FOUND = -32601
MAX_LINE_BYTES = 4 << 20
NOT_CONNECTED = (
    "This directory is not in a repository that is connected to Accord, so there are no tools "
    "here. The user can run `accord connect {host}` in the repository."
)


def find_connection(host: str, records: Path, directory: Path) -> Connection | None:
    """The connection of this host whose repository the directory is in; the innermost one.

    Other work trees of the repository count, too.
    """
    from accord.hosts.connections import ID_PATTERN, read_connection
    from accord.hosts.gate_hook import is_inside

    found = []
    for path in records.glob(f"{host}-*.json"):
        if ID_PATTERN.fullmatch(path.stem):
            connection = read_connection(path)
            if connection.host == host and is_inside(connection.root, str(directory)):
                found.append(connection)
    return max(found, key=lambda each: (len(each.root), each.created_at), default=None)


def serve_nothing(host: str, source: int, out: int) -> int:
    """Answer as a server without tools: outside connected repositories a host must not fail."""
    pending = b""
    while data := os.read(source, 65536):
        *lines, pending = (pending + data).split(b"\n")
        if len(pending) > MAX_LINE_BYTES:
            return 2
        for line in lines:
            answer = answer_to(line, host) if line.strip() else None
            if answer is not None:
                os.write(out, json.dumps(answer).encode() + b"\n")
    return 0


def answer_to(line: bytes, host: str) -> dict[str, Any] | None:
    """The answer to one line; None for a notification."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params")
    asked = params.get("protocolVersion") if isinstance(params, dict) else None
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": asked if isinstance(asked, str) else NEWEST_REVISION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "accord", "version": "0"},
            "instructions": NOT_CONNECTED.format(host=host),
        },
        "tools/list": {"tools": []},
        "ping": {},
    }
    known = isinstance(method, str) and method in results
    error = {"code": METHOD_NOT_FOUND, "message": f"There is no method {method}"}
    outcome = {"result": results[method]} if known else {"error": error}
    return {"jsonrpc": "2.0", "id": message["id"], **outcome}
