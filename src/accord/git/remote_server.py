"""Ask the server of the user's profile, over HTTP or HTTPS, what the local bridge would answer.

This runs in hooks, so it imports only the standard library, and as little of it as possible: the
HTTP client of the standard library alone would take a third of a hook's time.

The address comes from `ACCORD_URL`, from `.accord.toml`, or from the last login. It selects a
profile, and a token goes only to the server that issued it: an address without a profile of its own
gets none, unless address and token both come from the environment. A token is never sent over plain
HTTP to another machine.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from typing import Any

    from accord.settings.profiles import Profile

URL_VARIABLE, TOKEN_VARIABLE = "ACCORD_URL", "ACCORD_TOKEN"
MAX_RESPONSE_BYTES = 1 << 20
# A token that ends sooner is renewed first.
RENEW_BEFORE_S = 5.0
OK_STATUS = b" 200 "


class RemoteServer:
    """A server's address, and the token it issued to this user."""

    __slots__ = ("token", "url")

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token


def may_exist(env: Mapping[str, str]) -> bool:
    """Whether an address or a profile is there, judged without reading it."""
    if env.get(URL_VARIABLE):
        return True
    from accord.settings.profiles import profiles_path

    return os.path.exists(profiles_path(env))  # noqa: PTH110 - `pathlib` is too slow for hooks


def is_elsewhere(env: Mapping[str, str]) -> bool:
    """Whether the address is not a loopback address without TLS, which means this machine."""
    chosen = address(env)
    return bool(chosen) and not (chosen.startswith("http://") and _is_private(chosen))


def address(env: Mapping[str, str]) -> str:
    """The address of the server that is asked; empty if there is none."""
    from accord.settings import profiles

    url = env.get(URL_VARIABLE)
    try:
        if url and env.get(TOKEN_VARIABLE):
            return profiles.server_address(url)
        profile = profiles.select_profile(env, url or None)
    except (profiles.ProfileError, ValueError):
        return ""
    return profile.url if profile else ""


def find_server(env: Mapping[str, str], deadline: float) -> RemoteServer | None:
    """The server to ask; None if there is no profile for the address. Raises ProfileError."""
    from accord.settings import profiles

    url = env.get(URL_VARIABLE)
    if url and env.get(TOKEN_VARIABLE):
        address = profiles.server_address(url)
        return RemoteServer(address, env[TOKEN_VARIABLE]) if _is_private(address) else None
    profile = profiles.select_profile(env, url or None)
    if profile is not None and profile.seconds_left(time.time()) < RENEW_BEFORE_S:
        _renew(profile, env, deadline)
        profile = profiles.select_profile(env, url or None)
    if profile is None or not _is_private(profile.url):
        return None
    return RemoteServer(profile.url, profile.token)


def _is_private(url: str) -> bool:
    from accord.settings.profiles import may_carry_token

    return may_carry_token(url)


def _renew(profile: Profile, env: Mapping[str, str], deadline: float) -> None:
    """Let a command of ours renew the token; the proof needs a library that hooks do not import."""
    import subprocess

    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))  # noqa: PTH100, PTH118, PTH120
    words = [sys.executable, "-m", "accord", "whoami"]
    chosen = {**env, "ACCORD_PROFILE": profile.name, "PYTHONPATH": root}
    try:
        subprocess.run(
            words,
            env=chosen,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.0, deadline - time.monotonic()),
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return  # the old token is tried, and refused if it has ended


def request(
    action: str, env: Mapping[str, str], facts: Mapping[str, Any], deadline: float
) -> dict[str, Any] | None:
    """The server's response, with `error` if it refuses; None if there is no server or answer."""
    from accord.settings.profiles import ProfileError

    try:
        server = find_server(env, deadline)
        if server is None:
            return None
        head, body = _render(server, action, facts)
        return _exchange(server.url, head + body, deadline)
    except ProfileError as error:
        return {"error": {"code": "PROFILE", "message": str(error)}}
    except (OSError, ValueError):
        return None


def _render(server: RemoteServer, action: str, facts: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The request's head and body; names from git may contain invalid bytes, which are replaced."""
    import json

    body = json.dumps(dict(facts), ensure_ascii=False).encode("utf-8", "replace")
    host, path = _split(server.url)[1:]
    lines = [
        f"POST {path}/git/{action} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if any(c in line for line in lines for c in "\r\n"):
        raise ValueError("line break in a header")
    return "\r\n".join([*lines, "", ""]).encode("ascii"), body


def _split(url: str) -> tuple[str, str, str]:
    """Scheme, host with port, and path."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme, host, f"{slash}{path}".rstrip("/")


def _exchange(url: str, data: bytes, deadline: float) -> dict[str, Any] | None:
    import socket

    scheme, netloc, _ = _split(url)
    host, port = _host_and_port(netloc, 443 if scheme == "https" else 80)
    with socket.create_connection((host, port), _seconds_left(deadline)) as plain:
        connection = _with_tls(plain, host) if scheme == "https" else plain
        with connection:
            connection.settimeout(_seconds_left(deadline))
            connection.sendall(data)
            return _parse(_receive(connection, deadline))


def _host_and_port(netloc: str, default: int) -> tuple[str, int]:
    if netloc.startswith("["):
        host, _, rest = netloc[1:].partition("]")
        return host, int(rest[1:] or default)
    host, _, port = netloc.partition(":")
    return host, int(port or default)


def _with_tls(plain: socket.socket, host: str) -> socket.socket:
    import ssl

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _receive(connection: socket.socket, deadline: float) -> bytes:
    received = b""
    while len(received) <= MAX_RESPONSE_BYTES:
        connection.settimeout(_seconds_left(deadline))
        if not (chunk := connection.recv(65536)):
            break
        received += chunk
    return received


def _parse(response: bytes) -> dict[str, Any] | None:
    """The JSON object of a response; an error of the server is one too."""
    import json

    status, _, content = response.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in status.lower():
        content = _unchunk(content)
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    is_answer = OK_STATUS in status[:16] + b" " or "error" in parsed
    return parsed if is_answer else None


def _unchunk(content: bytes) -> bytes:
    """A body that a proxy sent in chunks."""
    joined = b""
    while content:
        size, _, content = content.partition(b"\r\n")
        length = int(size.partition(b";")[0] or b"0", 16)
        if not length:
            break
        joined, content = joined + content[:length], content[length + 2 :]
    return joined


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
