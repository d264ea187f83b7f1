"""Asking the git bridge, as a hook does."""

import http.client
import json
import socket
from pathlib import Path
from typing import Any

PATIENCE = 30.0
REPO = "repo-1"


def ask(path: Path, action: str, **said: Any) -> dict[str, Any]:
    """One line to a socket, and the line that comes back."""
    line = json.dumps({"action": action, **said}).encode()
    told: dict[str, Any] = json.loads(raw(path, line + b"\n"))
    return told


def raw(path: Path, data: bytes) -> bytes:
    """Whatever comes back to these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE)
        line.connect(str(path))
        line.sendall(data)
        heard = b""
        while not heard.endswith(b"\n") and (more := line.recv(1 << 16)):
            heard += more
    return heard


def over_http(
    port: int, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, answer and headers over HTTP; `Host` is as it should be unless named."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body)
    try:
        line.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            line.putheader(name, value)
        if data is not None:
            line.putheader("Content-Length", str(len(data)))
        line.endheaders(None if data is None else data.encode())
        answer = line.getresponse()
        text = answer.read()
        told = json.loads(text) if text.startswith(b"{") else {}
        return answer.status, told, {k.lower(): v for k, v in answer.getheaders()}
    finally:
        line.close()


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
