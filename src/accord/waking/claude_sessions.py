"""The conversation of a running Claude Code, which it keeps in a file named after its process."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SESSION_FILE_BYTES = 64 << 10
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def is_uuid(value: object) -> bool:
    """Whether this can be a vendor's id of a conversation."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def claude_session(env: Mapping[str, str], pid: int) -> str:
    """The id of the conversation that this process has open; empty if it is not known."""
    home = env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude"
    try:
        with open(f"{home}/sessions/{pid}.json", "rb") as file:  # noqa: PTH123 - `pathlib` is slow to import
            known = json.loads(file.read(MAX_SESSION_FILE_BYTES))
    except (OSError, ValueError):
        return ""
    found = known.get("sessionId") if isinstance(known, dict) else None
    return found if isinstance(found, str) and is_uuid(found) else ""
