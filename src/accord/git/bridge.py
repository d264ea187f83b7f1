"""Asking the bridge: one JSON line to the server of this user, at most one second in all.

Standard library alone, and little of it: this runs in hooks. An impostor's socket or port is not
asked: both must belong to this user.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False  # a name that type checkers take for true
if TYPE_CHECKING:
    import socket
    from typing import Any

PATIENCE_S = 1.0
PORT = 9847
PORTS = "/proc/net/tcp"
MOST_BYTES = 1 << 20
OTHERS = 0o077
COMMON = "/tmp/pvp-git-bridge.sock"  # noqa: S108 - PVP 18.1 names it; its owner is checked
READS = frozenset({"commit-context", "extended-metadata", "status", "commits", "places"})


def ask(
    action: str, env: Mapping[str, str], facts: Mapping[str, Any], patience: float = PATIENCE_S
) -> dict[str, Any] | None:
    """What the bridge answers; None where there is none, none in time, or it says no."""
    answer = heard(action, env, facts, patience)
    return None if answer is None or answer.get("error") else answer


def heard(
    action: str, env: Mapping[str, str], facts: Mapping[str, Any], patience: float = PATIENCE_S
) -> dict[str, Any] | None:
    """The same, for whoever wants to know why not: `error` says it."""
    until = time.monotonic() + patience
    said = {"action": action, **{name: value for name, value in facts.items() if value}}
    last = None
    for path in sockets(env):
        answer = _over_socket(path, said, until) if _is_ours(path) else None
        if answer is not None and not answer.get("error"):
            return answer
        last = last or answer
    return (_over_http(said, env, until) if _has_port(env) else None) or last


def in_reach(env: Mapping[str, str]) -> bool:
    """Whether there is anybody to ask, as far as one sees without asking."""
    return any(map(_is_ours, sockets(env))) or _has_port(env)


def _has_port(env: Mapping[str, str]) -> bool:
    elsewhere = bool(env.get("ACCORD_HOME")) and not _token(env)
    return not elsewhere and _port_is_ours()


def sockets(env: Mapping[str, str]) -> Iterator[str]:
    """Where the bridge may listen, the best place first."""
    own = f"{home(env)}/bridge.sock"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    shared = [f"{runtime}/accord/bridge.sock"] if runtime.startswith("/") else []
    # Whoever names a data directory means its server and no other.
    yield from (own,) if env.get("ACCORD_HOME") else (*shared, own, COMMON)


def home(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """As `accord.settings.home_of`, which takes longer to import than a hook may run."""
    if chosen := env.get("ACCORD_HOME"):
        return os.path.expanduser(chosen)  # noqa: PTH111 - the same
    user = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111
    if platform == "win32":
        return os.path.join(env.get("LOCALAPPDATA") or f"{user}/AppData/Local", "accord")  # noqa: PTH118
    if platform == "darwin":
        return f"{user}/Library/Application Support/accord"
    shared = env.get("XDG_DATA_HOME") or ""
    return f"{shared if shared.startswith('/') else f'{user}/.local/share'}/accord"


def _is_ours(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def _over_socket(path: str, said: dict[str, Any], until: float) -> dict[str, Any] | None:
    import socket  # only where somebody listens: this takes longer than all the rest

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(_left(until))
            line.connect(path)
            if _server_of(line) not in (None, os.getuid()):
                return None
            line.sendall(_json(said) + b"\n")
            return _answer(_received(line, until, b"\n"))
    except (OSError, ValueError):
        return None


def _json(said: Mapping[str, Any]) -> bytes:
    """What git calls something may be no text; the server reads nothing else."""
    import json

    return json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")


def _server_of(line: socket.socket) -> int | None:
    """The user who listens there, as the kernel says it; None where it does not."""
    import socket

    if not hasattr(socket, "SO_PEERCRED"):
        return None
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(told[4:8], sys.byteorder)


def _over_http(said: dict[str, Any], env: Mapping[str, str], until: float) -> dict[str, Any] | None:
    import socket
    from urllib.parse import urlencode

    facts = {name: value for name, value in said.items() if name != "action"}
    path, body = f"/{said['action']}", b""
    if said["action"] in READS:
        path += f"?{urlencode(facts, errors='replace')}" if facts else ""
        verb = "GET"
    else:
        verb, body = "POST", _json(facts)
    head = (
        f"{verb} {path} HTTP/1.0\r\nHost: 127.0.0.1:{PORT}\r\n"
        f"Authorization: Bearer {_token(env)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        with socket.create_connection(("127.0.0.1", PORT), _left(until)) as line:
            line.sendall(head.encode() + body)
            heard = _received(line, until)
    except OSError:
        return None
    status, _, content = heard.partition(b"\r\n\r\n")
    answered = b" 200 " in status[:16] + b" " or b'{"error":' in content[:16]
    return _answer(content) if answered else None


def _token(env: Mapping[str, str]) -> str:
    """What shows that the data is ours; nothing where others could have read it."""
    try:
        with open(f"{home(env)}/bridge.token", encoding="ascii") as file:  # noqa: PTH123 - the same
            info = os.fstat(file.fileno())
            ours = info.st_uid == os.getuid() and not info.st_mode & OTHERS
            return file.read(200).strip() if ours else ""
    except (OSError, ValueError):
        return ""


def _port_is_ours() -> bool:
    """Whether a process of this user listens there; where the system does not say, nobody does."""
    wanted = f"0100007F:{PORT:04X}"
    try:
        with open(PORTS, encoding="ascii") as table:  # noqa: PTH123 - the same
            rows = [row.split() for row in table]
    except OSError:
        return False
    ours = {str(os.getuid())}
    return any(row[1] == wanted and row[3] == "0A" and row[7] in ours for row in rows[1:])


def _received(line: socket.socket, until: float, end: bytes = b"") -> bytes:
    heard = b""
    while len(heard) <= MOST_BYTES and not (end and end in heard):
        line.settimeout(_left(until))
        if not (part := line.recv(65536)):
            break
        heard += part
    return heard


def _answer(heard: bytes) -> dict[str, Any] | None:
    import json

    try:
        found = json.loads(heard)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
