"""An HTTP server on loopback that gives prepared answers, for providers that misbehave."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


@dataclass(frozen=True)
class RawAnswer:
    """A status, a body, and more headers; `cut` ends the connection before the body's end."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


class Asked(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes


class RawServer(ThreadingHTTPServer):
    """Gives the answers in order, the last one again and again."""

    daemon_threads = True

    def __init__(self, answers: Sequence[RawAnswer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serve_answers(answers: Sequence[RawAnswer]) -> Iterator[RawServer]:
    """Serve on a free port until the end of the block."""
    with RawServer(answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: RawServer

    def do_POST(self) -> None:
        """The next answer."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.path, headers, body))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body) + answer.cut))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it)
        """`asked` has what happened."""
