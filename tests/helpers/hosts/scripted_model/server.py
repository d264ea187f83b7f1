"""The scripted model's server: the APIs of four vendors on one loopback port.

It is also the proxy that hosts are told to use for everything that is not on loopback. It opens no
connection; it only records what a host wanted to reach.
"""

import gzip
import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from tests.helpers.hosts.scripted_model import (
    anthropic_messages,
    gemini_content,
    openai_chat,
    openai_responses,
)
from tests.helpers.hosts.scripted_model.script import ModelReply, ModelRequest, Script

MAX_BODY_BYTES = 64 * 1024 * 1024
IDLE_TIMEOUT_S = 120
GEMINI_PATH = re.compile(r"/v1\w*/models/(?P<model>[^/:]+):(?P<verb>\w+)$")


class Api(Protocol):
    """One vendor's API: a module of this package."""

    def read_request(self, body: Mapping[str, Any], /) -> ModelRequest: ...
    def whole(self, request: ModelRequest, reply: ModelReply, id: str, /) -> dict[str, Any]: ...
    def events(
        self, request: ModelRequest, reply: ModelReply, id: str, /
    ) -> Iterator[tuple[str, dict[str, Any]]]: ...


APIS: dict[str, Api] = {
    "/messages": anthropic_messages,
    "/responses": openai_responses,
    "/chat/completions": openai_chat,
}


class Exchange(NamedTuple):
    """A request of a host and the model's reply to it; `body` is the request as it was sent."""

    request: ModelRequest
    reply: ModelReply
    body: str


class ScriptedModel(ThreadingHTTPServer):
    """The model: `exchanges` has all requests and replies, `outside` what is not on loopback."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), RequestHandler)
        self.script = script
        self.exchanges: list[Exchange] = []
        self.outside: list[str] = []
        self.reply_numbers = count(1)

    @property
    def url(self) -> str:
        """The base URL, without `/v1`."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A host that disconnects in the middle is no error of the model."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def serve(script: Script) -> Iterator[ScriptedModel]:
    """Serve a script on a free port until the end of the block."""
    with ScriptedModel(script) as model:
        thread = threading.Thread(target=model.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


class RequestHandler(BaseHTTPRequestHandler):
    """One connection of a host."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_TIMEOUT_S
    server: ScriptedModel

    def do_CONNECT(self) -> None:
        """Refuse a connection beyond loopback."""
        self.server.outside.append(self.path)
        self.close_connection = True
        self._send_json(403, {"error": {"message": "there is no network here"}})

    def do_HEAD(self) -> None:
        """Some hosts check that a server is there."""
        self._send_head(200, "application/json", 0)

    def do_GET(self) -> None:
        """The list of models; everything else is refused."""
        if urlsplit(self.path).path.endswith("/models"):
            model = {"id": "scripted", "object": "model", "type": "model"}
            self._send_json(200, {"object": "list", "data": [model], "models": []})
        else:
            self._refuse_path()

    def do_POST(self) -> None:
        """A request to the model."""
        path = urlsplit(self.path).path
        body = self._read_body().decode() or "{}"
        api, fields = find_api(path)
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send_json(200, {"input_tokens": 100, "totalTokens": 100})
        elif api is None:
            self._refuse_path()
        else:
            self._reply(api, api.read_request({**json.loads(body), **fields}), body)

    def _reply(self, api: Api, request: ModelRequest, body: str) -> None:
        reply = self.server.script.reply(request)
        self.server.exchanges.append(Exchange(request, reply, body))
        id = f"{next(self.server.reply_numbers):04d}"
        if not request.stream:
            self._send_json(200, api.whole(request, reply, id))
            return
        self._send_head(200, "text/event-stream", None)
        for name, fields in api.events(request, reply, id):
            head = f"event: {name}\n" if name else ""
            self._send_chunk(f"{head}data: {json.dumps(fields)}\n\n")
        if api is openai_chat:
            self._send_chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _read_body(self) -> bytes:
        """The body, in one piece or in chunks, compressed or not."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b"".join(self._read_chunks())
        else:
            raw = self.rfile.read(bounded(int(self.headers.get("content-length") or 0)))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def _read_chunks(self) -> Iterator[bytes]:
        total = 0
        while size := int(self.rfile.readline().split(b";")[0], 16):
            total = bounded(total + size)
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers

    def _refuse_path(self) -> None:
        """A path that the model does not have; an absolute one was meant for the network."""
        if not self.path.startswith("/"):
            self.server.outside.append(self.path)
        self._send_json(404, {"error": {"message": f"the scripted model has no {self.path}"}})

    def _send_chunk(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))

    def _send_json(self, status: int, value: Any) -> None:
        raw = json.dumps(value).encode()
        self._send_head(status, "application/json", len(raw))
        self.wfile.write(raw)

    def _send_head(self, status: int, content_type: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it)
        """`exchanges` has what happened."""


def bounded(size: int) -> int:
    """The size, unless it is too large."""
    if size > MAX_BODY_BYTES:
        raise ValueError(f"a request of {size} bytes is too large")
    return size


def find_api(path: str) -> tuple[Api | None, dict[str, Any]]:
    """The API at that path, and the fields of the request that the path has."""
    if found := GEMINI_PATH.search(path):
        streams = found["verb"] == "streamGenerateContent"
        is_content = found["verb"].endswith("enerateContent")
        return gemini_content if is_content else None, {"model": found["model"], "stream": streams}
    return next((api for end, api in APIS.items() if path.endswith(end)), None), {}
