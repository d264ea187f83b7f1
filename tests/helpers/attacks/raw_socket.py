"""A bare socket to a server, for what no proper client would send."""

import base64
import os
import socket
import struct
from pathlib import Path

from tests.helpers.servers.server_process import ServerProcess

PATIENCE = 30.0


def plug(server: ServerProcess) -> socket.socket:
    """A connection on which nothing was said yet."""
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def upgraded(
    server: ServerProcess, token: str = "", opened: socket.socket | None = None
) -> socket.socket:
    """A connection that speaks WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        "GET /ws HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    opened = opened or plug(server)
    opened.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += opened.recv(1)
    assert b" 101 " in head, head
    return opened


def frame(payload: bytes, kind: int = 1, *, fin: bool = True, size: int | None = None) -> bytes:
    """A client's frame, masked with nothing; `size` is what it claims to hold."""
    size = len(payload) if size is None else size
    first = bytes((kind | (0x80 if fin else 0),))
    if size < 126:
        head = first + bytes((0x80 | size,))
    elif size < 1 << 16:
        head = first + struct.pack("!BH", 0xFE, size)
    else:
        head = first + struct.pack("!BQ", 0xFF, size)
    return head + bytes(4) + payload


def rest(opened: socket.socket) -> bytes:
    """Everything the server says until it hangs up."""
    heard = b""
    try:
        while more := opened.recv(1 << 16):
            heard += more
    except ConnectionError:
        pass
    return heard


def memory(server: ServerProcess) -> int:
    """How many MiB the server holds."""
    status = Path(f"/proc/{server.pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) >> 10
