"""Requests to the git bridge, as a hook sends them."""

import http.client
import json
import socket
from pathlib import Path
from typing import Any

BRIDGE_TIMEOUT_S = 30.0
REPO_ID = "repo-1"


def send_action(path: Path, action: str, **fields: Any) -> dict[str, Any]:
    """Send one request line to the bridge's socket and return its response."""
    line = json.dumps({"action": action, **fields}).encode()
    response: dict[str, Any] = json.loads(send_raw(path, line + b"\n"))
    return response


def send_raw(path: Path, data: bytes) -> bytes:
    """Send raw bytes to the bridge's socket and return its response line."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(BRIDGE_TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(data)
        received = b""
        while not received.endswith(b"\n") and (more := connection.recv(1 << 16)):
            received += more
    return received


def http_request(
    port: int, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers of a request to the bridge over HTTP; pass `Host` to override it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BRIDGE_TIMEOUT_S)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body)
    try:
        connection.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(None if data is None else data.encode())
        response = connection.getresponse()
        text = response.read()
        decoded = json.loads(text) if text.startswith(b"{") else {}
        return response.status, decoded, {k.lower(): v for k, v in response.getheaders()}
    finally:
        connection.close()


def free_port() -> int:
    """A port that is not in use now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
