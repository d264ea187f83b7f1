"""A proxy that opens tunnels (`CONNECT`), in which every name is one port of this machine."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator


class ConnectProxy(socketserver.ThreadingTCPServer):
    """Forwards both ways until either side ends; notes the heads of the requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, target_port: int, status: str = "200 Connection established") -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.target_port, self.status = target_port, status
        self.heads: list[bytes] = []

    @property
    def netloc(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def targets(self) -> list[str]:
        """What was asked for, in turn."""
        return [head.split(b" ")[1].decode() for head in self.heads]


class _Tunnel(socketserver.StreamRequestHandler):
    server: ConnectProxy
    rbufsize = 0  # what follows the head belongs to the tunnel

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (byte := self.request.recv(1)):
                return
            head += byte
        self.server.heads.append(head)
        self.request.sendall(f"HTTP/1.1 {self.server.status}\r\n\r\n".encode())
        if not self.server.status.startswith("2"):
            return
        with socket.create_connection(("127.0.0.1", self.server.target_port)) as target:
            back = threading.Thread(target=_forward, args=(target, self.request), daemon=True)
            back.start()
            _forward(self.request, target)
            back.join()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def run_connect_proxy(target_port: int, status: str = "") -> Iterator[ConnectProxy]:
    """Run a proxy; with a status, it refuses every tunnel with it."""
    with ConnectProxy(target_port, *([status] if status else [])) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
