"""A small MCP server over stdio with one tool, to test the hosts without Accord.

python note_server.py LOG    writes each request to LOG as a line of JSON
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "add_note",
    "description": "Adds a note to the list of notes and returns its number.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["number", "text"],
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False},
}
FIRST_NUMBER = 41


def result(method: str, params: dict[str, Any], notes: list[str]) -> dict[str, Any] | None:
    """The result of a request; None if there is no such method."""
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"},
                "instructions": "Notes: a list that anyone may add to.",
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            notes.append(params["arguments"]["text"])
            note = {"number": FIRST_NUMBER + len(notes), "text": notes[-1]}
            text = {"type": "text", "text": json.dumps(note)}
            return {"content": [text], "structuredContent": note}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    """Answer requests until the end of the input."""
    log, notes = Path(sys.argv[1]), list[str]()
    for line in sys.stdin:
        request = json.loads(line)
        with log.open("a", encoding="utf-8") as file:
            file.write(line)
        if "id" not in request:
            continue
        given = result(request["method"], request.get("params") or {}, notes)
        unknown = {"code": -32601, "message": f"no method {request['method']}"}
        outcome = {"error": unknown} if given is None else {"result": given}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


if __name__ == "__main__":
    main()
