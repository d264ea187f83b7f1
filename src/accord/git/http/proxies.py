"""The proxy of the environment, as the commands use it through the HTTP client.

Hooks speak plain HTTP to this machine alone, which is never asked through a proxy. So what counts
is `HTTPS_PROXY`, without the hosts of `NO_PROXY`, both also in lower case, which wins. The proxy is
asked for a tunnel (`CONNECT`): it sees which server is asked, and nothing of what is said.
"""

from __future__ import annotations

from accord.git.bridge_client import seconds_left
from accord.git.http.connecting import connect, send

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY")
EXCEPTION_VARIABLES = ("no_proxy", "NO_PROXY")
DEFAULT_PORT = 80
MAX_ANSWER_BYTES = 64 << 10


def proxy_for(host: str, port: int, env: Mapping[str, str]) -> str:
    """The address of the proxy for an HTTPS server; empty if it is asked directly."""
    proxy = _first(PROXY_VARIABLES, env)
    return "" if not proxy or _is_excepted(host, port, env) else proxy


def _first(names: tuple[str, ...], env: Mapping[str, str]) -> str:
    """The first variable that is set; an empty one means that there is none."""
    return next((env[name].strip() for name in names if name in env), "")


def _is_excepted(host: str, port: int, env: Mapping[str, str]) -> bool:
    from accord.settings.profiles import is_this_machine

    if is_this_machine(host):
        return True
    listed = _first(EXCEPTION_VARIABLES, env).lower()
    bare = [entry.strip().lstrip(".") for entry in listed.split(",")]
    names = (f".{host.lower()}", f".{host.lower()}:{port}")
    return listed == "*" or any(
        name.endswith(f".{each}") for each in bare if each for name in names
    )


def open_tunnel(proxy: str, host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the server through the proxy; raises OSError or ValueError."""
    from accord.git.http.url_parts import split_netloc

    scheme, found, rest = proxy.partition("://")
    if found and scheme.lower() not in {"http", "https"}:
        raise ValueError(f"proxies of the kind {scheme!r} are not supported")
    credentials, _, netloc = (rest if found else proxy).partition("/")[0].rpartition("@")
    connection = connect(*split_netloc(netloc, DEFAULT_PORT), deadline)
    try:
        send(connection, _request(host, port, credentials), deadline)
        _read_acceptance(connection, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def _request(host: str, port: int, credentials: str) -> bytes:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if credentials:
        from binascii import b2a_base64
        from urllib.parse import unquote

        encoded = b2a_base64(unquote(credentials).encode(), newline=False).decode()
        lines.append(f"Proxy-Authorization: Basic {encoded}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _read_acceptance(connection: socket.socket, deadline: float) -> None:
    """Read the proxy's answer; behind it comes nothing before we speak to the server."""
    received = b""
    while b"\r\n\r\n" not in received:
        connection.settimeout(seconds_left(deadline))
        chunk = connection.recv(4096)
        if not chunk or len(received) > MAX_ANSWER_BYTES:
            raise ConnectionError("the proxy gave no answer")
        received += chunk
    status = received.split(b" ", 2)[1:2]
    if not status or not status[0].startswith(b"2"):
        raise ConnectionError("the proxy refused to connect")
