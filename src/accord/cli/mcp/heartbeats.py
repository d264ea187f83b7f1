"""Heartbeats of the host that started the bridge: one in 30 seconds, from the bridge itself.

They go to `POST /v1/heartbeat_session` and cause no call of a tool or a model. They say what the
bridge saw: which program it is, whether it called a tool lately, and the vendor's own id of the
conversation where the program reveals it.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PATH = "/v1/heartbeat_session"
INTERVAL_S = 30.0
# A host that only asks what there is, and ends, is not worth a line in the registry.
FIRST_AFTER_S = 1.0
LAST_AFTER_S = 1.0
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CODEX_KEY = "x-codex-turn-metadata"
# What each program calls itself over MCP. Another one is registered under its own name.
RUNTIMES = {
    "claude-code": "claude_code",
    "codex-mcp-client": "codex_cli",
    "gemini-cli-mcp-client": "gemini_cli",
}
UNKNOWN_RUNTIME = "mcp_client"


class Heartbeats:
    """What is known of the host, and the thread that reports it."""

    def __init__(self, env: Mapping[str, str], send: Callable[[dict[str, Any]], None]) -> None:
        self._env = env
        self._send = send
        self._runtime = ""
        self._runtime_ref = ""
        self._called_at: float | None = None
        self._was_sent = False
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, message: dict[str, Any]) -> None:
        """Learn from a message of the host; the first one that names it starts the heartbeats."""
        given = message.get("params")
        params = given if isinstance(given, dict) else {}
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        info = params.get("clientInfo") or meta.get(CLIENT_INFO_KEY)
        if isinstance(info, dict) and not self._runtime:
            self._runtime = runtime_name(info.get("name"))
        if message.get("method") == "tools/call":
            self._called_at = time.monotonic()
            turn = meta.get(CODEX_KEY)
            from accord.waking.claude_sessions import is_uuid

            if isinstance(turn, dict) and is_uuid(turn.get("thread_id")):
                self._runtime_ref = turn["thread_id"]
        if self._runtime and self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        wait_s = FIRST_AFTER_S
        while not self._ends.wait(wait_s):
            self._was_sent = True
            self._send(self.report())
            wait_s = INTERVAL_S

    def close(self) -> None:
        """Say that the program is gone, if it was ever reported or has done anything."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(LAST_AFTER_S)  # so that no other one follows the last
        if self._was_sent or self._called_at is not None:
            self._send({**self.report(), "status": "offline"})

    def report(self) -> dict[str, Any]:
        """The arguments of `heartbeat_session`."""
        called = self._called_at is not None and time.monotonic() - self._called_at < INTERVAL_S
        ref = self._runtime_ref or self._claude_session()
        report: dict[str, Any] = {
            "runtime": self._runtime or UNKNOWN_RUNTIME,
            "status": "active" if called else "idle",
            "resumable": bool(ref),
        }
        if ref:
            from accord.waking.machine import machine_name

            place = {"machine": machine_name(), "directory": os.path.realpath(os.getcwd())}  # noqa: PTH109 - `pathlib` is slow to import
            report |= {"runtime_ref": ref, **place}
        return report

    def _claude_session(self) -> str:
        """The conversation of the Claude Code that started us, which it keeps in a file."""
        if self._runtime != "claude_code":
            return ""
        from accord.waking.claude_sessions import claude_session

        return claude_session(self._env, os.getppid())


def runtime_name(name: object) -> str:
    """The name of a runtime for what a program calls itself."""
    if not isinstance(name, str):
        return UNKNOWN_RUNTIME
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower(), flags=re.ASCII).strip("_")[:64]
    return RUNTIMES.get(name) or (plain if plain[:1].isalpha() else UNKNOWN_RUNTIME)


def is_agents(token: str) -> bool:
    """Whether a token is an agent's; people are not woken, so nothing is reported of them."""
    from base64 import urlsafe_b64decode

    payload = token.split(".")[1:2]
    try:
        claims = json.loads(urlsafe_b64decode(payload[0] + "==")) if payload else {}
    except ValueError:
        return False
    return isinstance(claims, dict) and claims.get("kind") == "agent"
