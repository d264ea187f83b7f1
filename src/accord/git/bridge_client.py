"""Client for the bridge: JSON requests to the user's server, within one second for a whole hook.

A server on this machine is asked through its bridge, else the server of the user's profile. One
elsewhere that the environment or `.accord.toml` names is asked instead of one on this machine.

This runs in hooks, which may use 100 ms of CPU time, so it imports only the standard library, and
as little of it as possible. That is why it does not use `accord.client.http_client`: importing that
with msgspec and urllib would take most of those 100 ms. It needs none of its rules either, because
it only speaks to this machine, without TLS, proxies, redirects or retries.
Another user could listen on the socket or port in order to collect requests, so a request is
sent only if the listening process belongs to the current user.

The untracked `.accord.toml` of a work tree says which server and session hooks ask for. It takes
effect as if the environment named both. A tracked file is ignored, as others may edit it, and so is
one of another user. Like every address from a file, it never gets `ACCORD_TOKEN`, unless it is on
this machine: it selects the profile that `accord login` made for it.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping

from accord.git import remote_server
from accord.git.repository import Repository

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket
    from collections.abc import MutableMapping
    from typing import Any


UNLIMITED_S = float("inf")
BRIDGE_TIMEOUT_S = 1.0
MAX_TIMEOUT_S = 60.0
BRIDGE_PORT = 9847
TCP_TABLE = "/proc/net/tcp"
MAX_RESPONSE_BYTES = 1 << 20
GROUP_OTHER_BITS = 0o077
SHARED_SOCKET = "/tmp/pvp-git-bridge.sock"  # noqa: S108 - PVP 18.1 names it; its owner is checked
# Actions that a server elsewhere answers, and what is of no use to it.
REMOTE_ACTIONS = frozenset(
    {
        "status",
        "commit-context",
        "commit-coverage",
        "commits",
        "extended-metadata",
        "commit-created",
        "session-started",
        "session-ended",
    }
)
LOCAL_FACTS = frozenset({"directory"})
READ_ACTIONS = frozenset({"commit-context", "extended-metadata", "status", "commits", "places"})


class WaitingTime:
    """What is left to a hook of its second; outside of hooks each request has a limit of its own.

    Only the time in which a hook asks counts, not that in which git works between two requests: a
    huge commit takes git several seconds, and still gets its record from a server that answers.
    """

    __slots__ = ("left_s",)

    def __init__(self) -> None:
        self.left_s = UNLIMITED_S

    def begin(self, seconds: float) -> None:
        """A hook begins, and may wait that long."""
        self.left_s = seconds

    def end(self) -> None:
        """The hook ends."""
        self.left_s = UNLIMITED_S

    def spend(self, seconds: float) -> None:
        """A request took that long."""
        self.left_s -= seconds


def seconds_left(deadline: float) -> float:
    """The time until then; raises TimeoutError if it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


# Of the hook that this process runs.
hook_wait = WaitingTime()


def request(
    action: str,
    env: Mapping[str, str],
    facts: Mapping[str, Any],
    timeout_s: float | None = None,
) -> dict[str, Any] | None:
    """The bridge's response; None if there is no bridge, no response in time, or an error."""
    response = request_or_error(action, env, facts, timeout_s)
    return None if response is None or response.get("error") else response


def request_or_error(
    action: str,
    env: Mapping[str, str],
    facts: Mapping[str, Any],
    timeout_s: float | None = None,
) -> dict[str, Any] | None:
    """Like `request`, but an error response is returned; its `error` gives the reason."""
    began = time.monotonic()
    allowed = min(response_timeout(env) if timeout_s is None else timeout_s, hook_wait.left_s)
    if allowed <= 0:
        return None
    try:
        return _ask(action, env, facts, began + allowed)
    finally:
        hook_wait.spend(time.monotonic() - began)


def _ask(
    action: str, env: Mapping[str, str], facts: Mapping[str, Any], deadline: float
) -> dict[str, Any] | None:
    payload = {"action": action, **{name: value for name, value in facts.items() if value}}
    sent = {name: value for name, value in facts.items() if value and name not in LOCAL_FACTS}
    if action in REMOTE_ACTIONS and _is_elsewhere(env):
        return remote_server.request(action, env, sent, deadline)
    first_error = None
    for path in socket_paths(env):
        response = _request_over_socket(path, payload, deadline) if _is_own_socket(path) else None
        if response is not None and not response.get("error"):
            return response
        first_error = first_error or response
    if _is_port_allowed(env):
        response = _request_over_http(payload, env, deadline)
        if response is not None and not response.get("error"):
            return response
        first_error = first_error or response  # the preferred server's refusal is the reason
    if first_error is None and action in REMOTE_ACTIONS:
        return remote_server.request(action, env, sent, deadline)
    return first_error


def response_timeout(env: Mapping[str, str]) -> float:
    """How many seconds to wait for responses; the environment may ask for up to a minute."""
    chosen = env.get("ACCORD_TIMEOUT", "")
    longer = min(float(chosen), MAX_TIMEOUT_S) if chosen.isdecimal() else 0.0
    return max(BRIDGE_TIMEOUT_S, longer)


def _is_elsewhere(env: Mapping[str, str]) -> bool:
    """Whether an address or `ACCORD_PROFILE` names a server elsewhere that issued a token.

    It is asked before a server of this machine, which knows other sessions. `ACCORD_HOME` chooses
    one of this machine.
    """
    is_named = bool(env.get(URL_VARIABLE) or env.get("ACCORD_PROFILE"))
    return is_named and not env.get("ACCORD_HOME") and remote_server.is_elsewhere(env)


def server_asked(env: Mapping[str, str]) -> str:
    """The address of the server that is asked; empty for one of this machine."""
    if not _is_elsewhere(env) and (
        any(map(_is_own_socket, socket_paths(env))) or _is_port_allowed(env)
    ):
        return ""
    return remote_server.address(env)


def is_reachable(env: Mapping[str, str]) -> bool:
    """Whether there seems to be a bridge or a server to ask, judged without connecting to it."""
    return (
        any(map(_is_own_socket, socket_paths(env)))
        or _is_port_allowed(env)
        or remote_server.may_exist(env)
    )


def _is_port_allowed(env: Mapping[str, str]) -> bool:
    other_server = bool(env.get("ACCORD_HOME")) and not _read_token(env)
    return not other_server and _is_port_own()


def socket_paths(env: Mapping[str, str]) -> Iterator[str]:
    """Where the bridge may listen, in order of preference."""
    own = f"{data_dir(env)}/bridge.sock"
    runtime = env.get("XDG_RUNTIME_DIR", "")
    shared = [f"{runtime}/accord/bridge.sock"] if runtime.startswith("/") else []
    # ACCORD_HOME selects one server; never fall back to another.
    yield from (own,) if env.get("ACCORD_HOME") else (*shared, own, SHARED_SOCKET)


def data_dir(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """Same rules as `accord.settings.client.home_of`, whose import is too slow for a hook."""
    if chosen := env.get("ACCORD_HOME"):
        return os.path.expanduser(chosen)  # noqa: PTH111 - `pathlib` is slow to import
    user = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111
    if platform == "win32":
        return os.path.join(env.get("LOCALAPPDATA") or f"{user}/AppData/Local", "accord")  # noqa: PTH118
    if platform == "darwin":
        return f"{user}/Library/Application Support/accord"
    shared = env.get("XDG_DATA_HOME") or ""
    return f"{shared if shared.startswith('/') else f'{user}/.local/share'}/accord"


def _is_own_socket(path: str) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(info.st_mode) and info.st_uid == os.getuid()


def _request_over_socket(
    path: str, payload: dict[str, Any], deadline: float
) -> dict[str, Any] | None:
    import socket  # slow to import, so only when something listens

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds_left(deadline))
            connection.connect(path)
            if _peer_uid(connection) not in (None, os.getuid()):
                return None
            connection.settimeout(seconds_left(deadline))
            connection.sendall(_encode_json(payload) + b"\n")
            return _parse_response(_receive(connection, deadline, b"\n"))
    except (OSError, ValueError):
        return None


def _encode_json(payload: Mapping[str, Any]) -> bytes:
    """Encode as UTF-8; names from git may contain invalid bytes, which are replaced."""
    import json

    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")


def _peer_uid(connection: socket.socket) -> int | None:
    """The user id of the listening process; None where the kernel does not report it."""
    import socket

    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _request_over_http(
    payload: dict[str, Any], env: Mapping[str, str], deadline: float
) -> dict[str, Any] | None:
    import socket
    from urllib.parse import urlencode

    facts = {name: value for name, value in payload.items() if name != "action"}
    path, body = f"/{payload['action']}", b""
    if payload["action"] in READ_ACTIONS:
        path += f"?{urlencode(facts, errors='replace')}" if facts else ""
        verb = "GET"
    else:
        verb, body = "POST", _encode_json(facts)
    head = (
        f"{verb} {path} HTTP/1.0\r\nHost: 127.0.0.1:{BRIDGE_PORT}\r\n"
        f"Authorization: Bearer {_read_token(env)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        with socket.create_connection(
            ("127.0.0.1", BRIDGE_PORT), seconds_left(deadline)
        ) as connection:
            connection.settimeout(seconds_left(deadline))
            connection.sendall(head.encode() + body)
            response = _receive(connection, deadline)
    except OSError:
        return None
    status, _, content = response.partition(b"\r\n\r\n")
    is_answer = b" 200 " in status[:16] + b" " or b'{"error":' in content[:16]
    return _parse_response(content) if is_answer else None


def _read_token(env: Mapping[str, str]) -> str:
    """The token that authenticates this user; empty if other users could have read the file."""
    try:
        with open(f"{data_dir(env)}/bridge.token", encoding="ascii") as file:  # noqa: PTH123 - the same
            info = os.fstat(file.fileno())
            ours = info.st_uid == os.getuid() and not info.st_mode & GROUP_OTHER_BITS
            return file.read(200).strip() if ours else ""
    except (OSError, ValueError):
        return ""


def _is_port_own() -> bool:
    """Whether a process of this user listens on the port; False if the system does not tell."""
    wanted = f"0100007F:{BRIDGE_PORT:04X}"
    try:
        with open(TCP_TABLE, encoding="ascii") as table:  # noqa: PTH123 - the same
            rows = [row.split() for row in table]
    except OSError:
        return False
    ours = {str(os.getuid())}
    return any(row[1] == wanted and row[3] == "0A" and row[7] in ours for row in rows[1:])


def _receive(connection: socket.socket, deadline: float, end: bytes = b"") -> bytes:
    received = b""
    while len(received) <= MAX_RESPONSE_BYTES and not (end and end in received):
        connection.settimeout(seconds_left(deadline))
        if not (chunk := connection.recv(65536)):
            break
        received += chunk
    return received


def _parse_response(response: bytes) -> dict[str, Any] | None:
    import json

    try:
        parsed = json.loads(response)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


# The settings file

SETTINGS_FILE = ".accord.toml"
MAX_SETTINGS_BYTES = 64 << 10
URL_VARIABLE, SESSION_VARIABLE, TOKEN_VARIABLE = "ACCORD_URL", "ACCORD_SESSION", "ACCORD_TOKEN"
ROOT_USER = 0
NOT_TRACKED = 1  # exit code of `git ls-files --error-unmatch`


def apply_settings_file(repo: Repository, env: MutableMapping[str, str]) -> None:
    """Set what the file names and the environment does not."""
    if env.get(URL_VARIABLE) and env.get(SESSION_VARIABLE):
        return
    root = repo.directories.root
    path = os.path.join(root, SETTINGS_FILE)  # noqa: PTH118 - `pathlib` is too slow for hooks
    if not root or not os.path.isfile(path):  # noqa: PTH113 - a named pipe in its place would block
        return
    settings = _read_settings(path)
    if not settings or not _is_untracked(repo, path):
        return
    if (session := settings.get("session")) and not env.get(SESSION_VARIABLE):
        env[SESSION_VARIABLE] = session
    if (url := settings.get("url")) and not env.get(URL_VARIABLE):
        _set_url(url, env)


def _is_untracked(repo: Repository, path: str) -> bool:
    """Whether git says that it does not track the file; a git that fails does not say so."""
    return repo.run("ls-files", "--error-unmatch", "--", path).code == NOT_TRACKED


def _set_url(url: str, env: MutableMapping[str, str]) -> None:
    from accord.settings.profiles import may_carry_token

    env[URL_VARIABLE] = url
    is_local = may_carry_token(f"http://{url.partition('://')[2]}")
    if not is_local:
        env.pop(TOKEN_VARIABLE, None)


def _read_settings(path: str) -> dict[str, str]:
    """The texts in the file; empty if it cannot be read or belongs to another user."""
    import tomllib

    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the same
            is_ours = sys.platform == "win32" or os.fstat(file.fileno()).st_uid in {
                os.geteuid(),
                ROOT_USER,
            }
            content = file.read(MAX_SETTINGS_BYTES + 1) if is_ours else b""
        parsed = tomllib.loads(content.decode()) if len(content) <= MAX_SETTINGS_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: value for name, value in parsed.items() if isinstance(value, str)}
