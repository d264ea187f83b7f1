"""Which authorities hooks trust: those of the commands, and of a directory without reading all."""

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.helpers.servers.certificates import CertificateAuthority

SOURCE = Path(__file__).resolve().parents[3] / "src"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
OK, REFUSED = "200", "SSLCertVerificationError"
# What a hook does, in a Python that is started as a hook's is.
ASK = """
import sys, time
sys.path.insert(0, sys.argv[1])
from accord.git.http.connection import exchange
from accord.git.http.request import render_request
url = sys.argv[2]
try:
    print(exchange(url, render_request(url, "/", b"{}"), time.monotonic() + 30, {}).status)
except OSError as error:
    print(type(error).__name__)
"""


class Authorities:
    """Ours, which the server's certificate is from, and another with a name of its own."""

    def __init__(self, folder: Path) -> None:
        self.ours = CertificateAuthority(folder / "ours")
        self.directory = self.ours.hashed_directory()
        other = CertificateAuthority(folder / "other")
        self.other_file = other.file
        self.other_directory = other.hashed_directory()

    def environment(self, directory: str, file: str) -> dict[str, str]:
        """`SSL_CERT_DIR` and `SSL_CERT_FILE`, each `ours`, `other` or empty for the system's."""
        directories = {"ours": self.directory, "other": self.other_directory}
        files = {"ours": self.ours.file, "other": self.other_file}
        chosen: dict[str, Path | None] = {
            "SSL_CERT_DIR": directories.get(directory),
            "SSL_CERT_FILE": files.get(file),
        }
        return {name: str(path) for name, path in chosen.items() if path}


class TlsServer:
    """Answers one request on each connection, and counts the connections."""

    def __init__(self, authority: CertificateAuthority) -> None:
        files = authority.issue_certificate(names=("127.0.0.1",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.cert, files.key)
        self.connections = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                plain, _ = self._listener.accept()
                self.connections += 1
                with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as peer:
                    peer.recv(65536)
                    peer.sendall(ANSWER)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    return Authorities(tmp_path_factory.mktemp("authorities"))


@pytest.fixture
def server(authorities: Authorities) -> Iterator[TlsServer]:
    running = TlsServer(authorities.ours)
    yield running
    running.close()


def ask(url: str, env: dict[str, str]) -> str:
    """The status of the answer, or which error there was."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
    words = [sys.executable, "-I", "-S", "-c", ASK, str(SOURCE), url]
    done = subprocess.run(
        words, env=kept | env, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("directory", "file", "outcome", "connections"),
    [
        ("ours", "", OK, 1),
        ("", "ours", OK, 1),
        ("ours", "other", OK, 1),
        ("other", "ours", OK, 2),
        ("other", "other", REFUSED, 2),
        ("", "other", REFUSED, 1),
    ],
)
def test_a_server_is_believed_that_either_of_both_vouches_for(
    authorities: Authorities,
    server: TlsServer,
    directory: str,
    file: str,
    outcome: str,
    connections: int,
) -> None:
    env = authorities.environment(directory, file)

    assert ask(f"https://127.0.0.1:{server.port}", env) == outcome
    assert server.connections == connections


def test_a_certificate_for_another_name_is_refused(
    authorities: Authorities, server: TlsServer
) -> None:
    env = authorities.environment("ours", "ours")

    assert ask(f"https://localhost:{server.port}", env) == REFUSED
